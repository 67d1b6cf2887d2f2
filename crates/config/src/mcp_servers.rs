//! Configurations of MCP clients: a file with `mcpServers` (`.mcp.json`, Claude Desktop, Cursor and
//! others) becomes a `toolgate.yaml`.
//!
//! Entries are copied unchanged, since `servers` accepts them. Names that toolgate does not accept
//! are changed, with a warning. Positions are kept, so that problems name the line of the original.
//!
//! Start at [`is_one`] and [`translate`].

use crate::finding::Span;
use crate::problem::code;
use crate::reader::Reader;
use crate::settings::servers::{fixed_name, is_server_name};
use crate::syntax::{Entry, Key, Kind, Node, Scalar};
use crate::v8project::written;

const KEY: &str = "mcpServers";

/// Whether the document is such a file.
pub(crate) fn is_one(root: &Node) -> bool {
    servers(root).is_some()
}

/// The same servers in the form of `toolgate.yaml`.
pub(crate) fn translate(root: &Node, reader: &mut Reader<'_>) -> Node {
    let entries = servers(root).unwrap_or_default();
    let mut taken: Vec<String> = Vec::new();
    let mut named = Vec::new();
    for Entry { key, value } in entries {
        let name = free_name(&key.text, &taken);
        if name != key.text {
            let message = format!("the server `{}` is called `{name}`", key.text);
            let hint = "names have up to 32 lower-case letters, digits and `-`".to_owned();
            reader.warn(code::INVALID_NAME, key.span, message, hint);
        }
        taken.push(name.clone());
        named.push(Entry { key: Key { text: name, span: key.span }, value: value.clone() });
    }
    let version = Scalar { text: "1".to_owned(), plain: true };
    let version = Node { kind: Kind::Scalar(version), span: Span::default() };
    let servers = Node { kind: Kind::Map { entries: named, dropped: Vec::new() }, span: root.span };
    let entries = [("version", version), ("servers", servers)]
        .map(|(key, value)| Entry { key: Key { text: key.to_owned(), span: value.span }, value });
    Node { kind: Kind::Map { entries: entries.into(), dropped: Vec::new() }, span: root.span }
}

/// The text of a `toolgate.yaml`.
pub(crate) fn write(translated: &Node) -> String {
    let remark = "made of the servers of an MCP client; `toolgate config check` checks it";
    written::document(remark, translated)
}

fn servers(root: &Node) -> Option<&[Entry]> {
    let Kind::Map { entries, .. } = &root.kind else { return None };
    let found = entries.iter().find(|entry| entry.key.text == KEY)?;
    match &found.value.kind {
        Kind::Map { entries, .. } => Some(entries),
        _ => None,
    }
}

/// The names that the servers of a client's configuration have in toolgate, in the same order.
pub fn names_in_toolgate<'n>(written: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for written in written {
        names.push(free_name(written, &names));
    }
    names
}

/// A valid name that is not taken.
fn free_name(written: &str, taken: &[String]) -> String {
    let fixed = fixed_name(written);
    let fixed: String = fixed.chars().take(28).collect();
    let base = match (is_server_name(written), is_server_name(&fixed)) {
        (true, _) => written.to_owned(),
        (false, true) => fixed,
        (false, false) => "server".to_owned(),
    };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or(base)
}
