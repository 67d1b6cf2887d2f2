//! Writes JSON strings with the escapes of RFC 8785, and no others.

/// Appends `text` as a JSON string.
pub fn push_quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(needs_escape) {
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        let mut tail = tail.chars();
        if let Some(c) = tail.next() {
            push_escape(c, out);
        }
        rest = tail.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// `text` as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(quoted_len(text));
    push_quoted(text, &mut out);
    out
}

/// The length of [`quote`]'s result in bytes.
pub fn quoted_len(text: &str) -> usize {
    let escapes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 2,
        0..0x20 => 6,
        _ => 1,
    });
    escapes.sum::<usize>() + 2
}

fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn push_escape(c: char, out: &mut String) {
    const HEX: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ => {
            out.push_str(if c < '\u{10}' { "\\u000" } else { "\\u001" });
            out.extend(HEX.get(c as usize % 16));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{quote, quoted_len};

    #[test]
    fn only_the_escapes_of_rfc_8785() {
        let text: String = ('\0'..=' ').chain("\"\\/é\u{7f}\u{2028}😀".chars()).collect();
        assert_eq!(
            quote(&text),
            "\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\
             \\u000e\\u000f\\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\
             \\u001a\\u001b\\u001c\\u001d\\u001e\\u001f \\\"\\\\/é\u{7f}\u{2028}😀\""
        );
    }

    proptest! {
        #[test]
        fn quoted_text_reads_back(text in any::<String>()) {
            let raw = quote(&text);
            prop_assert_eq!(raw.len(), quoted_len(&text));
            prop_assert_eq!(serde_json::from_str::<String>(&raw).unwrap(), text);
        }
    }
}
