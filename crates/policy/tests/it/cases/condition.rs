//! Rows of truth: one predicate, one set of arguments, and its truth on either side.

use serde::Deserialize;
use serde_json::Value;
use toolgate_policy::{Call, Class, Effect, Identity, Known, Policy, SessionFacts, UNUSED, decide};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Row {
    /// `path op value`, the value as JSON.
    r#if: Option<String>,
    /// A whole predicate, as JSON.
    predicate: Option<String>,
    /// Raw arguments.
    args: String,
    /// In `require`: yes, no, error.
    require: String,
    /// In `deny_if` and `approve_if`: yes, no, error.
    matches: String,
    /// Local time, UTC.
    at: Option<String>,
    timezone: Option<String>,
}

pub(crate) fn run_condition(row: &Row) -> Result<(), String> {
    let predicate = match (&row.r#if, &row.predicate) {
        (Some(text), None) => {
            let (path, rest) = text.split_once(' ').ok_or("no operator")?;
            let (op, value) = rest.split_once(' ').ok_or("no value")?;
            let value: Value = serde_json::from_str(value).map_err(|e| e.to_string())?;
            format!(
                r#"{{"conditions":[{{"path":{},"op":"{op}","value":{value}}}]}}"#,
                Value::String(path.to_owned())
            )
        }
        (None, Some(predicate)) => predicate.clone(),
        _ => return Err("exactly one of `if` and `predicate`".to_owned()),
    };
    let require = truth(row, "require", &predicate)?;
    let deny = truth(row, "deny_if", &predicate)?;
    let hold = truth(row, "approve_if", &predicate)?;
    if (require, deny, hold) == (&row.require, &row.matches, &row.matches) {
        Ok(())
    } else {
        Err(format!("require {require}, deny_if {deny}, approve_if {hold}"))
    }
}

/// The truth of a predicate in one place of a document, told from the verdict.
fn truth(row: &Row, place: &str, predicate: &str) -> Result<&'static str, String> {
    let timezone = row.timezone.as_deref().unwrap_or("UTC");
    let document = format!(
        r#"{{"version":"1","default":"allow","timezone":"{timezone}","tools":{{"x":{{"{place}":[{predicate}]}}}}}}"#
    );
    let loaded = Policy::load("p", &document, &Known::default());
    let policy = loaded.policy.ok_or_else(|| format!("invalid: {:?}", loaded.problems))?;
    let groups = ["ops".to_owned(), "sales".to_owned()];
    let arguments = if row.args.is_empty() { "{}" } else { &row.args };
    let call = Call {
        grant: "laptop",
        identity: Some(Identity { name: "desk", groups: &groups }),
        session: Some(SessionFacts {
            kind: Some("1c"),
            infobase_name: Some("trade"),
            host_id: None,
        }),
        ..Call::new("srv", "x", Class::Write, arguments)
    };
    let now = row.at.as_deref().unwrap_or("2026-01-05T00:00:00Z");
    let now = now.parse().map_err(|e| format!("{e}"))?;
    let verdict = decide(&policy, &call, &UNUSED, now);
    let spoke = verdict.effect != Effect::Allow;
    let error = verdict.message.contains("cannot decide");
    if spoke && verdict.rule.as_deref() != Some(&format!("/tools/x/{place}/0")) {
        return Err(format!("wrong rule {:?}", verdict.rule));
    }
    if place == "approve_if" && spoke && (verdict.effect == Effect::Hold) == error {
        return Err(format!("{:?} with {}", verdict.effect, verdict.message));
    }
    Ok(match (place, spoke, error) {
        (_, true, true) => "error",
        ("require", spoke, _) => {
            if spoke {
                "no"
            } else {
                "yes"
            }
        }
        (_, true, _) => "yes",
        (_, false, _) => "no",
    })
}
