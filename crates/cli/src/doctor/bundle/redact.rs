//! A configuration for the eyes of others: its structure, and the values of a few known settings.
//!
//! The text need not be valid, so it is not parsed: what is not certainly a known setting is left out.
//!
//! Invariant: no value is shown but those of [`SHOWN`], and no name but those of settings and servers.

/// Settings whose values hold no secret, by the section they are in.
const SHOWN: [(&str, &[&str]); 6] = [
    ("", &["version", "local", "list_wait", "shutdown_grace"]),
    ("listen", &["mcp", "sessions", "admin", "metrics"]),
    ("servers/*", &["timeout", "start_timeout", "names", "instances", "pin", "validate"]),
    ("grants", &["label", "policy"]),
    ("audit", &["durability", "arguments"]),
    ("agent_sessions", &["max", "per_grant", "idle"]),
];
const MASK: &str = "***";

/// The lines that may be shown.
pub(super) fn redacted(text: &str) -> String {
    let mut shown: Vec<String> = Vec::new();
    // The keys around a line, with their indents.
    let mut around: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let content = line.trim_start_matches(' ');
        if content.trim().is_empty() || content.starts_with('#') {
            continue;
        }
        let indent = line.len() - content.len();
        let is_item = content.starts_with("- ") || content.trim_end() == "-";
        while around.pop_if(|(at, _)| *at > indent || (*at == indent && !is_item)).is_some() {}
        let section: Vec<&str> = around.iter().map(|(_, name)| name.as_str()).collect();
        let (text, nested) = redacted_line(&section, content);
        if let Some((name, more)) = nested {
            around.push((indent + more, name));
        }
        let masked = format!("{:indent$}{text}", "");
        let repeats = text == MASK && shown.last().is_some_and(|last| last.trim() == MASK);
        if !repeats {
            shown.push(masked);
        }
    }
    shown.into_iter().map(|line| line + "\n").collect()
}

/// What to show of a line, and the name of the section that it opens with its distance.
fn redacted_line(section: &[&str], content: &str) -> (String, Option<(String, usize)>) {
    let (dash, entry) = match content.strip_prefix("- ") {
        Some(rest) => ("- ", rest.trim_start()),
        None => ("", content),
    };
    let unknown = Some((MASK.to_owned(), dash.len()));
    let known = match section {
        [] => Some(("", is_setting as fn(&str) -> bool)),
        ["servers"] => Some(("servers", is_name as fn(&str) -> bool)),
        ["servers", _] => Some(("servers/*", is_setting as fn(&str) -> bool)),
        [name @ ("listen" | "grants" | "audit" | "agent_sessions")] => {
            Some((*name, is_setting as fn(&str) -> bool))
        }
        _ => None,
    };
    let (Some((place, is_key)), Some((key, value))) = (known, entry.split_once(':')) else {
        return (MASK.to_owned(), unknown);
    };
    let value = value.trim();
    if !is_key(key) {
        return (MASK.to_owned(), unknown);
    }
    if value.is_empty() {
        return (format!("{dash}{key}:"), Some((key.to_owned(), dash.len())));
    }
    let of_place = SHOWN.iter().find(|(known, _)| *known == place);
    let is_shown = of_place.is_some_and(|(_, keys)| keys.contains(&key)) && is_plain(value);
    (format!("{dash}{key}: {}", if is_shown { value } else { MASK }), unknown)
}

/// A key of the configuration, by its form.
fn is_setting(key: &str) -> bool {
    key.len() <= 24 && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// The name of a server.
fn is_name(key: &str) -> bool {
    key.len() <= 64 && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// One word.
fn is_plain(value: &str) -> bool {
    value.len() <= 64 && value.chars().all(|c| c.is_alphanumeric() || "-_.:[]".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_shown_and_secrets_are_not() {
        let text = "\
version: 1
# s3cr3t
listen: { mcp: s3cr3t }
servers:
  a:
    command: npx
    args:
      - --key=s3cr3t:x
      - \"s3cr3t: y\"
    env:
      admin: s3cr3t
      label: s3cr3t
      - s3cr3t
    headers:
    - label: s3cr3t
    timeout: 60s
  b: { url: s3cr3t,
    s3cr3t: x }
  s3cr3t!: x
grants:
  - label: desk
    token: s3cr3t
policies:
  p: |
    s3cr3t: x
    mode: s3cr3t
  mode: s3cr3t
shutdown_grace: 3s # s3cr3t
s3cr3t
s3cr3t: x
";
        let expected = "\
version: 1
listen: ***
servers:
  a:
    command: ***
    args:
      ***
    env:
      ***
    headers:
    ***
    timeout: 60s
  b: ***
    ***
grants:
  - label: desk
    token: ***
policies:
  ***
shutdown_grace: ***
***
";
        assert_eq!(redacted(text), expected);
    }
}
