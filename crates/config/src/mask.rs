//! Which values of a document may be secret, by their position in the tree.

use crate::secret_name::secret_name;
use crate::syntax::{Entry, Kind, Node};

/// Byte ranges of values that may be secret.
pub(crate) fn sensitive(root: &Node) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    collect_sensitive(root, false, &mut spans);
    spans
}

/// Collects the values under `headers`, `env` and `args`, values of keys with secret-sounding
/// names, and URLs with user data or a query. References are shown, because they only name a
/// secret.
fn collect_sensitive(node: &Node, inside: bool, spans: &mut Vec<(usize, usize)>) {
    match &node.kind {
        Kind::Null => {}
        Kind::Scalar(scalar) => {
            let url = scalar.text.contains("://") && scalar.text.contains(['@', '?']);
            if (inside || url) && !is_harmless(&scalar.text) {
                spans.push((node.span.start, node.span.end));
            }
        }
        Kind::List(items) => items.iter().for_each(|item| collect_sensitive(item, inside, spans)),
        Kind::Map { entries, dropped } => {
            for Entry { key, value } in entries.iter().chain(dropped) {
                let inside = match key.text.as_str() {
                    // toolgate's own sections whose names only sound secret.
                    "limits" | "tls" | "identifier_keys" => continue,
                    "kinds" | "infobases" | "uids" => false,
                    "headers" | "env" | "args" => true,
                    key => inside || secret_name(key),
                };
                // `API_KEY=value` pasted as a key.
                if inside && key.text.contains(['=', ':', ' ']) {
                    spans.push((key.span.start, key.span.end));
                }
                collect_sensitive(value, inside, spans);
            }
        }
    }
}

/// Values that may be shown even there: references, such as `env:NAME` and `Bearer ${NAME}`, and
/// flags of a command, such as `--port`.
fn is_harmless(text: &str) -> bool {
    let name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let flag = text.starts_with('-') && text.len() <= 20 && !text.contains(['=', ':', ' ']);
    let inside = text.split_once("${").and_then(|(before, rest)| {
        let reference = rest.strip_suffix('}')?;
        Some(matches!(before, "" | "Bearer " | "Basic " | "Token ") && name(reference))
    });
    text.strip_prefix("env:").is_some_and(name)
        || text.starts_with("file:")
        || inside == Some(true)
        || flag
}
