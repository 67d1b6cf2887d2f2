//! The last complete list of a server's tools. A list of the same definitions in the same order is
//! recognised by comparing bytes; nothing of it is parsed, judged or learned again.
//!
//! Invariant: only a text that consists of exactly these definitions is recognised.
//!
//! Start at [`ServerPins::list_of`] and [`ToolList::is_in`].

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_json::walk::Walk;
use toolgate_json::{imitates, peek};

use super::{Facts, Met, ServerPins, State};

/// The members of a result that must not be imitated.
const MEMBERS: [&str; 2] = ["tools", "nextCursor"];

/// The tools of one list, in its order.
#[derive(Debug, Default)]
pub(crate) struct ToolList {
    tools: Vec<Met>,
    /// The last definition of each name.
    by_name: HashMap<Box<str>, Arc<Facts>>,
}

impl ToolList {
    fn new(tools: Vec<Met>) -> Self {
        let by_name = tools.iter().cloned().collect();
        Self { tools, by_name }
    }

    /// The tools, in the order of the list.
    pub(crate) fn tools(&self) -> &[Met] {
        &self.tools
    }

    /// What is known of a tool.
    pub(crate) fn facts(&self, own: &str) -> Option<&Arc<Facts>> {
        self.by_name.get(own)
    }

    /// Whether the server's result `result` is this list: all of it, on one page, without members
    /// that parsers may read differently.
    pub(crate) fn is_in(&self, result: &str) -> bool {
        self.find_in(result).is_some()
    }

    fn find_in(&self, result: &str) -> Option<()> {
        let mut walk = Walk::object(result).ok()?;
        let mut is_found = false;
        while let Some(key) = walk.key().ok()? {
            let name = (!key.is_escaped()).then(|| key.string().ok()).flatten()?;
            let value = walk.value().ok()?.text;
            if *name == *"tools" {
                if std::mem::replace(&mut is_found, true) || !self.is(value) {
                    return None;
                }
                continue;
            }
            let is_known = match &*name {
                "nextCursor" => value == "null",
                other => imitates(other, &MEMBERS).is_none(),
            };
            // What is large may not be validated yet.
            if !is_known || value.len() >= peek::LARGE || !peek::is_sound(value, result) {
                return None;
            }
        }
        (is_found && walk.rest().trim_matches(BLANKS).is_empty()).then_some(())
    }

    /// Whether an array consists of these definitions.
    fn is(&self, array: &str) -> bool {
        let mut rest = array;
        for (index, (_, facts)) in self.tools.iter().enumerate() {
            let before = if index == 0 { '[' } else { ',' };
            let Some(definition) = facts.definition.as_deref() else { return false };
            let entry = rest.trim_start_matches(BLANKS).strip_prefix(before);
            // A definition is a whole object, so a text that begins with it has this very entry.
            let after =
                entry.and_then(|entry| entry.trim_start_matches(BLANKS).strip_prefix(definition));
            let Some(after) = after else { return false };
            rest = after;
        }
        !self.tools.is_empty() && rest.trim_start_matches(BLANKS) == "]"
    }

    fn is_of(&self, met: &[Met]) -> bool {
        let is_same =
            |(one, other): (&Met, &Met)| Arc::ptr_eq(&one.1, &other.1) && one.0 == other.0;
        self.tools.len() == met.len() && self.tools.iter().zip(met).all(is_same)
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

impl ServerPins {
    /// The last complete list that was met.
    pub(crate) fn last_list(&self) -> Option<Arc<ToolList>> {
        self.state.read().last.clone()
    }

    /// The list of these tools, which were met. It is remembered as the last one, unless some of its
    /// definitions are not kept or are not the newest.
    pub(crate) fn list_of(&self, met: Vec<Met>) -> Arc<ToolList> {
        if let Some(last) = self.last_list().filter(|last| last.is_of(&met)) {
            return last;
        }
        let list = Arc::new(ToolList::new(met));
        let mut state = self.state.write();
        state.last = list.tools.iter().all(|met| state.keeps(met)).then(|| Arc::clone(&list));
        list
    }
}

impl State {
    fn keeps(&self, (own, facts): &Met) -> bool {
        let is_whole = facts.definition.is_some() && !facts.is_ambiguous;
        is_whole && self.seen.get(own).is_some_and(|seen| Arc::ptr_eq(seen, facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = r#"{"name":"a","inputSchema":{"type":"object"}}"#;
    const B: &str = r#"{"name":"b"}"#;

    fn met(own: &str, raw: &str) -> Met {
        (own.into(), Arc::new(Facts::of(own, raw)))
    }

    fn list() -> ToolList {
        ToolList::new(vec![met("a", A), met("b", B)])
    }

    #[test]
    fn only_the_same_list_is_recognised() {
        let long = "x".repeat(peek::LARGE);
        let results = [
            (format!(r#"{{"tools":[{A},{B}]}}"#), true),
            (format!(" {{ \"tools\" :\n[ {A} ,\t{B} ] , \"nextCursor\" : null }} "), true),
            (format!(r#"{{"_meta":{{"a":[1]}},"tools":[{A},{B}],"ttlMs":0}}"#), true),
            (format!(r#"{{"tools":[{A},{B}],"nextCursor":"2"}}"#), false),
            (format!(r#"{{"tools":[{B},{A}]}}"#), false),
            (format!(r#"{{"tools":[{A}]}}"#), false),
            (format!(r#"{{"tools":[{A},{B},{B}]}}"#), false),
            (format!(r#"{{"tools":[{A} {B}]}}"#), false),
            (format!(r#"{{"tools":[{A},{B},]}}"#), false),
            (format!(r#"{{"tools":[{A},{B}"#), false),
            (format!(r#"{{"tools":[{A},{B}]}}}}"#), false),
            (format!(r#"{{"tools":[{A},{B}],"tools":[{A},{B}]}}"#), false),
            (format!(r#"{{"tools":[{A},{B}],"Tools":[]}}"#), false),
            (format!(r#"{{"tools":[{A},{B}],"nextcursor":null}}"#), false),
            (format!(r#"{{"tools":[{A},{B}],"\u0074ools":[]}}"#), false),
            (format!(r#"{{"tools":[{A},{B}],"x":"{long}"}}"#), false),
            (format!(r#"{{"tools":{A}}}"#), false),
            (r#"{"tools":[]}"#.to_owned(), false),
            ("[]".to_owned(), false),
        ];
        for (result, expected) in results {
            let shown = result.get(..200).unwrap_or(&result);
            assert_eq!(list().is_in(&result), expected, "{shown}");
        }
        assert!(!ToolList::default().is_in(r#"{"tools":[]}"#));
    }

    #[test]
    fn a_value_that_is_not_json_is_not_recognised() {
        let long = format!(r#"{{"name":"c","description":"{}"}}"#, "x".repeat(peek::LARGE));
        let list = ToolList::new(vec![met("c", &long)]);
        assert!(list.is_in(&format!(r#"{{"tools":[{long}],"x":1}}"#)));
        assert!(!list.is_in(&format!(r#"{{"tools":[{long}],"x":{{1}}}}"#)));
    }
}
