//! Edits of a document: one entry changes, every other byte stays.

use serde_json::Value;
use toolgate_policy::{NotEdited, add_item, document_json, remove_item, set_member};

use super::choices::LISTS;

use crate::look::Look as _;
use crate::recommended::{flow as flow_of, key};

/// Sets the effect of one entry; everything else of the document stays.
pub(crate) fn edit(
    document: &str,
    section: &str,
    key: &str,
    effect: &str,
    max: &str,
    window: &str,
) -> Result<String, NotEdited> {
    let section = if section == "classes" { "classes" } else { "tools" };
    let is_class = section == "classes";
    let path = [section, key];
    let json: Value = document_json(document)
        .and_then(|json| serde_json::from_str(&json).ok())
        .unwrap_or_default();
    let has_entry = json.at(section).get(key).is_some_and(Value::is_object);
    let is_json = document.trim_start().starts_with('{');
    let max = max.parse::<u64>().unwrap_or(30);
    let window = if matches!(window, "minute" | "hour" | "day") { window } else { "minute" };
    let limit = format!("\"{max}/{window}\"");
    if effect == "inherit" {
        return set_member(document, &path, None);
    }
    let fresh = match effect {
        "limit" => vec![("rate_limit", limit.as_str())],
        "ask" => vec![("approve", "{}")],
        "deny" => vec![("action", "\"deny\"")],
        "hide" => vec![("action", "\"hide\"")],
        _ => Vec::new(),
    };
    let opens = is_class && !matches!(effect, "deny" | "hide");
    if !has_entry || effect == "hide" {
        let fresh = opens.then_some(("action", "\"allow\"")).into_iter().chain(fresh);
        return set_member(document, &path, Some(&flow(fresh, is_json)));
    }
    let entry = json.at(section).at(key).clone();
    let mut document = document.to_owned();
    let mut set = |name: &str, value: Option<&str>| {
        let value = value.map(|value| if is_json { value.to_owned() } else { unquoted(value) });
        let edited = set_member(&document, &[section, key, name], value.as_deref())?;
        document = edited;
        Ok::<_, NotEdited>(())
    };
    if !matches!(effect, "deny") {
        match (opens, entry.get("action")) {
            (true, Some(action)) if action == "allow" => {}
            (true, _) => set("action", Some("\"allow\""))?,
            (false, _) => {
                set("action", None)?;
                set("reason", None)?;
            }
        }
    }
    if !matches!(effect, "ask" | "deny") {
        set("approve", None)?;
    }
    if effect == "allow" {
        set("rate_limit", None)?;
        set("limits", None)?;
    }
    // A limit of its own is edited in the document.
    for (name, value) in fresh {
        if name != "rate_limit" || entry.get("limits").is_none() {
            set(name, Some(value))?;
        }
    }
    Ok(document)
}

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
    let json: Value = document_json(document)
        .and_then(|json| serde_json::from_str(&json).ok())
        .unwrap_or_default();
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

fn flow<'a>(members: impl Iterator<Item = (&'a str, &'a str)>, is_json: bool) -> String {
    let one = |(name, value): (&str, &str)| {
        if is_json {
            format!("\"{name}\": {value}")
        } else {
            format!("{name}: {}", unquoted(value))
        }
    };
    let members = members.map(one).collect::<Vec<_>>().join(", ");
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {members} }}") }
}

/// A value as people write it in YAML.
fn unquoted(value: &str) -> String {
    value.trim_matches('"').to_owned()
}

/// The document with this entry of a tool.
pub(crate) fn with_rule(
    document: &str,
    server: &str,
    tool: &str,
    entry: &Value,
) -> Result<String, NotEdited> {
    let is_json = document.trim_start().starts_with('{');
    let entry = if is_json { entry.to_string() } else { flow_of(entry) };
    set_member(document, &["tools", &key(server, tool)], Some(&entry))
}

/// The document without shadow mode.
pub(crate) fn enforced(document: &str) -> Result<String, NotEdited> {
    let json: Value = document_json(document)
        .and_then(|json| serde_json::from_str(&json).ok())
        .unwrap_or_default();
    let mut document = document.to_owned();
    for name in ["mode", "shadow_until"] {
        if json.get(name).is_some() {
            document = set_member(&document, &[name], None)?;
        }
    }
    Ok(document)
}

/// Forms send lines that end with CR LF.
pub(crate) fn normal_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// The document of the form, with the line ends and the last line of the stored one: browsers change
/// both, and a document that was not edited must stay the same to the byte.
pub(crate) fn as_stored(sent: &str, stored: &str) -> String {
    let sent = normal_lines(sent);
    if sent == normal_lines(stored) {
        return stored.to_owned();
    }
    let is_windows = stored.contains("\r\n") && !stored.replace("\r\n", "").contains('\n');
    if is_windows { sent.replace('\n', "\r\n") } else { sent }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# mine\nversion: \"1\"\ndefault: deny\ntools:\n  files/read: {} # ok\n";

    #[test]
    fn an_effect_is_set_and_the_rest_stays() {
        let cases = [
            ("files/read", "deny", "files/read: { action: deny } # ok\n"),
            ("files/read", "ask", "files/read: { approve: {} } # ok\n"),
            ("files/read", "limit", "files/read: { rate_limit: 5/hour } # ok\n"),
            ("files/read", "hide", "files/read: { action: hide } # ok\n"),
            ("files/read", "allow", "files/read: {} # ok\n"),
            ("files/new", "limit", "files/read: {} # ok\n  files/new: { rate_limit: 5/hour }\n"),
        ];
        for (key, effect, expected) in cases {
            let edited = edit(DOCUMENT, "tools", key, effect, "5", "hour").unwrap();
            assert!(
                edited.starts_with("# mine\n") && edited.ends_with(expected),
                "{effect}: {edited}"
            );
        }
    }

    #[test]
    fn one_effect_replaces_another() {
        let mut document = DOCUMENT.to_owned();
        for effect in ["deny", "ask", "limit", "allow", "hide", "allow"] {
            document = edit(&document, "tools", "files/read", effect, "5", "hour").unwrap();
        }
        assert_eq!(document_json(&document), document_json(DOCUMENT), "{document}");
        let gone = edit(DOCUMENT, "tools", "files/read", "inherit", "", "").unwrap();
        assert!(!gone.contains("files/read"), "{gone}");
    }

    #[test]
    fn a_class_that_is_opened_is_named() {
        let edited = edit(DOCUMENT, "classes", "write", "limit", "30", "minute").unwrap();
        assert!(
            edited.ends_with("classes:\n  write: { action: allow, rate_limit: 30/minute }\n"),
            "{edited}"
        );
        let denied = edit(&edited, "classes", "write", "deny", "", "").unwrap();
        assert!(denied.contains("action: deny"), "{denied}");
    }

    #[test]
    fn conditions_of_an_entry_survive_another_effect() {
        let source = "version: \"1\"\ndefault: deny\ntools:\n  pay:\n    # the cap\n    deny_if: [{ conditions: [{ path: args.a, op: gt, value: 1 }] }]\n    action: deny\n";
        let edited = edit(source, "tools", "pay", "ask", "", "").unwrap();
        assert!(
            edited.contains("# the cap\n    deny_if:") && edited.contains("approve: {}"),
            "{edited}"
        );
        assert!(!edited.contains("action"), "{edited}");
    }

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

    #[test]
    fn a_recommended_rule_is_added_or_replaces_the_old_one() {
        let entry = serde_json::json!({ "approve": {} });
        let edited = with_rule(DOCUMENT, "files", "read", &entry).unwrap();
        assert!(edited.ends_with("tools:\n  files/read: { approve: {} } # ok\n"), "{edited}");
        let added = with_rule(DOCUMENT, "files", "wipe*", &entry).unwrap();
        assert!(added.starts_with(DOCUMENT) && added.contains("{ approve: {} }"), "{added}");
    }

    #[test]
    fn a_document_leaves_shadow_and_keeps_the_rest() {
        let shadow = "# mine\nversion: \"1\"\nmode: shadow # for two weeks\nshadow_until: 2027-01-01\ndefault: deny\n";
        let edited = enforced(shadow).unwrap();
        assert!(!edited.contains("shadow_until") && !edited.contains("mode:"), "{edited}");
        assert!(edited.starts_with("# mine\nversion: \"1\"\n"), "{edited}");
        assert_eq!(enforced(DOCUMENT).unwrap(), DOCUMENT);
    }

    #[test]
    fn a_document_that_was_not_edited_is_saved_to_the_byte() {
        for stored in ["a: 1\n", "a: 1", "a: 1\r\nb: 2\r\n", "a: 1\n\n"] {
            let sent = stored.replace("\r\n", "\n").replace('\n', "\r\n");
            assert_eq!(as_stored(&sent, stored), stored);
        }
        assert_eq!(as_stored("a: 2\r\n", "a: 1\r\n"), "a: 2\r\n");
        assert_eq!(as_stored("a: 2\r\n", "a: 1\n"), "a: 2\n");
    }
}
