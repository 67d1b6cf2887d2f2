//! What of a call's arguments is written: names always, values only as far as the mode says.
//!
//! Invariant: in `keys` mode no value, nor anything computed from one, is in the result.
//! Invariant: lists are bounded; an agent cannot swell the audit with names.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::value::RawValue;
use sha2::Sha256;
use toolgate_policy::canonical_json;

use crate::{canonical::push_string, id::push_hex};

/// At most so many names are written, each of at most so many bytes.
const NAMES: usize = 64;
const NAME: usize = 128;

/// How much of the arguments is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentMode {
    /// The names alone.
    #[default]
    Keys,
    /// Also the values at paths that active policies name.
    Facts,
    /// Also an HMAC of each value: who knows a value can look for it, nobody can guess one.
    Hashed,
    /// Also all values, as canonical JSON.
    Full,
}

/// The key of the `hashed` mode.
#[derive(Clone)]
pub struct Secret(pub [u8; 32]);

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

/// What is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// For `argument_keys`: a JSON list of names, sorted.
    pub keys: Option<Arc<str>>,
    /// For `arguments`: JSON, by mode.
    pub values: Option<Arc<str>>,
}

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// What to write of raw JSON arguments. Arguments that are no JSON object leave nothing.
pub fn record_arguments(
    mode: ArgumentMode,
    arguments: &str,
    paths: &[FactPath],
    secret: &Secret,
) -> Arguments {
    let Ok(members) = serde_json::from_str::<Members<'_>>(arguments) else {
        return Arguments::default();
    };
    let values = match mode {
        ArgumentMode::Keys => None,
        ArgumentMode::Facts => facts(arguments, paths),
        ArgumentMode::Hashed => Some(hashed(&members, secret)),
        ArgumentMode::Full => canonical_json(arguments).ok(),
    };
    Arguments { keys: Some(names(&members).into()), values: values.map(Into::into) }
}

fn names(members: &Members<'_>) -> String {
    let mut out = String::from("[");
    for (place, name) in members.keys().take(NAMES).enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_string(&shortened(name), &mut out);
    }
    if members.len() > NAMES {
        push_string(&format!("… {} more", members.len() - NAMES), {
            out.push(',');
            &mut out
        });
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
        push_string(&path.text, &mut out);
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
        out.extend(canonical_json(raw));
        return;
    };
    match step {
        Step::Key(name) => {
            let members = serde_json::from_str::<Members<'_>>(raw).unwrap_or_default();
            if let Some(value) = members.get(name.as_str()) {
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

fn hashed(members: &Members<'_>, secret: &Secret) -> String {
    let mut out = String::from("{");
    for (place, (name, value)) in members.iter().take(NAMES).enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_string(&shortened(name), &mut out);
        out.push_str(":\"");
        push_hex(&secret.digest(name, value.get()), &mut out);
        out.push('"');
    }
    out.push('}');
    out
}

impl Secret {
    /// HMAC-SHA-256 over the name, a zero byte and the value as canonical JSON; to look for a
    /// known value.
    pub fn digest(&self, name: &str, value: &str) -> [u8; 32] {
        let canonical = canonical_json(value);
        let value = canonical.as_deref().unwrap_or(value);
        // A key of any length is fine for HMAC.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return [0; 32] };
        mac.update(name.as_bytes());
        mac.update(&[0]);
        mac.update(value.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl FactPath {
    /// Reads a path; `None` if it is not one below `args`.
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
