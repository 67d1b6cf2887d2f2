//! The recommended rule of a tool, as text for a policy.

use serde_json::Value;

/// The recommended entry, ready to paste below `tools:`.
pub(crate) fn shown_rule(server: &str, tool: &str, entry: &Value) -> String {
    format!("tools:\n  {}: {}\n", word(&key(server, tool)), flow(entry))
}

/// The key of a tool in a policy.
pub(crate) fn key(server: &str, tool: &str) -> String {
    format!("{server}/{}", toolgate_catalog::escape_glob(tool))
}

/// A value in the flow style of YAML, with as few quotes as people write.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let one = |(name, value): (&String, &Value)| format!("{}: {}", word(name), flow(value));
            format!("{{ {} }}", members.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => word(text),
        other => other.to_string(),
    }
}

/// A text without quotes if it is read the same without them.
fn word(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-/. ".contains(c))
        && !text.ends_with(' ')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_is_text_that_the_policy_reads_the_same() {
        let entries = [
            json!({}),
            json!({ "approve": {} }),
            json!({ "limits": [{ "counter": "write_note_rate", "window": "minute", "max": 30 }] }),
            json!({ "action": "deny", "reason": "its definition contains hidden text" }),
            json!({ "limits": [{ "counter": "{tool}_rate", "window": "minute", "max": 1 }] }),
        ];
        for entry in entries {
            let text = format!("version: \"1\"\n{}", shown_rule("desk", "write*note", &entry));
            let read: Value =
                serde_json::from_str(&toolgate_policy::document_json(&text).unwrap()).unwrap();
            assert_eq!(read["tools"][key("desk", "write*note")], entry, "{text}");
        }
    }

    #[test]
    fn words_that_yaml_reads_otherwise_are_quoted() {
        for text in ["yes", "1", "a: b", "", "no", "- x", "a#b", "x "] {
            assert!(word(text).starts_with('"'), "{text}");
        }
        assert_eq!(word("write_note_rate"), "write_note_rate");
    }
}
