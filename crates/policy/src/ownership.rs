//! Ownership of ids: what a result yields and ends.

use toolgate_json::walk::Walk;

use crate::{
    Call, Policy, Window,
    json::{self, Malformed, Value},
    path::{Path, Segment},
    truth::{Facts, owned_value},
};

/// A value that a result yields to the grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Yielded {
    /// The server it belongs to.
    pub server: String,
    /// What kind of thing it is.
    pub kind: String,
    /// Its one spelling: a JSON string, or an integer.
    pub value: String,
    /// How long it is remembered.
    pub keep: Window,
    /// Several grants may own it.
    pub shared: bool,
    /// All grants of the identity own it.
    pub by_identity: bool,
}

/// A value that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The server it belonged to.
    pub server: String,
    /// What kind of thing it was.
    pub kind: String,
    /// Its one spelling.
    pub value: String,
}

/// The changes of ownership by a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Yielded to the grant.
    pub yields: Vec<Yielded>,
    /// Ended.
    pub ends: Vec<Ended>,
}

impl Policy {
    /// Whether results of this call can yield or end anything.
    pub fn watches_result(&self, call: &Call<'_>) -> bool {
        let entries = self.entries(call);
        entries.iter().any(|entry| !entry.yields.is_empty() || !entry.ends.is_empty())
    }

    /// What the raw `CallToolResult` yields and ends. A result with `isError`, or one that cannot
    /// be read, does neither.
    pub fn outcome(&self, call: &Call<'_>, result: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let Ok(false) = is_error(result) else { return outcome };
        let facts = Facts::new(call);
        for entry in self.entries(call) {
            for yields in &entry.yields {
                if let Some(value) = in_result(result, &yields.path) {
                    outcome.yields.push(Yielded {
                        server: call.server.to_owned(),
                        kind: yields.kind.clone(),
                        value,
                        keep: yields.keep,
                        shared: yields.shared,
                        by_identity: yields.by_identity,
                    });
                }
            }
            for ends in &entry.ends {
                let value = facts.value(&ends.path).ok().flatten();
                if let Some(value) = value.as_ref().and_then(owned_value) {
                    let (server, kind) = (call.server.to_owned(), ends.kind.clone());
                    outcome.ends.push(Ended { server, kind, value });
                }
            }
        }
        outcome
    }
}

fn is_error(result: &str) -> Result<bool, Malformed> {
    Ok(match json::member(result, "isError")? {
        Some(raw) => !matches!(Value::of(raw)?, Value::Bool(false)),
        None => false,
    })
}

/// In `structuredContent`, else in a text block that is a JSON object.
fn in_result(result: &str, path: &Path) -> Option<String> {
    if let Ok(Some(structured)) = json::member(result, "structuredContent")
        && let Some(value) = at(structured.text, &path.segments)
    {
        return Some(value);
    }
    let content = json::member(result, "content").ok()??;
    let mut blocks = Walk::list(content.text).ok()?;
    while let Some(block) = blocks.element().ok()? {
        let Ok(Some(text)) = json::member(block.text, "text") else { continue };
        let Ok(Value::String(text)) = Value::of(text) else { continue };
        if let Some(value) = at(&text, &path.segments) {
            return Some(value);
        }
    }
    None
}

fn at(object: &str, segments: &[Segment]) -> Option<String> {
    let mut raw = object;
    for segment in segments {
        raw = match (segment, Value::read(raw).ok()?) {
            (Segment::Key(name), Value::Object(object)) => json::member(object, name).ok()??.text,
            (Segment::Index(index), Value::List(list)) => {
                let mut items = Walk::list(list).ok()?;
                for _ in 0..*index {
                    items.element().ok()??;
                }
                items.element().ok()??.text
            }
            _ => return None,
        };
    }
    owned_value(&Value::read(raw).ok()?)
}

#[cfg(test)]
mod tests;
