//! `yields` and `ends`: ownership of ids.

use super::{Reader, find};
use crate::{
    Code, Span, Window,
    model::{Ends, Yield},
    path::{Path, Root},
    syntax::{Key, Member, Node, Value, type_name},
};

impl Reader<'_, '_> {
    pub(super) fn yields(&mut self, members: &[Member]) -> Vec<Yield> {
        let Some(node) = find(members, "yields") else { return Vec::new() };
        let Some(kinds) = self.members(node, "yields") else { return Vec::new() };
        kinds.iter().filter_map(|kind| self.yields_one(&kind.key, &kind.value)).collect()
    }

    fn yields_one(&mut self, kind: &Key, node: &Node) -> Option<Yield> {
        let week = Window::seconds(7 * 86_400).unwrap_or(Window::DAY);
        let mut owned = Yield {
            kind: kind.text.clone(),
            path: Path { text: String::new(), root: Root::Result, segments: Vec::new() },
            shared: false,
            by_identity: false,
            keep: week,
        };
        if let Value::Map(_) = node.value() {
            let fields = self.fields(node, "`yields`", &["path", "shared", "scope", "for"])?;
            if let Some(flag) = find(fields, "shared") {
                owned.shared = self.flag(flag, "shared")?;
            }
            if let Some(scope) = find(fields, "scope") {
                let words = [("grant", false), ("identity", true)];
                owned.by_identity = self.word(scope, "scope", &words)?;
            }
            if let Some(keep) = find(fields, "for") {
                owned.keep = self.window(keep, "for")?;
            }
            let Some(path) = find(fields, "path") else {
                self.missing(node.span, "`yields`", "path", "path: result.id");
                return None;
            };
            owned.path = self.owned_path(path, "result", Root::Result)?;
        } else {
            owned.path = self.owned_path(node, "result", Root::Result)?;
        }
        Some(owned)
    }

    pub(super) fn ends(&mut self, members: &[Member]) -> Vec<Ends> {
        let Some(node) = find(members, "ends") else { return Vec::new() };
        let Some(kinds) = self.members(node, "ends") else { return Vec::new() };
        kinds
            .iter()
            .filter_map(|Member { key: kind, value }| {
                let path = self.owned_path(value, "args", Root::Args)?;
                Some(Ends { kind: kind.text.clone(), path })
            })
            .collect()
    }

    fn owned_path(&mut self, node: &Node, word: &str, root: Root) -> Option<Path> {
        let Value::Text(text) = node.value() else {
            self.bad_ownership(node.span, format!("{} is not a path", type_name(node)), word);
            return None;
        };
        match Path::under(word, root, text) {
            Ok(path) if path.is_single() => Some(path),
            Ok(_) => {
                self.bad_ownership(node.span, format!("`{text}` gives several values"), word);
                None
            }
            Err(error) => {
                self.bad_ownership(node.span, error.message, word);
                None
            }
        }
    }

    fn bad_ownership(&mut self, span: Span, message: String, word: &str) {
        self.findings.add(
            Code::BadOwnership,
            span,
            message,
            format!("write `KIND: {word}.NAME`, as in `job: {word}.session_id`"),
        );
    }
}
