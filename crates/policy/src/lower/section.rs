//! `resources`, `prompts` and `methods`.

use super::{Reader, find, pointer};

use crate::{
    Code,
    model::{Pattern, Section},
    syntax::{Member, Node},
};

impl Reader<'_, '_> {
    /// A section of this name. Without a `default` of its own it uses the document's.
    pub(super) fn section(
        &mut self,
        members: &[Member],
        name: &'static str,
        default_allow: bool,
    ) -> Section {
        let mut section = Section { default_allow, ..Section::default() };
        let Some(node) = find(members, name) else { return section };
        // Methods are not listed, so they cannot be hidden.
        let keys: &[&'static str] = match name {
            "methods" => &["default", "allow", "deny"],
            _ => &["default", "allow", "hide", "deny"],
        };
        let Some(fields) = self.fields(node, &format!("`{name}`"), keys) else { return section };
        let words = [("allow", true), ("deny", false)];
        if let Some(node) = find(fields, "default") {
            section.default_allow = self.word(node, "default", &words).unwrap_or(false);
        }
        for Member { key, value: list } in fields {
            let patterns = match key.text.as_str() {
                "allow" => &mut section.allow,
                "hide" => &mut section.hide,
                "deny" => &mut section.deny,
                _ => continue,
            };
            *patterns = self.patterns(list, name, &key.text);
        }
        self.without_effect(&section, name);
        section
    }

    fn patterns(&mut self, list: &Node, section: &str, key: &str) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        for (index, item) in self.list(list, key).iter().enumerate() {
            let Some(text) = self.string(item, key) else { continue };
            let Some(glob) = self.glob(text, item.span) else { continue };
            let rule = pointer(&format!("/{section}/{key}"), &index.to_string());
            if section == "methods" {
                self.covered(key, text, item);
            }
            let read = if section == "resources" { glob.of_uris() } else { glob.folded() };
            let text = text.to_owned();
            patterns.push(Pattern { glob, read, text, rule, span: item.span });
        }
        patterns
    }

    /// Reports a method that another section decides, or that needs no permission.
    fn covered(&mut self, key: &str, text: &str, item: &Node) {
        if decides(text) {
            return;
        }
        let code = if key == "deny" { Code::UncoveredMethod } else { Code::Unreachable };
        self.findings.add(
            code,
            item.span,
            format!("`methods` does not decide `{text}`"),
            "tools, resources and prompts have sections of their own; lists, handshakes and notifications need no permission",
        );
    }

    fn without_effect(&mut self, section: &Section, name: &str) {
        for pattern in &section.allow {
            let stricter =
                section.hide.iter().chain(&section.deny).find(|s| s.text == pattern.text);
            let why = match stricter {
                Some(stricter) => format!("`{}` is stricter", stricter.rule),
                None if section.default_allow => {
                    format!("`{name}` already allows everything that it does not deny")
                }
                None => continue,
            };
            self.findings.add(
                Code::Unreachable,
                pattern.span,
                format!("`{}` can never apply: {why}", pattern.rule),
                "remove the entry, or write `default: deny`",
            );
        }
    }
}

/// Requests that need no permission. Equal to `method::CLOSED` of `mcp`; a test in `admission`
/// compares the two.
pub const METHODS_WITHOUT_PERMISSION: [&str; 10] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "logging/setLevel",
    "resources/unsubscribe",
    "subscriptions/listen",
];

/// Requests that other sections decide.
const OTHER_SECTIONS: [&str; 5] =
    ["tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete"];

/// Whether `methods` decides requests with this method.
fn decides(name: &str) -> bool {
    !OTHER_SECTIONS.contains(&name)
        && !METHODS_WITHOUT_PERMISSION.contains(&name)
        && !name.starts_with("notifications/")
}
