//! Writes events.

use bytes::Bytes;
use memchr::memchr2;

/// An event; its data goes into one `data:` line per line. Characters that a field cannot hold
/// are left out: line breaks, and NUL in an id, because a reader would ignore the whole id.
pub fn event(id: Option<&str>, name: Option<&str>, data: &[u8]) -> Bytes {
    let fields = id.map_or(0, str::len) + name.map_or(0, str::len);
    let mut out = Vec::with_capacity(data.len() + fields + 32);
    if let Some(id) = id {
        field(&mut out, "id", id);
    }
    if let Some(name) = name {
        field(&mut out, "event", name);
    }
    let mut rest = data;
    loop {
        let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
        let next = after.strip_prefix(b"\r\n").or_else(|| after.get(1..));
        let Some(next) = next else { break };
        rest = next;
    }
    out.push(b'\n');
    Bytes::from(out)
}

/// A priming event, with an id, empty data and an optional retry time: a client can resume after it.
pub fn prime(id: &str, retry_ms: Option<u64>) -> Bytes {
    let mut out = Vec::with_capacity(id.len() + 48);
    field(&mut out, "id", id);
    if let Some(ms) = retry_ms {
        field(&mut out, "retry", &ms.to_string());
    }
    out.extend_from_slice(b"data: \n\n");
    Bytes::from(out)
}

/// After how many milliseconds the client reconnects.
pub fn retry(ms: u64) -> Bytes {
    Bytes::from(format!("retry: {ms}\n\n"))
}

/// A comment, which keeps an idle stream open.
pub fn comment(text: &str) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 4);
    field(&mut out, "", text);
    out.push(b'\n');
    Bytes::from(out)
}

fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let fits = |byte: &u8| !matches!(byte, b'\n' | b'\r') && (*byte != 0 || name != "id");
    out.extend(value.bytes().filter(fits));
    out.push(b'\n');
}
