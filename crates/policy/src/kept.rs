//! The arguments that a standing exception keeps: what similar calls must have in common.

use serde::{Deserialize, Serialize};
use toolgate_json::{canonical, fold, walk::Walk};

use crate::{
    argument_digest,
    digest::Digest,
    json::{self, Value},
    path::{Path, Root, Segment},
};

/// What the arguments of a similar call must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// The same arguments, by their digest.
    All(String),
    /// The same values at these paths; `None` where there is no value.
    Paths(Vec<(String, Option<String>)>),
}

/// Paths cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotKeep {
    /// The path is not valid.
    #[error("`{0}` is not a path of one argument; write `args.NAME`, as in policies")]
    Path(String),
    /// The call has nothing there.
    #[error("the approved call has no argument at `{0}`")]
    Absent(String),
    /// The arguments have no canonical form.
    #[error("the arguments have no canonical form, so they cannot be compared")]
    Arguments,
}

impl Kept {
    /// What calls similar to one with these arguments have; without paths all of it.
    pub fn of(arguments: &str, paths: &[String]) -> Result<Self, CannotKeep> {
        if paths.is_empty() {
            let digest = argument_digest(arguments).map_err(|_| CannotKeep::Arguments)?;
            return Ok(Self::All(digest.to_string()));
        }
        let kept = paths.iter().map(|path| {
            let parsed = parse(path).ok_or_else(|| CannotKeep::Path(path.clone()))?;
            // A misspelt path would fit every call.
            let found = digest_at(arguments, &parsed)?;
            found.map_or_else(
                || Err(CannotKeep::Absent(path.clone())),
                |digest| Ok((path.clone(), Some(digest))),
            )
        });
        kept.collect::<Result<_, _>>().map(Self::Paths)
    }

    /// Whether a call with these arguments is similar. What cannot be compared is not.
    pub fn fits(&self, arguments: &str) -> bool {
        match self {
            Self::All(digest) => {
                argument_digest(arguments).is_ok_and(|own| own.to_string() == *digest)
            }
            Self::Paths(paths) => paths.iter().all(|(path, digest)| {
                let own = parse(path).map(|path| digest_at(arguments, &path));
                own.is_some_and(|own| own.is_ok_and(|own| own == *digest))
            }),
        }
    }
}

/// A path below `args` to one value. A name without `args` means a member of it.
fn parse(path: &str) -> Option<Path> {
    let parsed = Path::parse(path).ok().or_else(|| Path::parse(&format!("args.{path}")).ok())?;
    let is_one = parsed.root == Root::Args && parsed.is_single() && !parsed.segments.is_empty();
    is_one.then_some(parsed)
}

fn digest_at(arguments: &str, path: &Path) -> Result<Option<String>, CannotKeep> {
    let Some(raw) = at(arguments, &path.segments)? else { return Ok(None) };
    let text = canonical(raw).map_err(|_| CannotKeep::Arguments)?;
    Ok(Some(Digest::of(text.as_bytes()).to_string()))
}

/// The raw value at a path.
fn at<'a>(object: &'a str, segments: &[Segment]) -> Result<Option<&'a str>, CannotKeep> {
    let mut raw = object;
    for segment in segments {
        raw = match (segment, Value::read(raw).map_err(|_| CannotKeep::Arguments)?) {
            (Segment::Key(name), Value::Object(object)) => {
                if has_variant(object, name) {
                    return Err(CannotKeep::Arguments);
                }
                match json::member(object, name).map_err(|_| CannotKeep::Arguments)? {
                    Some(found) => found.text,
                    None => return Ok(None),
                }
            }
            (Segment::Index(index), Value::List(list)) => match element(list, *index) {
                Some(found) => found,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
    }
    Ok(Some(raw))
}

fn element(list: &str, index: usize) -> Option<&str> {
    let mut items = Walk::list(list).ok()?;
    for _ in 0..index {
        items.element().ok()??;
    }
    Some(items.element().ok()??.text)
}

/// Whether an object has a key that some readers take for this one.
fn has_variant(object: &str, name: &str) -> bool {
    let Ok(mut walk) = Walk::object(object) else { return true };
    loop {
        match walk.key() {
            Ok(Some(key)) => {
                let is_variant =
                    key.string().is_ok_and(|key| key != name && fold(&key) == fold(name));
                if is_variant || walk.value().is_err() {
                    return true;
                }
            }
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_calls_have_the_kept_values() {
        let call = r#"{"to":"desk","amount":5,"tags":["a",{"b":1}]}"#;
        let paths = |paths: &[&str]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
        // paths, another call, whether it is similar
        let cases = [
            (&[][..], r#"{"amount":5, "to":"desk","tags":["a",{"b":1}]}"#, true),
            (&[], r#"{"to":"desk","amount":5.0,"tags":["a",{"b":1}]}"#, false),
            (&[], r#"{"to":"desk","amount":5,"tags":["a",{"b":1}],"more":1}"#, false),
            (&["args.to"], r#"{"to":"desk","amount":9}"#, true),
            (&["to"], r#"{"to":"desk","amount":9}"#, true),
            (&["args.to"], r#"{"to":"Desk"}"#, false),
            (&["args.to"], r#"{"To":"desk"}"#, false),
            (&["args.to"], r#"{"to":"desk","To":"x"}"#, false),
            (&["args.tags[1].b"], r#"{"tags":[2,{"b":1}]}"#, true),
            (&["args.tags[1]"], r#"{"tags":[2,{"b":2}]}"#, false),
        ];
        for (keep, other, similar) in cases {
            let kept = Kept::of(call, &paths(keep)).unwrap();
            assert!(kept.fits(call), "{keep:?}");
            assert_eq!(kept.fits(other), similar, "{keep:?} {other}");
            let stored = serde_json::to_string(&kept).unwrap();
            assert_eq!(serde_json::from_str::<Kept>(&stored).unwrap(), kept);
        }
        for wrong in ["grant.label", "args", "args.none", "args.a[any]", ""] {
            assert!(Kept::of(call, &paths(&[wrong])).is_err(), "{wrong}");
        }
    }
}
