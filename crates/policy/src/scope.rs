//! Whether a policy can allow anything on a server.

use jiff::Timestamp;

use crate::{
    Policy,
    model::{Action, Entry},
};

impl Policy {
    /// Whether some request to `server` can be allowed or held. `false` is certain; `true` may
    /// still turn out to be a refusal of every single call.
    pub fn may_allow(&self, server: &str, now: Timestamp) -> bool {
        let document = &self.document;
        let sections = [&document.resources, &document.prompts, &document.methods];
        self.is_shadow(now)
            || document.default_allow
            || self.opens_tools(server, now)
            || sections.iter().any(|section| section.default_allow || !section.allow.is_empty())
    }

    /// Whether, under `default: deny`, an entry opens a tool of the server.
    fn opens_tools(&self, server: &str, now: Timestamp) -> bool {
        let enforced = |entry: &Entry| !entry.shadow.holds_at(now);
        let shut = |entry: &Entry| {
            enforced(entry) && matches!(entry.action, Some(Action::Deny | Action::Hide))
        };
        let opens = |entry: &Entry| entry.names && enforced(entry) && !shut(entry);
        let reaches = |key: &crate::model::ToolKey| {
            key.server.as_ref().is_none_or(|glob| glob.matches(server))
        };
        let document = &self.document;
        document.tools.iter().any(|(key, entry)| reaches(key) && opens(entry))
            || document.classes.iter().any(|(_, entry)| opens(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Known;

    #[test]
    fn a_policy_that_allows_nothing_is_known() {
        let cases = [
            ("default: deny", false),
            ("default: allow", true),
            ("default: deny\nmode: shadow", true),
            ("default: deny\ntools: { get_a: {} }", true),
            ("default: deny\ntools: { files/get_a: {} }", true),
            ("default: deny\ntools: { other/get_a: {} }", false),
            ("default: deny\ntools: { get_a: { action: deny } }", false),
            ("default: deny\ntools: { get_a: { action: hide } }", false),
            ("default: deny\nclasses: { read: { action: allow } }", true),
            ("default: deny\nclasses: { read: { action: deny } }", false),
            ("default: deny\nresources: { allow: ['file:///a/*'] }", true),
            ("default: deny\nprompts: { default: allow }", true),
            ("default: deny\nresources: { deny: ['*'] }", false),
        ];
        for (text, expected) in cases {
            let text = format!("version: '1'\n{text}\n");
            let known = Known { servers: vec!["files".into(), "other".into()], ..Known::default() };
            let loaded = Policy::load("p", &text, &known);
            let policy = loaded.policy.unwrap_or_else(|| panic!("{text}: {:?}", loaded.problems));
            assert_eq!(policy.may_allow("files", Timestamp::UNIX_EPOCH), expected, "{text}");
        }
    }
}
