//! The arguments of a call: which keys toolgate consumes, and what is forwarded.
//!
//! Invariant: the forwarded text is what the agent sent, byte for byte, without the reserved keys.

use std::borrow::Cow;

use toolgate_json::object::{Member, members, value, without};
use toolgate_json::{imitates, text};

use crate::failure::SessionFailure;
use crate::keys::{bad_key, shown};

/// The reserved key that selects a session.
pub(crate) const SESSION_ID: &str = "session_id";
/// The reserved key with call options.
pub(crate) const OPTIONS: &str = "_v8_call_options";
/// Keys that may replace a session id.
pub(crate) const INFOBASE_NAME: &str = "infobase_name";
pub(crate) const KIND: &str = "kind";

/// Parsed arguments.
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    json: &'a str,
    members: Vec<Member<'a>>,
}

impl<'a> Arguments<'a> {
    /// Parses the arguments; missing ones are an empty object.
    pub(crate) fn read(raw: Option<&'a str>) -> Result<Self, SessionFailure> {
        let json = raw.filter(|raw| raw.trim() != "null").unwrap_or("{}").trim();
        let members = members(json).map_err(|_| invalid("`arguments` must be an object"))?;
        for key in [SESSION_ID, OPTIONS, INFOBASE_NAME, KIND] {
            if members.iter().filter(|member| member.is(key)).count() > 1 {
                return Err(invalid(format!("`{key}` occurs twice; send it once")));
            }
        }
        // Reserved keys belong to toolgate, and a session might read a variant as the key.
        for member in &members {
            let key = member.key.as_deref().unwrap_or_default();
            if let Some(own) = imitates(key, &[SESSION_ID, OPTIONS]) {
                let key = shown(key);
                return Err(invalid(format!("write `{own}` instead of `{key}`")));
            }
        }
        Ok(Self { json, members })
    }

    /// The session that the call selects.
    pub(crate) fn session_id(&self) -> Result<Option<Cow<'a, str>>, SessionFailure> {
        self.selector(SESSION_ID)
    }

    /// A key that selects among sessions: a non-empty string.
    pub(crate) fn selector(&self, key: &str) -> Result<Option<Cow<'a, str>>, SessionFailure> {
        match value(&self.members, key).map(text) {
            None => Ok(None),
            Some(Some(chosen)) if !chosen.is_empty() => Ok(Some(chosen)),
            Some(_) => Err(invalid(format!("`{key}` must be a string that is not empty"))),
        }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        value(&self.members, key).is_some()
    }

    /// Whether the call requests no deadline.
    pub(crate) fn no_deadline(&self) -> Result<bool, SessionFailure> {
        let Some(raw) = value(&self.members, OPTIONS) else { return Ok(false) };
        let wrong = || invalid(format!("`{OPTIONS}` must be an object with `no_deadline` alone"));
        let options = members(raw).map_err(|_| wrong())?;
        match options.as_slice() {
            [] => Ok(false),
            [option] if option.is("no_deadline") => match option.value {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(invalid(format!("`{OPTIONS}.no_deadline` must be true or false"))),
            },
            _ => Err(wrong()),
        }
    }

    /// What the session receives: without the reserved keys and the selectors that were used.
    pub(crate) fn forwarded(&self, selectors: &[&str]) -> String {
        without(self.json, &self.members, |member| {
            member.is(SESSION_ID)
                || member.is(OPTIONS)
                || selectors.iter().any(|selector| member.is(selector))
        })
    }
}

/// The first key that is not a 1C identifier, because of which 1C would drop the whole call.
pub(crate) fn not_an_identifier(json: &str) -> Option<Cow<'_, str>> {
    bad_key(json, is_identifier)
}

fn is_identifier(key: &str) -> bool {
    let mut chars = key.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_alphabetic())
        && chars.all(|c| c == '_' || c.is_alphabetic() || c.is_ascii_digit())
}

pub(crate) fn invalid(what: impl Into<String>) -> SessionFailure {
    SessionFailure::InvalidArguments { what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_keys_are_not_forwarded() {
        let cases = [
            (None, &[][..], "{}"),
            (Some("null"), &[], "{}"),
            (Some(r#"{"session_id":"x"}"#), &[], "{}"),
            (
                Some(r#"{"Имя":"Ёлка 1","session_id":"x","n":1.50}"#),
                &[],
                r#"{"Имя":"Ёлка 1","n":1.50}"#,
            ),
            (
                Some(r#"{"kind":"a","infobase_name":"b"}"#),
                &[],
                r#"{"kind":"a","infobase_name":"b"}"#,
            ),
            (Some(r#"{"kind":"a","infobase_name":"b"}"#), &[KIND], r#"{"infobase_name":"b"}"#),
            (
                Some(r#"{"_v8_call_options":{},"a":{"session_id":"y"}}"#),
                &[],
                r#"{"a":{"session_id":"y"}}"#,
            ),
        ];
        for (json, selectors, expected) in cases {
            assert_eq!(Arguments::read(json).unwrap().forwarded(selectors), expected);
        }
    }

    #[test]
    fn bad_arguments_are_refused() {
        let read = |json| {
            let arguments = Arguments::read(Some(json))?;
            arguments.session_id()?;
            arguments.no_deadline()
        };
        for json in [
            "[]",
            "1",
            r#"{"session_id":""}"#,
            r#"{"session_id":7}"#,
            r#"{"session_id":null}"#,
            r#"{"session_id":"a","session_id":"b"}"#,
            r#"{"_v8_call_options":1}"#,
            r#"{"_v8_call_options":{"no_deadline":1}}"#,
            r#"{"_v8_call_options":{"other":true}}"#,
            r#"{"Session_ID":"a"}"#,
            r#"{"SESSION_ID":7}"#,
            r#"{"ѕession_id":1,"session\u200b_id":"a"}"#,
            r#"{"_V8_call_options":{"no_deadline":true}}"#,
            r#"{"session_id":"a","ｓession_id":"b"}"#,
        ] {
            let failure = read(json).unwrap_err();
            assert_eq!(failure.error_code(), "invalid_arguments", "{json}");
            assert!(failure.text().starts_with("[INVALID ARGUMENTS] "));
        }
        assert!(read(r#"{"_v8_call_options":{"no_deadline":true}}"#).unwrap());
        assert!(!read(r#"{"_v8_call_options":{"no_deadline":false}}"#).unwrap());
    }

    #[test]
    fn identifiers_are_those_of_1c() {
        for key in ["a", "_", "_1", "Контрагент", "Ёж_2", "aB9"] {
            assert!(is_identifier(key), "{key}");
        }
        for key in ["", "1a", "foo-bar", "a b", "a.b", "$ref", "a\u{301}", "№"] {
            assert!(!is_identifier(key), "{key}");
        }
    }
}
