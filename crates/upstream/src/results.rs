//! Control and invisible characters in tool results (`results: escape|strip`).
//!
//! Invariant: a result without such characters passes unchanged, byte for byte.

use std::borrow::Cow;

use toolgate_catalog::{escape_invisible, strip_invisible};
use toolgate_json::scan::{Scan, Step};
use toolgate_json::{Edit, quote};

/// What happens to control and invisible characters in tool results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Results {
    /// They pass.
    #[default]
    Pass,
    /// They are written as `\u{…}`.
    Escape,
    /// They are removed.
    Strip,
}

impl Results {
    /// The result or error as the agent is to see it; `None` if it passes unchanged.
    pub(crate) fn apply(self, result: &str) -> Option<String> {
        let clean: fn(&str) -> Cow<'_, str> = match self {
            Self::Pass => return None,
            Self::Escape => escape_invisible,
            Self::Strip => strip_invisible,
        };
        let mut edit = None;
        for step in Scan::new(result) {
            let Step::Text(raw) = step else { continue };
            // Printable ASCII without escapes hides nothing.
            if raw.text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\') {
                continue;
            }
            let Ok(text) = raw.string() else { continue };
            if let Cow::Owned(clean) = clean(&text) {
                let begun = edit.unwrap_or_else(|| Edit::new(result));
                edit = Some(begun.replace(raw.text, quote(&clean)).ok()?);
            }
        }
        String::from_utf8(edit?.finish().to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hidden_characters_change() {
        let result = &r#"{"content":[{"type":"text","text":"a\u001b[2Jb@c\n👩‍💻 Привет"}],"x":1.0}"#
            .replace('@', "\u{200b}");
        let escaped =
            r#"{"content":[{"type":"text","text":"a\\u{1B}[2Jb\\u{200B}c\n👩‍💻 Привет"}],"x":1.0}"#;
        let stripped = r#"{"content":[{"type":"text","text":"a[2Jbc\n👩‍💻 Привет"}],"x":1.0}"#;
        assert_eq!(Results::Pass.apply(result), None);
        assert_eq!(Results::Escape.apply(result).as_deref(), Some(escaped));
        assert_eq!(Results::Strip.apply(result).as_deref(), Some(stripped));
        for clean in [r#"{"content":[],"n":1e5}"#, r#"{"text":"a\tb\"\\ dеlete"}"#, "7"] {
            assert_eq!(Results::Escape.apply(clean), None, "{clean}");
            assert_eq!(Results::Strip.apply(clean), None, "{clean}");
        }
    }
}
