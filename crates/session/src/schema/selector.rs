//! The properties that select a session.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::arguments::{INFOBASE_NAME, KIND, SESSION_ID};
use crate::settings::Selectors;

/// A session that serves a tool, as the description of the selector shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServingSession<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) infobase_name: &'a str,
    pub(crate) kind: &'a str,
}

/// More sessions than this are not listed.
pub(crate) const MAX_LISTED: usize = 20;

/// The selectors that a schema publishes.
#[derive(Debug, Clone)]
pub(super) struct SelectorRules {
    /// Selectors besides `session_id`. A selector that is an argument of the tool is not among
    /// them: its value belongs to the tool.
    others: Vec<&'static str>,
    any: bool,
}

/// The selectors of one schema.
pub(super) struct SelectorProperties {
    /// Names and schemas, `session_id` first.
    pub(super) properties: Vec<(&'static str, Value)>,
    /// Whether `session_id` is required.
    pub(super) required: bool,
}

impl SelectorRules {
    pub(super) fn new(selectors: Selectors, is_argument: impl Fn(&str) -> bool) -> Self {
        let any = selectors == Selectors::Any;
        let others = [INFOBASE_NAME, KIND].into_iter().filter(|key| any && !is_argument(key));
        Self { others: others.collect(), any }
    }

    /// The selectors of a schema that these sessions serve, at most `most` of them in the `enum`.
    pub(super) fn write(
        &self,
        sessions: &[ServingSession<'_>],
        most: usize,
        required: bool,
    ) -> SelectorProperties {
        let mut selector = json!({ "type": "string", "description": self.description(sessions) });
        if !sessions.is_empty()
            && sessions.len() <= most
            && let Some(selector) = selector.as_object_mut()
        {
            let ids: Vec<&str> = sessions.iter().map(|session| session.session_id).collect();
            selector.insert("enum".to_owned(), ids.into());
        }
        let mut properties = vec![(SESSION_ID, selector)];
        for key in &self.others {
            let what = if *key == KIND { "kind" } else { "infobase (in any letter case)" };
            let description = format!(
                "Routing selector: {what} of the session that runs this call; may replace {SESSION_ID} if one session is left. Not passed to the tool."
            );
            properties.push((*key, json!({ "type": "string", "description": description })));
        }
        SelectorProperties { properties, required: required && !self.any }
    }

    fn description(&self, sessions: &[ServingSession<'_>]) -> String {
        let mut text = String::from(
            "Routing selector: id of the session that runs this call. Not passed to the tool.",
        );
        if !self.others.is_empty() {
            let others = self.others.join(" or ");
            text.extend([" ", &others, " may replace it if one session is left."]);
        }
        if sessions.is_empty() || sessions.len() > MAX_LISTED {
            text.push_str(" See session_list.");
        } else {
            let listed: Vec<String> = sessions.iter().map(ServingSession::shown).collect();
            text.extend([" Sessions (infobase, kind): ", &listed.join("; "), "."]);
        }
        text
    }
}

impl ServingSession<'_> {
    /// Every tool of a list repeats this, so it is short, and long names are cut.
    fn shown(&self) -> String {
        let [id, infobase, kind] = [self.session_id, self.infobase_name, self.kind].map(cut);
        format!("`{id}` ({infobase}, {kind})")
    }
}

/// The longest name in a description, in characters.
const LONGEST: usize = 80;

fn cut(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or_default()).into(),
        None => name.into(),
    }
}
