//! Writes a policy for scanned tools: default deny, one entry per tool, with the reason as a comment.
//!
//! Invariant: nothing of a definition leaves its comment or its quoted key. Line breaks and hidden
//! characters are drawn, glob characters are escaped.

use crate::classify::Assessment;
use crate::hidden::draw;
use crate::recommend::Recommended;

/// One tool of a policy document.
#[derive(Clone, Copy, Debug)]
pub struct PolicyItem<'a> {
    /// The server, if the document covers several.
    pub server: Option<&'a str>,
    /// The tool's own name.
    pub tool: &'a str,
    /// Its description.
    pub description: Option<&'a str>,
    /// What is known about its risk.
    pub assessment: &'a Assessment,
    /// Its rule.
    pub recommended: &'a Recommended,
}

/// The document.
pub fn policy_document(scanned: &str, items: &[PolicyItem<'_>]) -> String {
    let scanned = comment(scanned, 200);
    let mut out = format!(
        "# Recommended policy for {scanned}, written by `toolgate scan`.\n\
         # A tool that is not named here is denied. Check it with `toolgate policy check`.\n\
         version: \"1\"\ndefault: deny\nresources: {{ default: allow }}\nprompts: {{ default: allow }}\n"
    );
    if items.is_empty() {
        out.push_str("tools: {}\n");
        return out;
    }
    out.push_str("tools:\n");
    for item in items {
        out.push_str(&entry(item));
    }
    out
}

fn entry(item: &PolicyItem<'_>) -> String {
    let found = item.assessment;
    let class = found.class.as_str();
    let level = found.level.as_str();
    let reason = comment(&found.reason(), 160);
    let stated = item.description.map(|text| comment(text, 120)).filter(|text| !text.is_empty());
    let stated = stated.map(|text| format!("  # its server states: {text}\n")).unwrap_or_default();
    let key = match item.server {
        Some(server) => format!("{}/{}", escape_glob(server), escape_glob(item.tool)),
        None => escape_glob(item.tool),
    };
    let (key, rule) = (scalar(&key), item.recommended.entry());
    format!("  # {class} ({level}): {reason}\n{stated}  {key}: {rule}\n")
}

impl Recommended {
    /// The rule as an entry of a policy: YAML in one line, which is JSON too.
    pub fn entry(&self) -> String {
        let mut keys = Vec::new();
        if let Some(reason) = self.deny {
            keys.push(format!("action: deny, reason: {reason}"));
        }
        if self.approve {
            keys.push("approve: {}".to_owned());
        }
        if let Some((counter, max)) = &self.limit {
            let counter = scalar(counter);
            keys.push(format!("limits: [{{ counter: {counter}, window: minute, max: {max} }}]"));
        }
        if keys.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", keys.join(", ")) }
    }
}

/// A text on one line, drawn and cut.
fn comment(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let drawn = draw(&line);
    if drawn.chars().count() <= most {
        return drawn.into_owned();
    }
    drawn.chars().take(most).chain(['…']).collect()
}

/// The key of an entry for exactly this tool, as it is written in YAML.
pub fn policy_key(tool: &str) -> String {
    scalar(&escape_glob(tool))
}

/// A tool name as a key that matches nothing else.
pub fn escape_glob(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            key.push('\\');
        }
        key.push(c);
    }
    key
}

/// A text as a YAML scalar: plain where that is safe, else in double quotes.
fn scalar(text: &str) -> String {
    const RESERVED: [&str; 10] =
        ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan"];
    let mut chars = text.chars();
    let is_plain = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is_plain {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' | '\u{400}'..='\u{52f}' => out.push(c),
            c if c.is_alphanumeric() && u32::from(c) < 0x1_0000 => out.push(c),
            c if u32::from(c) < 0x1_0000 => out.extend(format!("\\u{:04x}", u32::from(c)).chars()),
            c => out.extend(format!("\\U{:08x}", u32::from(c)).chars()),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place() {
        for (text, expected) in [
            ("get_user", "get_user"),
            ("a-b", "a-b"),
            ("off", "\"off\""),
            ("1a", "\"1a\""),
            ("", "\"\""),
            ("a: b", "\"a: b\""),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a\nb\u{85}\u{2028}", r#""a\u000ab\u0085\u2028""#),
            ("Остатки", "\"Остатки\""),
            ("😀", "\"\\U0001f600\""),
        ] {
            assert_eq!(scalar(text), expected);
        }
        assert_eq!(escape_glob(r"a*?[b]{c}\d"), r"a\*\?\[b\]\{c\}\\d");
        assert_eq!(comment("a\n\nb\u{2028}\u{85}c\t#", 99), "a b c #");
        assert_eq!(comment("abc\u{1b}", 3), "abc…");
    }
}
