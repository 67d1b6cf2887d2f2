//! Edits of a document: one entry changes, every other byte stays.

use serde_json::Value;
use toolgate_policy::{Amount, NotEdited, document_json, set_member};

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
    let json = tree(document);
    let has_entry = json.at(section).get(key).is_some_and(Value::is_object);
    let is_json = document.trim_start().starts_with('{');
    let limit = limit_text(max, window);
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
    // Limits that it has stay as they are.
    for (name, value) in fresh {
        let has_limit = entry.get("limits").or_else(|| entry.get("rate_limit")).is_some();
        if name != "rate_limit" || !has_limit {
            set(name, Some(value))?;
        }
    }
    Ok(document)
}

/// Sets the most and the window of one limit of an entry: of `limits` at this place, else its
/// `rate_limit`.
pub(crate) fn edit_amount(
    document: &str,
    (section, key): (&str, &str),
    at: &str,
    max: &str,
    window: &str,
) -> Result<String, NotEdited> {
    let json = tree(document);
    let entry = json.at(section).at(key);
    let own = match at.parse::<usize>() {
        Ok(place) => (entry.at("limits").get(place), vec!["limits", at]),
        Err(_) => (entry.get("rate_limit"), vec!["rate_limit"]),
    };
    let is_json = document.trim_start().starts_with('{');
    let (limit, place) = match own {
        (Some(limit @ Value::Object(_)), place) => (limit, place),
        (Some(_), _) => {
            let limit = limit_text(max, window);
            let limit = if is_json { limit } else { unquoted(&limit) };
            return set_member(document, &[section, key, "rate_limit"], Some(&limit));
        }
        (None, _) => return edit(document, section, key, "limit", max, window),
    };
    let mut document = document.to_owned();
    for (name, text) in [("max", max), ("window", window)] {
        if shown(limit.at(name)) != text {
            let is_number = Amount::parse(text).is_ok();
            let value = if is_number { text.to_owned() } else { Value::from(text).to_string() };
            let value = if is_json { value } else { unquoted(&value) };
            let path = [&[section, key], place.as_slice(), &[name]].concat();
            document = set_member(&document, &path, Some(&value))?;
        }
    }
    Ok(document)
}

/// `"30/minute"`, with what is usual in place of what is no number and no window.
fn limit_text(max: &str, window: &str) -> String {
    let max = if Amount::parse(max).is_ok() { max } else { "30" };
    let is_window = !window.is_empty() && window.chars().all(|c| c.is_ascii_alphanumeric());
    format!("\"{max}/{}\"", if is_window { window } else { "minute" })
}

/// A number or a word as a field shows it.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The document as a tree; null if it has none.
pub(crate) fn tree(document: &str) -> Value {
    let json = document_json(document);
    json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
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
    let json = tree(document);
    let mut document = document.to_owned();
    for name in ["mode", "shadow_until"] {
        if json.get(name).is_some() {
            document = set_member(&document, &[name], None)?;
        }
    }
    Ok(document)
}

/// Forms send lines that end with CR LF, and browsers know three ends of a line.
pub(crate) fn normal_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The document of the form, with the line ends and the last line of the stored one: browsers change
/// both, and a document that was not edited must stay the same to the byte.
pub(crate) fn as_stored(sent: &str, stored: &str) -> String {
    let sent = normal_lines(sent);
    if sent == normal_lines(stored) {
        return stored.to_owned();
    }
    let is_windows = stored.contains("\r\n") && !stored.replace("\r\n", "").contains(['\r', '\n']);
    let is_old_mac = stored.contains('\r') && !stored.contains('\n');
    if is_windows {
        sent.replace('\n', "\r\n")
    } else if is_old_mac {
        sent.replace('\n', "\r")
    } else {
        sent
    }
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
    fn limits_that_an_entry_has_stay() {
        let source = DOCUMENT.replace("{} # ok", "{ approve: {}, rate_limit: 5/hour }");
        let edited = edit(&source, "tools", "files/read", "limit", "30", "minute").unwrap();
        assert_eq!(edited, source.replace("approve: {}, ", ""));
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

    #[test]
    fn an_amount_is_edited_where_it_is_written() {
        let source = "version: \"1\"\ntools:\n  pay:\n    limits:\n      - { counter: n, window: 15m, max: 5 } # few\n      - { counter: sum, window: day, max: 100.50, increment_from: args.a }\n  get: { rate_limit: { max: 3, window: 60 } }\n  put: { rate_limit: 3/minute } # slow\n  ask: { approve: {}, rate_limit: 1/day }\n";
        let cases = [
            ("pay", "0", "6", "15m", "window: 15m, max: 5 }", "window: 15m, max: 6 }"),
            ("pay", "0", "5", "hour", "window: 15m, max: 5 }", "window: hour, max: 5 }"),
            ("pay", "1", "99.5", "day", "max: 100.50", "max: 99.5"),
            ("get", "", "4", "60", "max: 3,", "max: 4,"),
            ("put", "", "4", "hour", "rate_limit: 3/minute", "rate_limit: 4/hour"),
            ("ask", "", "2", "day", "rate_limit: 1/day", "rate_limit: 2/day"),
        ];
        for (tool, at, max, window, from, to) in cases {
            let edited = edit_amount(source, ("tools", tool), at, max, window).unwrap();
            assert_eq!(edited, source.replace(from, to), "{tool} {at}");
        }
        assert_eq!(edit_amount(source, ("tools", "pay"), "0", "5", "15m").unwrap(), source);
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
        for stored in
            ["a: 1\n", "a: 1", "a: 1\r\nb: 2\r\n", "a: 1\n\n", "a: 1\rb: 2\r", "a\r\nb\rc\n"]
        {
            let sent = normal_lines(stored).replace('\n', "\r\n");
            assert_eq!(as_stored(&sent, stored), stored);
        }
        assert_eq!(as_stored("a: 2\r\n", "a: 1\r\n"), "a: 2\r\n");
        assert_eq!(as_stored("a: 2\r\n", "a: 1\n"), "a: 2\n");
        assert_eq!(as_stored("a: 2\r\n", "a: 1\r"), "a: 2\r");
    }
}
