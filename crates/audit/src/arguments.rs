//! Selects what is recorded of a call's arguments: names always, values depending on the mode.
//!
//! Invariant: in `keys` mode no value, nor anything computed from one, is in the result.
//! Invariant: lists are bounded; an agent cannot bloat the audit with names.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData, sync::Arc};

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use sha2::Sha256;
use toolgate_json::{canonical, push_quoted};

/// The maximum number of recorded names, and the maximum bytes of each.
const NAMES: usize = 64;
const NAME: usize = 128;

/// How much of the arguments is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentMode {
    /// Only the names.
    #[default]
    Keys,
    /// Also the values at paths that active policies refer to.
    Facts,
    /// Also an HMAC of each value: a known value can be searched for, but not guessed.
    Hashed,
    /// Also all values, as canonical JSON.
    Full,
}

/// The key of the `hashed` mode.
#[derive(Clone)]
pub struct ArgumentHashKey(pub [u8; 32]);

/// A path of the policy language below `args`: `args.a.b`, `args.items[0].x`, `args."a.b"`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FactPath {
    text: Arc<str>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Key(String),
    Index(usize),
    /// `[any]` and `[all]`: every element.
    Every,
}

/// What is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedArguments {
    /// For `argument_keys`: a JSON list of names, sorted.
    pub keys: Option<Arc<str>>,
    /// For `arguments`: JSON, by mode.
    pub values: Option<Arc<str>>,
}

/// The maximum bytes of `argument_keys`: a name with many escapes is longer than it looks.
const KEYS: usize = 4 * 1024;

/// The first members of an object by name, and the total number. An agent may send hundreds of
/// thousands; only those that are recorded are held.
#[derive(Debug, Default)]
struct Members<'a> {
    first: BTreeMap<Cow<'a, str>, &'a RawValue>,
    count: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Walk<'a> {
            type Value = Members<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Members::default();
                while let Some((Name(name), value)) = map.next_entry::<Name<'a>, &RawValue>()? {
                    members.count += 1;
                    members.first.insert(name, value);
                    if members.first.len() > NAMES {
                        members.first.pop_last();
                    }
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Walk(PhantomData))
    }
}

/// A name, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The raw value of one member, the last if there are several.
fn member<'a>(raw: &'a str, name: &str) -> Option<&'a RawValue> {
    struct Find<'a, 'n>(&'n str, PhantomData<&'a ()>);

    impl<'de: 'a, 'a> Visitor<'de> for Find<'a, '_> {
        type Value = Option<&'a RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut found = None;
            while let Some((Name(name), value)) = map.next_entry::<Name<'_>, &'a RawValue>()? {
                if name == self.0 {
                    found = Some(value);
                }
            }
            Ok(found)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(raw);
    deserializer.deserialize_map(Find(name, PhantomData)).ok().flatten()
}

/// Selects what to record of raw JSON arguments; nothing if they are not a JSON object.
pub fn record_arguments(
    mode: ArgumentMode,
    arguments: &str,
    paths: &[FactPath],
    secret: &ArgumentHashKey,
) -> RecordedArguments {
    let Ok(members) = serde_json::from_str::<Members<'_>>(arguments) else {
        return RecordedArguments::default();
    };
    let values = match mode {
        ArgumentMode::Keys => None,
        ArgumentMode::Facts => facts(arguments, paths),
        ArgumentMode::Hashed => Some(hashed(&members, secret)),
        ArgumentMode::Full => canonical(arguments).ok(),
    };
    RecordedArguments { keys: Some(names(&members).into()), values: values.map(Into::into) }
}

fn names(members: &Members<'_>) -> String {
    let mut out = String::from("[");
    let mut listed = 0;
    for name in members.first.keys() {
        let before = out.len();
        if listed > 0 {
            out.push(',');
        }
        push_quoted(&shortened(name), &mut out);
        if out.len() > KEYS {
            out.truncate(before);
            break;
        }
        listed += 1;
    }
    if members.count > listed {
        if listed > 0 {
            out.push(',');
        }
        push_quoted(&format!("… {} more", members.count - listed), &mut out);
    }
    out.push(']');
    out
}

fn shortened(name: &str) -> Cow<'_, str> {
    if name.len() <= NAME {
        return name.into();
    }
    let mut end = NAME;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).map_or(Cow::Borrowed("…"), |start| format!("{start}…").into())
}

fn facts(arguments: &str, paths: &[FactPath]) -> Option<String> {
    let mut out = String::from("{");
    let mut sorted: Vec<&FactPath> = paths.iter().collect();
    sorted.sort_by(|a, b| a.text.cmp(&b.text));
    sorted.dedup();
    for path in sorted {
        let mut values = Vec::new();
        at(arguments, &path.steps, &mut values);
        let every = path.steps.contains(&Step::Every);
        if values.is_empty() {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        push_quoted(&path.text, &mut out);
        out.push(':');
        match values.as_slice() {
            [one] if !every => out.push_str(one),
            many => {
                out.push('[');
                out.push_str(&many.join(","));
                out.push(']');
            }
        }
    }
    out.push('}');
    (out.len() > 2).then_some(out)
}

/// The values at a path, as canonical JSON.
fn at(raw: &str, steps: &[Step], out: &mut Vec<String>) {
    let Some((step, rest)) = steps.split_first() else {
        out.extend(canonical(raw));
        return;
    };
    match step {
        Step::Key(name) => {
            if let Some(value) = member(raw, name) {
                at(value.get(), rest, out);
            }
        }
        Step::Index(_) | Step::Every => {
            let items = serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default();
            for (place, item) in items.into_iter().enumerate() {
                if *step == Step::Every || *step == Step::Index(place) {
                    at(item.get(), rest, out);
                }
            }
        }
    }
}

fn hashed(members: &Members<'_>, secret: &ArgumentHashKey) -> String {
    let mut out = String::from("{");
    for (place, (name, value)) in members.first.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_quoted(&shortened(name), &mut out);
        out.push_str(":\"");
        HEXLOWER.encode_append(&secret.digest(name, value.get()), &mut out);
        out.push('"');
    }
    out.push('}');
    out
}

impl ArgumentHashKey {
    /// HMAC-SHA-256 over the name, a zero byte and the value as canonical JSON; to search for a
    /// known value.
    pub fn digest(&self, name: &str, value: &str) -> [u8; 32] {
        let canonical = canonical(value);
        let value = canonical.as_deref().unwrap_or(value);
        // HMAC accepts a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return [0; 32] };
        mac.update(name.as_bytes());
        mac.update(&[0]);
        mac.update(value.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for ArgumentHashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArgumentHashKey")
    }
}

impl FactPath {
    /// Parses a path; `None` if it is not below `args`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix("args")?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let step;
            (step, rest) = if let Some(tail) = rest.strip_prefix(".\"") {
                let (key, tail) = tail.split_once('"')?;
                (Step::Key(key.to_owned()), tail)
            } else if let Some(tail) = rest.strip_prefix('.') {
                let end = tail.find(['.', '[']).unwrap_or(tail.len());
                let (key, tail) = tail.split_at_checked(end)?;
                (Step::Key(key.to_owned()), tail)
            } else {
                let (index, tail) = rest.strip_prefix('[')?.split_once(']')?;
                let step = match index {
                    "any" | "all" => Step::Every,
                    number => Step::Index(number.parse().ok()?),
                };
                (step, tail)
            };
            if step == Step::Key(String::new()) {
                return None;
            }
            steps.push(step);
        }
        (!steps.is_empty()).then(|| Self { text: text.into(), steps })
    }
}
