//! Resource URIs in results on `/mcp`, as they are listed there.
//!
//! Invariant: only the URIs of resource links, embedded resources and read contents change.

use memchr::memmem;
use toolgate_json::{Edit, items, members, peek, quote, text};

use crate::names::Naming;

/// Whether a result may contain a URI; most do not.
pub(crate) fn may_show_uris(result: &str) -> bool {
    memmem::find(result.as_bytes(), b"\"uri\"").is_some()
}

/// The result with its URIs as shown; `None` if it has none.
pub(crate) fn show_uris(result: &str, naming: &Naming) -> Option<String> {
    let mut uris = Vec::new();
    let [content, contents, messages] =
        members(result, ["content", "contents", "messages"]).ok()?;
    if let Some(content) = content {
        in_content(content, &mut uris);
    }
    for part in contents.and_then(|all| items(all).ok()?).unwrap_or_default() {
        uris.extend(peek(part, &["uri"]).ok().flatten());
    }
    for message in messages.and_then(|all| items(all).ok()?).unwrap_or_default() {
        if let Ok(Some(content)) = peek(message, &["content"]) {
            in_content(content, &mut uris);
        }
    }
    let mut edit = Edit::new(result);
    let mut found = false;
    for raw in uris {
        let Some(uri) = text(raw) else { continue };
        edit = edit.replace(raw, quote(&naming.shown_uri(&uri))).ok()?;
        found = true;
    }
    found.then(|| String::from_utf8_lossy(&edit.finish()).into_owned())
}

/// The URIs in one block of content, or in several.
fn in_content<'a>(content: &'a str, uris: &mut Vec<&'a str>) {
    let blocks = items(content).ok().flatten().unwrap_or_else(|| vec![content]);
    for block in blocks {
        let Ok([kind, uri, resource]) = members(block, ["type", "uri", "resource"]) else {
            continue;
        };
        match kind.and_then(text).as_deref() {
            Some("resource_link") => uris.extend(uri),
            Some("resource") => {
                uris.extend(resource.and_then(|resource| peek(resource, &["uri"]).ok().flatten()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_of_resources_are_shown_and_nothing_else() {
        let cases = [
            (
                r#"{"content":[{"type":"text","text":"\"uri\":\"a:b\""},{"uri":"a:b","type":"resource_link","x":1.0}]}"#,
                Some(
                    r#"{"content":[{"type":"text","text":"\"uri\":\"a:b\""},{"uri":"s+a:b","type":"resource_link","x":1.0}]}"#,
                ),
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"t"}}],"structuredContent":{"uri":"a:b"}}"#,
                Some(
                    r#"{"content":[{"type":"resource","resource":{"uri":"s+a:b","text":"t"}}],"structuredContent":{"uri":"a:b"}}"#,
                ),
            ),
            (
                r#"{"contents":[{"uri":"a:b"},{"uri":"a:c","blob":""}]}"#,
                Some(r#"{"contents":[{"uri":"s+a:b"},{"uri":"s+a:c","blob":""}]}"#),
            ),
            (
                r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"ui://w"}}}]}"#,
                Some(
                    r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"ui://s+w"}}}]}"#,
                ),
            ),
            (r#"{"content":[{"type":"other","uri":"a:b"}]}"#, None),
            (r#"{"content":"uri"}"#, None),
            (r#"{"content":[{"type":"resource_link","uri":7}]}"#, None),
            ("{}", None),
        ];
        let naming = Naming::new("s", false);
        for (result, shown) in cases {
            assert_eq!(show_uris(result, &naming).as_deref(), shown);
        }
    }
}
