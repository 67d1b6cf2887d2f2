//! Decides resources by URI, and prompts and methods by name.
//!
//! Invariant: the stricter wins: hide, then deny, then `allow` under `default: deny`.
//! Invariant: `hide` and `deny` match every spelling that a server may take for a URI or method;
//! `allow` must match all of them.

use std::borrow::Cow;

use jiff::Timestamp;
use toolgate_json::fold;

use crate::{
    Effect, Policy, Verdict,
    decide::let_pass,
    model::{Pattern, Section},
    uri::Readings,
};

impl Policy {
    /// Decides `resources/read`, subscriptions and completions, by URI.
    pub fn decide_resource(&self, uri: &str, now: Timestamp) -> Verdict {
        let section = &self.document.resources;
        self.decide_section(section, "resource", uri, &Names::uri(uri), now)
    }

    /// Decides `prompts/get` and completions, by name.
    pub fn decide_prompt(&self, name: &str, now: Timestamp) -> Verdict {
        let section = &self.document.prompts;
        self.decide_section(section, "prompt", name, &Names::Exact(name), now)
    }

    /// Decides every method that is not about tools, resources or prompts and needs permission.
    pub fn decide_method(&self, name: &str, now: Timestamp) -> Verdict {
        let section = &self.document.methods;
        self.decide_section(section, "method", name, &Names::Folded(name, fold(name)), now)
    }

    /// Whether a list shows this resource or template: it is not hidden, and open by default or
    /// named by `allow`.
    pub fn lists_resource(&self, uri: &str, now: Timestamp) -> bool {
        self.is_shadow(now) || self.document.resources.is_listed(&Names::uri(uri))
    }

    /// Whether a list shows this prompt.
    pub fn lists_prompt(&self, name: &str, now: Timestamp) -> bool {
        self.is_shadow(now) || self.document.prompts.is_listed(&Names::Exact(name))
    }

    fn decide_section(
        &self,
        section: &Section,
        what: &str,
        name: &str,
        names: &Names<'_>,
        now: Timestamp,
    ) -> Verdict {
        let refused = |effect, rule, why: &str| {
            Verdict::refused(effect, rule, format!("the {what} `{name}` is {why}; do not retry"))
        };
        let verdict = if section.hide.iter().any(|pattern| names.may_be(pattern)) {
            refused(Effect::Hide, self.implicit.hidden.clone(), "not available under this policy")
        } else if let Some(pattern) = section.deny.iter().find(|pattern| names.may_be(pattern)) {
            refused(Effect::Deny, pattern.rule.clone(), "denied by this policy")
        } else if section.opens(names) {
            return Verdict::allowed();
        } else {
            refused(
                Effect::Deny,
                self.implicit.default_deny.clone(),
                "not permitted by this policy",
            )
        };
        if self.is_shadow(now) { let_pass(verdict) } else { verdict }
    }
}

impl Section {
    fn is_listed(&self, names: &Names<'_>) -> bool {
        !self.hide.iter().any(|pattern| names.may_be(pattern)) && self.opens(names)
    }

    /// Whether it lets this pass if nothing stricter matches.
    fn opens(&self, names: &Names<'_>) -> bool {
        self.default_allow || self.allow.iter().any(|pattern| names.is(pattern))
    }
}

/// The readings of a name.
enum Names<'n> {
    /// The name as received: servers list prompts, so a prompt is identified by it.
    Exact(&'n str),
    /// The name and its folded form.
    Folded(&'n str, Cow<'n, str>),
    Uri(Readings),
}

impl<'n> Names<'n> {
    fn uri(uri: &'n str) -> Self {
        Self::Uri(Readings::of(uri))
    }

    /// Whether some reading matches.
    fn may_be(&self, pattern: &Pattern) -> bool {
        let Pattern { glob, read, .. } = pattern;
        match self {
            Self::Exact(name) => glob.matches(name),
            Self::Folded(name, folded) => glob.matches(name) || read.matches(folded),
            Self::Uri(readings) => readings.any(|uri| glob.matches(uri) || read.matches(uri)),
        }
    }

    /// Whether every reading matches.
    fn is(&self, pattern: &Pattern) -> bool {
        let Pattern { glob, read, .. } = pattern;
        match self {
            Self::Exact(name) => glob.matches(name),
            Self::Folded(name, folded) => glob.matches(name) && read.matches(folded),
            Self::Uri(readings) => readings.all(|uri| glob.matches(uri) || read.matches(uri)),
        }
    }
}
