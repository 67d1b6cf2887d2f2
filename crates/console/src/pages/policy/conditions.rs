//! Edits of the conditions of an entry: one condition changes, every other byte stays.

use serde_json::Value;
use toolgate_policy::{NotEdited, add_item, remove_item, set_member};

use super::choices::LISTS;
use super::edit::tree;
use crate::look::Look as _;
use crate::recommended::flow as flow_of;

/// A condition as the form sends it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConditionEdit<'a> {
    /// `deny_if`, `approve_if` or `require`.
    pub(crate) list: &'a str,
    /// `0.1`: the predicate, and the condition in it; empty for a new one.
    pub(crate) at: &'a str,
    pub(crate) path: &'a str,
    pub(crate) op: &'a str,
    pub(crate) value: &'a str,
    /// It is removed.
    pub(crate) is_removed: bool,
}

/// Changes, adds or removes one condition of an entry.
pub(crate) fn edit_condition(
    document: &str,
    (section, key): (&str, &str),
    wanted: ConditionEdit<'_>,
) -> Result<String, NotEdited> {
    let section = if section == "classes" { "classes" } else { "tools" };
    let Some((list, _)) = LISTS.into_iter().find(|(list, _)| *list == wanted.list) else {
        return Err(NotEdited::NotAMapping);
    };
    let is_json = document.trim_start().starts_with('{');
    let text = |value: &Value| if is_json { value.to_string() } else { flow_of(value) };
    let now = [
        ("path", Value::from(wanted.path)),
        ("op", Value::from(wanted.op)),
        ("value", read(wanted)),
    ];
    let Some((predicate, within)) = wanted.at.split_once('.') else {
        let members = now.each_ref().map(|(name, value)| {
            if is_json {
                format!("\"{name}\": {}", text(value))
            } else {
                format!("{name}: {}", text(value))
            }
        });
        let key_of_conditions = if is_json { "\"conditions\"" } else { "conditions" };
        let item = format!("{{ {key_of_conditions}: [{{ {} }}] }}", members.join(", "));
        return add_item(document, &[section, key, list], &item);
    };
    let (Ok(place), Ok(inner)) = (predicate.parse::<usize>(), within.parse::<usize>()) else {
        return Err(NotEdited::NotAMapping);
    };
    let json = tree(document);
    let known = json.at(section).at(key).at(list).get(place);
    let conditions = known.and_then(|it| it.at("conditions").as_array());
    let before = conditions.and_then(|all| all.get(inner)).ok_or(NotEdited::NotAMapping)?;
    if wanted.is_removed {
        // Without conditions a predicate always holds, so it goes with its last one.
        return if conditions.is_some_and(|all| all.len() > 1) {
            remove_item(document, &[section, key, list, predicate, "conditions"], inner)
        } else {
            remove_item(document, &[section, key, list], place)
        };
    }
    let mut document = document.to_owned();
    for (name, value) in &now {
        if before.at(name) != value {
            let path = [section, key, list, predicate, "conditions", within, name];
            document = set_member(&document, &path, Some(&text(value)))?;
        }
    }
    Ok(document)
}

/// The value of a condition: JSON, else text. Several of them are separated by commas.
fn read(wanted: ConditionEdit<'_>) -> Value {
    let one = |text: &str| {
        let text = text.trim();
        serde_json::from_str::<Value>(text).unwrap_or_else(|_| text.into())
    };
    match (wanted.op, one(wanted.value)) {
        ("exists", Value::Bool(false)) => false.into(),
        ("exists", _) => true.into(),
        (_, Value::Array(all)) => Value::Array(all),
        ("in" | "not_in" | "host_in", _) => wanted.value.split(',').map(one).collect(),
        (_, other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONDITIONS: &str = "version: \"1\"\ndefault: deny\ntools:\n  pay:\n    # the cap\n    deny_if: [{ conditions: [{ path: args.a, op: gt, value: 1 }], on_deny: no }] # strict\n";

    fn condition<'a>(at: &'a str, op: &'a str, value: &'a str) -> ConditionEdit<'a> {
        ConditionEdit { list: "deny_if", at, path: "args.a", op, value, is_removed: false }
    }

    #[test]
    fn a_condition_is_edited_in_place() {
        let edited = |wanted| edit_condition(CONDITIONS, ("tools", "pay"), wanted);
        let changed = edited(condition("0.0", "gte", "20")).unwrap();
        let expected = CONDITIONS.replace("op: gt, value: 1 ", "op: gte, value: 20 ");
        assert_eq!(changed, expected);
        assert_eq!(edited(condition("0.0", "gt", "1")).unwrap(), CONDITIONS);
        let added = edited(condition("", "in", "x, 2")).unwrap();
        let item =
            "on_deny: no }, { conditions: [{ path: args.a, op: in, value: [x, 2] }] }] # strict";
        assert!(added.contains(item), "{added}");
        let gone = ConditionEdit { is_removed: true, ..condition("0.0", "", "") };
        let removed = edited(gone).unwrap();
        assert!(!removed.contains("deny_if"), "{removed}");
        assert!(edited(condition("7.0", "gt", "1")).is_err());
        assert!(edited(ConditionEdit { list: "tests", ..condition("", "eq", "1") }).is_err());
    }
}
