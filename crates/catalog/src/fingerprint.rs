//! Fingerprints of definitions.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use toolgate_json::{NotCanonical, canonical, members, object};

/// The fingerprint of a definition: SHA-256 over its canonical JSON, all fields, in lower-case hex.
pub fn fingerprint(definition: &str) -> Result<String, NotCanonical> {
    Ok(HEXLOWER.encode(&digest(definition)?))
}

/// The bytes of the fingerprint.
pub fn digest(definition: &str) -> Result<[u8; 32], NotCanonical> {
    Ok(Sha256::digest(canonical(definition)?.as_bytes()).into())
}

/// The fingerprint of everything but the name and title. Two definitions that share it describe the
/// same tool under two names.
pub fn body_fingerprint(definition: &str) -> Result<String, NotCanonical> {
    let members = object::members(definition).map_err(|_| NotCanonical)?;
    let body =
        object::without(definition, &members, |member| member.is("name") || member.is("title"));
    fingerprint(&body)
}

/// The name that a new definition had before, found among those (name, definition) that are gone.
pub fn former_name<'a>(
    gone: impl IntoIterator<Item = (&'a str, &'a str)>,
    new: &str,
) -> Option<&'a str> {
    gone.into_iter().find(|(_, old)| is_renamed(old, new)).map(|(name, _)| name)
}

/// Whether `new` is `old` under another name: the same text and schema. A definition without both
/// says too little to be recognised.
pub fn is_renamed(old: &str, new: &str) -> bool {
    let name = |raw| members(raw, ["name"]).ok().and_then(|[name]| name);
    let says = members(old, ["description", "inputSchema", "input_schema"]).is_ok_and(
        |[text, one, two]| {
            text.is_some_and(|text| text.len() > 2) || one.or(two).is_some_and(has_properties)
        },
    );
    says && name(old) != name(new)
        && matches!((body_fingerprint(old), body_fingerprint(new)), (Ok(a), Ok(b)) if a == b)
}

fn has_properties(schema: &str) -> bool {
    let properties = members(schema, ["properties"]).ok().and_then(|[found]| found);
    properties.is_some_and(|raw| raw.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"{"name":"a","title":"A","description":"Reads a file",
        "inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}"#;

    #[test]
    fn a_fingerprint_covers_every_field_and_no_spelling() {
        let own = fingerprint(OLD).unwrap();
        assert!(own.len() == 64 && own.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
        let spelled = OLD
            .replace("\"a\"", "\"\\u0061\"")
            .replace(' ', "")
            .replace("Readsafile", "Reads a file");
        assert_eq!(fingerprint(&spelled).unwrap(), own);
        for (from, to) in [
            ("\"a\"", "\"b\""),
            ("\"A\"", "\"B\""),
            ("Reads", "reads"),
            ("path", "paths"),
            ("\"string\"", "\"number\""),
            ("{\"name\"", "{\"_meta\":{},\"name\""),
            ("{\"name\"", "{\"annotations\":{\"readOnlyHint\":true},\"name\""),
        ] {
            let other = OLD.replacen(from, to, 1);
            assert_ne!(fingerprint(&other).unwrap(), own, "{other}");
        }
        assert!(fingerprint(r#"{"name":"a","name":"b"}"#).is_err());
    }

    #[test]
    fn a_rename_keeps_text_and_schema() {
        let renamed = OLD.replace("\"a\"", "\"b\"").replace("\"A\"", "\"B\"");
        assert!(is_renamed(OLD, &renamed));
        assert!(!is_renamed(OLD, OLD) && !is_renamed(OLD, &renamed.replace("Reads", "Wipes")));
        assert!(!is_renamed(r#"{"name":"a"}"#, r#"{"name":"b"}"#));
        assert_eq!(former_name([("x", r#"{"name":"x"}"#), ("a", OLD)], &renamed), Some("a"));
    }
}
