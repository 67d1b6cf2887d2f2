//! A tour as used by the comparison: which steps expect an answer, and what may vary and why.

use std::fmt;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::Place;
use super::tree::Tree;

/// How the server is reached: some values vary only over one of them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Link {
    Stdio,
    Http,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Tour {
    steps: Vec<Step>,
    /// Why this server, when asked directly to resume a stream, repeats earlier messages. Through
    /// toolgate nothing is repeated.
    pub(super) repeats: Option<String>,
    /// The only allowed differences.
    varying: Vec<Rule>,
}

/// The parts of a step that matter here; the drivers read the rest.
#[derive(Debug, Deserialize)]
struct Step {
    name: Option<String>,
    call: Option<String>,
    request: Option<String>,
    #[serde(default)]
    cancel: bool,
}

/// One value that varies from run to run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    step: Option<String>,
    incoming: Option<String>,
    #[serde(default)]
    path: String,
    pub(super) mask: Mask,
    /// Only when the server is reached in this way.
    only: Option<Link>,
    /// For the reader of the table.
    reason: String,
}

/// What of a value is not compared.
#[derive(Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mask {
    /// The whole scalar.
    Value,
    /// Every UUID in a text.
    Uuid,
    /// The rest of a text after this prefix.
    After(String),
    /// How often the message was sent, if at all; those on both sides are compared.
    Count,
}

impl Tour {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("not a tour")
    }

    pub(super) fn rules(&self, link: Link) -> impl Iterator<Item = &Rule> {
        self.varying.iter().filter(move |rule| rule.only.is_none_or(|only| only == link))
    }

    /// Whether a tool is called in this step.
    pub(super) fn is_call(&self, name: &str) -> bool {
        let step = self.steps.iter().find(|step| step.name.as_deref() == Some(name));
        step.is_some_and(|step| {
            step.call.is_some() || step.request.as_deref() == Some("tools/call")
        })
    }

    /// Complaints about steps that were not answered exactly once.
    pub(super) fn unanswered(&self, side: &str, answered: &[&str]) -> Vec<String> {
        let asked = self.steps.iter().filter_map(|step| Some((step.name.as_deref()?, step.cancel)));
        let asked = std::iter::once(("initialize", false)).chain(asked);
        let mut found = Vec::new();
        for (name, cancelled) in asked {
            let count = answered.iter().filter(|answer| **answer == name).count();
            if count != usize::from(!cancelled) {
                found.push(format!("step `{name}`: answered {count} times {side}"));
            }
        }
        found
    }
}

impl Rule {
    pub(super) fn is_for(&self, place: &Place) -> bool {
        match place {
            Place::Step(step) => self.step.as_ref() == Some(step),
            Place::Method(method) => self.incoming.as_ref() == Some(method),
        }
    }

    /// Masks what the rule names; returns whether it matched.
    pub(super) fn apply(&self, message: &mut Tree) -> bool {
        if self.mask == Mask::Count {
            return false;
        }
        // As in a JSON pointer: `~1` is a slash within a name.
        let path: Vec<String> = self.path.split('/').map(|name| name.replace("~1", "/")).collect();
        let mut leaves = Vec::new();
        message.leaves_at(&path, &mut leaves);
        let mut any = false;
        for leaf in leaves {
            let masked = self.mask.of(leaf);
            any |= masked != *leaf;
            *leaf = masked;
        }
        any
    }
}

impl Mask {
    fn of(&self, text: &str) -> String {
        match self {
            Self::Value => "(varies)".to_owned(),
            Self::Uuid => without_uuids(text),
            Self::After(words) => match text.split_once(words) {
                Some((before, _)) => format!("{before}{words}(varies)"),
                None => text.to_owned(),
            },
            Self::Count => text.to_owned(),
        }
    }
}

fn without_uuids(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
        let lengths: Vec<usize> = word.split('-').map(str::len).collect();
        result += before;
        result += if lengths == [8, 4, 4, 4, 12] { "(uuid)" } else { word };
        rest = after;
    }
    result + rest
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.step.as_deref().or(self.incoming.as_deref()).unwrap_or("(nowhere)");
        write!(f, "{place}: {} {:?} ({})", self.path, self.mask, self.reason)
    }
}
