//! Detects argument keys that 1C cannot distinguish.
//!
//! 1C parses objects into structures with case-insensitive keys: of `all` and `ALL` the last one
//! wins, regardless of which one a policy has checked.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use toolgate_json::fold;
use toolgate_json::scan::{Scan, Step};
use toolgate_json::walk::Raw;

/// The maximum bytes of keys that are compared; folding is slow, and longer messages are useless.
const MAX_FOLDED: usize = 256 * 1024;

/// The problem with the keys of an object at any depth, if there is one.
pub(crate) fn ambiguous(json: &str) -> Option<String> {
    // For each open bracket, the keys of its object.
    let mut open: Vec<HashSet<Cow<'_, str>>> = Vec::new();
    let mut folded: HashMap<Cow<'_, str>, String> = HashMap::new();
    let mut bytes = 0;
    Scan::new(json).find_map(|step| {
        match step {
            Step::Object | Step::List => open.push(HashSet::new()),
            Step::ObjectEnd | Step::ListEnd => drop(open.pop()),
            Step::Text(_) => {}
            Step::Key(key) => {
                let key = key_text(key);
                let short = shown(&key);
                let plain = key
                    .bytes()
                    .all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit());
                let key = if plain {
                    key
                } else if let Some(known) = folded.get(&key) {
                    Cow::Owned(known.clone())
                } else {
                    bytes += key.len();
                    if bytes > MAX_FOLDED {
                        return Some("the arguments have too many different keys".to_owned());
                    }
                    let lower = fold(&key).into_owned();
                    folded.insert(key, lower.clone());
                    Cow::Owned(lower)
                };
                if open.last_mut().is_some_and(|keys| !keys.insert(key)) {
                    return Some(format!(
                        "the key `{short}` occurs twice in one object, differing only in case or form, and the session cannot distinguish them"
                    ));
                }
            }
        }
        None
    })
}

/// The first key at any depth that `good` does not accept.
pub(crate) fn bad_key(json: &str, good: impl Fn(&str) -> bool) -> Option<Cow<'_, str>> {
    Scan::new(json).find_map(|step| match step {
        Step::Key(key) => Some(key_text(key)).filter(|key| !good(key)),
        _ => None,
    })
}

/// The text of a key; as it is spelled if it has a lone surrogate.
fn key_text(key: Raw<'_>) -> Cow<'_, str> {
    key.string().unwrap_or(Cow::Borrowed(key.text))
}

/// A key, shortened for a message.
pub(crate) fn shown(key: &str) -> String {
    key.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_keys_are_found_at_any_depth() {
        let cases = [
            (r#"{"a":1}"#, None),
            (r#"{"bad-key":1}"#, Some("bad-key")),
            (r#"{"a":[{"b":"bad-value"},{"bad-key":0}]}"#, Some("bad-key")),
            (r#"{"a":"\"bad-key\":"}"#, None),
            (r#"{"a":{},"bad-key":1}"#, Some("bad-key")),
            (r#"{"a":["bad-","x"],"b":1}"#, None),
            (r#"{"\u0062ad-":1}"#, Some("bad-")),
            (r#"{"a":[[["x"]],{"Ключ":[{}]}]}"#, None),
        ];
        for (json, expected) in cases {
            assert_eq!(bad_key(json, |key| !key.contains('-')).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn keys_that_read_alike_are_found_at_any_depth() {
        for (json, expected) in [
            (r#"{"all":1,"one":2}"#, false),
            (r#"{"all":1,"ALL":2}"#, true),
            (r#"{"Все":1,"все":2}"#, true),
            (r#"{"all":1,"ａll":2}"#, true),
            (r#"{"a":{"all":1},"b":{"ALL":2}}"#, false),
            (r#"{"a":[{"all":1},{"ALL":2}]}"#, false),
            (r#"{"a":[{"x":[],"all":1,"y":{},"All":2}]}"#, true),
            (r#"{"a":"ALL","all":"A"}"#, false),
            (r#"{"\u0061":1,"A":2}"#, true),
        ] {
            assert_eq!(ambiguous(json).is_some(), expected, "{json}");
        }
        let many: Vec<String> = (0..40_000).map(|n| format!(r#""Ключ{n}":1"#)).collect();
        let why = ambiguous(&format!("{{{}}}", many.join(","))).unwrap();
        assert!(why.contains("too many"), "{why}");
    }
}
