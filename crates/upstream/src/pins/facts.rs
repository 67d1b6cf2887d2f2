//! What is known of one definition: its fingerprint, hidden text, risk class and labels.

use std::sync::Arc;

use toolgate_audit::Hash;
use toolgate_catalog::{Definition, Labels, classify, draw, hidden_text};
use toolgate_json::canonical;
use toolgate_policy::Class;

/// The longest definition that is kept, for diffs.
const MAX_KEPT: usize = 64 * 1024;

/// What is known of one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// SHA-256 over its canonical form; `None` if parsers may read it differently.
    pub fingerprint: Option<Hash>,
    /// Its first hidden character: the field and the text around it, drawn.
    pub hidden: Option<Arc<str>>,
    /// Its risk class, whatever the operator has set.
    pub class: Class,
    /// What it can do with data.
    pub labels: Labels,
    /// The definition as its server wrote it, if it is short enough.
    pub definition: Option<Arc<str>>,
    /// The same list has another definition under this name.
    pub is_ambiguous: bool,
}

impl Facts {
    /// Of a definition as its server wrote it.
    pub fn of(own: &str, raw: &str) -> Self {
        let (class, labels) = risk_of(own, raw);
        let hidden = hidden_text(raw).into_iter().next().map(|found| {
            // A field of the definition may have a long name.
            let field: String = draw(&found.field).chars().take(80).collect();
            format!("{} in `{field}`: `{}`", found.kind, found.shown).into()
        });
        Self {
            fingerprint: canonical(raw).ok().map(|canonical| Hash::of(canonical.as_bytes())),
            hidden,
            class,
            labels,
            definition: (raw.len() <= MAX_KEPT).then(|| raw.into()),
            is_ambiguous: false,
        }
    }

    /// Whether these are the same facts without the text of the definition.
    pub(super) fn is_short_of(&self, other: &Self) -> bool {
        self.definition.is_none()
            && self.fingerprint == other.fingerprint
            && self.hidden == other.hidden
            && self.is_ambiguous == other.is_ambiguous
    }

    /// Whether these are the facts of this text.
    pub(super) fn is_of(&self, raw: &str) -> bool {
        !self.is_ambiguous && self.definition.as_deref() == Some(raw)
    }
}

/// The class and labels of a definition, by the server's own name of its tool.
fn risk_of(own: &str, raw: &str) -> (Class, Labels) {
    match Definition::parse(raw) {
        Ok(definition) => {
            let found = classify(&Definition { name: own.into(), ..definition });
            (found.class, found.labels)
        }
        Err(_) => (Class::by_name(own), Labels::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_over_the_canonical_form() {
        let own = Facts::of("a", r#"{"name":"a","x":1.0}"#).fingerprint;
        assert_eq!(own, Some(Hash::of(br#"{"name":"a","x":1.0}"#)));
        assert_eq!(Facts::of("a", r#"{ "x":1.0, "name":"\u0061" }"#).fingerprint, own);
        for other in [r#"{"name":"a","x":1}"#, r#"{"name":"a","x":1.0,"_meta":{}}"#, "{"] {
            assert_ne!(Facts::of("a", other).fingerprint, own, "{other}");
        }
    }

    #[test]
    fn long_definitions_are_not_kept() {
        let long = format!(r#"{{"name":"a","description":"{}"}}"#, "x".repeat(MAX_KEPT));
        let facts = Facts::of("a", &long);
        assert!(facts.definition.is_none() && facts.fingerprint.is_some());
    }
}
