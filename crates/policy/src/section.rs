//! Resources by URI and prompts by name: hidden, denied, or open.

use jiff::Timestamp;

use crate::{Effect, Policy, Shadowed, Verdict, model::Section};

impl Policy {
    /// Decides `resources/read` and subscriptions, by URI. Without a `resources` section all are
    /// open.
    pub fn decide_resource(&self, uri: &str, now: Timestamp) -> Verdict {
        self.decide_section(&self.document.resources, "resource", uri, now)
    }

    /// Decides `prompts/get`, by name. Without a `prompts` section all are open.
    pub fn decide_prompt(&self, name: &str, now: Timestamp) -> Verdict {
        self.decide_section(&self.document.prompts, "prompt", name, now)
    }

    /// Decides every method that is not about tools, resources or prompts and needs permission.
    pub fn decide_method(&self, name: &str, now: Timestamp) -> Verdict {
        let section = Section { default_allow: self.document.default_allow, ..Section::default() };
        self.decide_section(&section, "method", name, now)
    }

    fn decide_section(&self, section: &Section, what: &str, name: &str, now: Timestamp) -> Verdict {
        let refused = |effect, rule, why: &str| {
            Verdict::refused(effect, rule, format!("the {what} `{name}` is {why}; do not retry"))
        };
        let verdict = if section.hide.iter().any(|(glob, _)| glob.matches(name)) {
            refused(Effect::Hide, self.words.hidden.clone(), "not available under this policy")
        } else if let Some((.., rule)) = section.deny.iter().find(|(glob, ..)| glob.matches(name)) {
            refused(Effect::Deny, rule.clone(), "denied by this policy")
        } else if section.default_allow {
            return Verdict::allowed();
        } else {
            refused(Effect::Deny, self.words.default_deny.clone(), "not permitted by this policy")
        };
        if !self.is_shadow(now) {
            return verdict;
        }
        let Verdict { effect, refusal, rule, rules, .. } = verdict;
        let shadow = rule.map(|rule| Box::new(Shadowed { effect, refusal, rule }));
        Verdict { rules, shadow, ..Verdict::allowed() }
    }
}
