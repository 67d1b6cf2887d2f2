//! The content of the echo server, as functions of a size, so that a client can compute the
//! expected bytes.
//!
//! Invariant: deterministic; equal sizes give equal bytes in every process.

use std::fmt::Write as _;

/// The maximum size of `big` and `structured`.
pub const MAX_SIZE: usize = 64 * 1024 * 1024;

const LINE: &str =
    "2026-11-15 08:30:00 INFO  orders: posted sales order №4711, total 12 540.00, 3 lines\n";

/// The text of `big`: `size` bytes of log lines, with line breaks and some non-ASCII characters,
/// like real output.
pub fn big_text(size: usize) -> String {
    let mut text = LINE.repeat(size / LINE.len());
    // The rest is less than a line.
    text.extend(std::iter::repeat_n('.', size - text.len()));
    text
}

/// The `structuredContent` of `structured`: an object of rows, at least `size` bytes and at most
/// one row more.
pub fn structured(size: usize) -> String {
    let mut json = String::with_capacity(size + 256);
    json.push_str(r#"{"rows":["#);
    let mut row = 0_u32;
    while row == 0 || json.len() + 2 < size {
        let comma = if row == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _infallible = write!(
            json,
            r#"{comma}{{"ref":"d41d8cd9-{row:08x}","number":"TR-{row:06}","posted":{},"sum":{}.50,"rate":1e0,"partner":{{"name":"Rowan & Sons \"North\"","code":null}},"tags":["a","b"]}}"#,
            row.is_multiple_of(2),
            row * 7 % 9973,
        );
        row += 1;
    }
    json.push_str("]}");
    json
}

/// The `tools/list` result with the three tools that can be called and filler up to `count`.
pub fn tool_list(count: usize) -> String {
    let mut json = format!(r#"{{"tools":[{CALLABLE}"#);
    for n in 3..count {
        let (verb, noun) = NAMES.get(n % NAMES.len()).copied().unwrap_or(("read", "item"));
        let _infallible = write!(
            json,
            r#",{{"name":"{noun}_{verb}_{n}","title":"{verb} {noun} {n}","description":"{verb} one {noun} of register {n} by its reference. Returns the {noun} as it stands after the call, with its lines and totals. Fails if the period is closed or the {noun} is locked by another user.","inputSchema":{{"type":"object","properties":{{"ref":{{"type":"string","description":"reference of the {noun}, a UUID","minLength":36,"maxLength":36}},"period":{{"type":"string","format":"date"}},"fields":{{"type":"array","items":{{"type":"string"}},"maxItems":50}},"limit":{{"type":"integer","minimum":1,"maximum":1000,"default":100}},"mode":{{"enum":["fast","exact"]}}}},"required":["ref"],"additionalProperties":false}},"annotations":{{"readOnlyHint":{},"openWorldHint":false}}}}"#,
            verb == "read",
        );
    }
    json.push_str("]}");
    json
}

const NAMES: [(&str, &str); 6] = [
    ("read", "order"),
    ("update", "invoice"),
    ("close", "session"),
    ("read", "balance"),
    ("post", "payment"),
    ("delete", "draft"),
];

const CALLABLE: &str = concat!(
    r#"{"name":"echo","description":"Returns its arguments as text.","inputSchema":{"type":"object"}},"#,
    r#"{"name":"big","description":"Returns a text of the given size.","inputSchema":{"type":"object","properties":{"size":{"type":"integer","minimum":0}},"required":["size"]}},"#,
    r#"{"name":"structured","description":"Returns structured content of about the given size.","inputSchema":{"type":"object","properties":{"size":{"type":"integer","minimum":0}},"required":["size"]},"outputSchema":{"type":"object","properties":{"rows":{"type":"array"}}}}"#,
);
