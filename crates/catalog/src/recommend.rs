//! The recommended rule of a tool, as the built-in policy `recommended` has it per class.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::class::Class;
use crate::classify::Assessment;

/// A rule for one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recommended {
    /// The limit: counter and calls per minute.
    pub limit: Option<(String, u32)>,
    /// Whether every call waits for a person.
    pub approve: bool,
    /// Why every call is denied.
    pub deny: Option<&'static str>,
}

/// The rule for a tool. A tool with hidden text is denied until a person has looked at it.
pub fn recommended(tool: &str, found: &Assessment, has_hidden_text: bool) -> Recommended {
    rule(tool, found.class, found.asks_for_person(), has_hidden_text)
}

pub(crate) fn rule(tool: &str, class: Class, asks: bool, has_hidden_text: bool) -> Recommended {
    if has_hidden_text {
        let deny = Some("its definition contains hidden text");
        return Recommended { deny, ..Recommended::default() };
    }
    let per_minute = match class {
        Class::Write => Some(30),
        Class::Other => Some(60),
        _ => None,
    };
    let critical = matches!(class, Class::Execute | Class::Destructive | Class::Financial);
    Recommended {
        limit: per_minute.map(|max| (counter(tool), max)),
        approve: critical || asks,
        deny: None,
    }
}

/// `<tool>_rate`, or the template that gives it where the name cannot be part of a counter's name.
fn counter(tool: &str) -> String {
    const LONGEST: usize = 128 - "_rate".len();
    let is_plain = !tool.contains(['{', '}']) && !tool.starts_with("global.") && !tool.is_empty();
    if is_plain && tool.len() <= LONGEST { format!("{tool}_rate") } else { "{tool}_rate".into() }
}

impl Serialize for Recommended {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Limit<'a> {
            counter: &'a str,
            window: &'a str,
            max: u32,
        }
        #[derive(Serialize)]
        struct Empty {}
        let mut map = serializer.serialize_map(None)?;
        if let Some(reason) = self.deny {
            map.serialize_entry("action", "deny")?;
            map.serialize_entry("reason", reason)?;
        }
        if self.approve {
            map.serialize_entry("approve", &Empty {})?;
        }
        if let Some((counter, max)) = &self.limit {
            let limit = Limit { counter, window: "minute", max: *max };
            map.serialize_entry("limits", &[limit])?;
        }
        map.end()
    }
}
