//! Paths of conditions: `args.a.b`, `args.items[any].x`, `args."a.b"`, `identity.name`…

use crate::problem::nearest;

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) text: String,
    pub(crate) root: Root,
    pub(crate) segments: Vec<Segment>,
}

/// What a path starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Args,
    Result,
    GrantLabel,
    IdentityName,
    IdentityGroups,
    ClientName,
    Server,
    Tool,
    RiskClass,
    SessionKind,
    SessionInfobase,
    SessionHost,
    TimeHour,
    TimeWeekday,
}

/// One step down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Key(String),
    Index(usize),
    Any,
    All,
}

/// Facts of a call that are not arguments.
pub(crate) const FACTS: [(&str, Root); 12] = [
    ("grant.label", Root::GrantLabel),
    ("identity.name", Root::IdentityName),
    ("identity.groups", Root::IdentityGroups),
    ("client.name", Root::ClientName),
    ("server", Root::Server),
    ("tool", Root::Tool),
    ("risk.class", Root::RiskClass),
    ("session.kind", Root::SessionKind),
    ("session.infobase_name", Root::SessionInfobase),
    ("session.host_id", Root::SessionHost),
    ("time.hour", Root::TimeHour),
    ("time.weekday", Root::TimeWeekday),
];

/// Arguments nested deeper never reach a policy.
const MAX_SEGMENTS: usize = 64;

/// A problem of a path, with a hint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathError {
    pub(crate) message: String,
    pub(crate) hint: String,
}

fn wrong(message: impl Into<String>, hint: impl Into<String>) -> PathError {
    PathError { message: message.into(), hint: hint.into() }
}

impl Path {
    /// A path of a condition.
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        if text == "args" || text.starts_with("args.") || text.starts_with("args[") {
            return Self::under("args", Root::Args, text);
        }
        let base = text.split('[').next().unwrap_or_default();
        let Some((name, root)) = FACTS.iter().find(|(name, _)| *name == base) else {
            return Err(unknown(text));
        };
        let rest = text.strip_prefix(name).unwrap_or_default();
        if rest.is_empty() || *root == Root::IdentityGroups {
            let segments = segments(rest)?;
            Ok(Self { text: text.to_owned(), root: *root, segments })
        } else {
            Err(wrong(format!("`{name}` is not a list"), format!("write `{name}`")))
        }
    }

    /// A path into the arguments (`args.…`) or the result (`result.…`).
    pub(crate) fn under(word: &str, root: Root, text: &str) -> Result<Self, PathError> {
        let hint = format!("write `{word}.` and the name, as in `{word}.amount`");
        let Some(rest) = text.strip_prefix(word).filter(|r| r.starts_with('.')) else {
            return Err(wrong(format!("the path `{text}` does not start with `{word}.`"), hint));
        };
        let segments = segments(rest)?;
        if segments.is_empty() {
            return Err(wrong(format!("the path `{text}` names no argument"), hint));
        }
        Ok(Self { text: text.to_owned(), root, segments })
    }

    /// Whether it can give at most one value.
    pub(crate) fn is_single(&self) -> bool {
        !self.segments.iter().any(|s| matches!(s, Segment::Any | Segment::All))
    }
}

fn unknown(text: &str) -> PathError {
    let names = FACTS.iter().map(|(name, _)| *name);
    let hint = match nearest(text, names.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!(
            "arguments are `args.NAME`; other paths are {}",
            names.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    wrong(format!("unknown path `{text}`"), hint)
}

fn segments(rest: &str) -> Result<Vec<Segment>, PathError> {
    let mut segments = Vec::new();
    let mut rest = rest;
    while !rest.is_empty() {
        let (segment, behind) = if let Some(index) = rest.strip_prefix('[') {
            bracket(index)?
        } else if let Some(quoted) = rest.strip_prefix(".\"") {
            quoted_key(quoted)?
        } else if let Some(name) = rest.strip_prefix('.') {
            plain_key(name)?
        } else {
            return Err(wrong(
                format!("unexpected `{rest}` in the path"),
                "join names with dots, as in `args.a.b`",
            ));
        };
        segments.push(segment);
        rest = behind;
        if segments.len() > MAX_SEGMENTS {
            return Err(wrong("the path is too deep", "arguments are at most 64 levels deep"));
        }
    }
    Ok(segments)
}

fn bracket(text: &str) -> Result<(Segment, &str), PathError> {
    const HINT: &str = "write `[0]` for one element, `[any]` or `[all]` for several";
    let Some((inner, behind)) = text.split_once(']') else {
        return Err(wrong("`[` is never closed", HINT));
    };
    let segment = match inner {
        "any" => Segment::Any,
        "all" => Segment::All,
        "*" => {
            return Err(wrong(
                "`[*]` does not say whether one or every element is meant",
                "write `[any]` or `[all]`",
            ));
        }
        digits if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            let index =
                digits.parse().map_err(|_| wrong(format!("`[{digits}]` is too large"), HINT))?;
            Segment::Index(index)
        }
        other => return Err(wrong(format!("`[{other}]` is not an index"), HINT)),
    };
    Ok((segment, behind))
}

fn plain_key(text: &str) -> Result<(Segment, &str), PathError> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, behind) = text.split_at_checked(end).unwrap_or((text, ""));
    if name.is_empty() || name.contains(['"', ']']) || name.contains(char::is_whitespace) {
        return Err(wrong(
            format!("`{name}` is not a valid name in a path"),
            "quote names with dots, blanks or brackets: `args.\"a.b\"`",
        ));
    }
    Ok((Segment::Key(name.to_owned()), behind))
}

fn quoted_key(text: &str) -> Result<(Segment, &str), PathError> {
    let mut name = String::new();
    let mut rest = text.chars();
    loop {
        match rest.next() {
            Some('"') => return Ok((Segment::Key(name), rest.as_str())),
            Some('\\') => name.extend(rest.next()),
            Some(c) => name.push(c),
            None => {
                return Err(wrong("a quoted name is never closed", "close it: `args.\"a.b\"`"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Path, Root, Segment};

    #[test]
    fn paths_are_read_step_by_step() {
        let key = |s: &str| Segment::Key(s.to_owned());
        for (text, root, segments) in [
            ("args.a", Root::Args, vec![key("a")]),
            ("args.a.b", Root::Args, vec![key("a"), key("b")]),
            ("args.items[0].x", Root::Args, vec![key("items"), Segment::Index(0), key("x")]),
            ("args.items[any].x", Root::Args, vec![key("items"), Segment::Any, key("x")]),
            ("args.m[all][any]", Root::Args, vec![key("m"), Segment::All, Segment::Any]),
            (r#"args."a.b".c"#, Root::Args, vec![key("a.b"), key("c")]),
            (r#"args."q\"q""#, Root::Args, vec![key("q\"q")]),
            ("identity.groups", Root::IdentityGroups, vec![]),
            ("identity.groups[any]", Root::IdentityGroups, vec![Segment::Any]),
            ("time.hour", Root::TimeHour, vec![]),
        ] {
            let path = Path::parse(text).unwrap();
            assert_eq!((path.root, path.segments), (root, segments), "{text}");
        }
    }

    #[test]
    fn an_invalid_path_gets_a_hint() {
        for (text, hint) in [
            ("args", "args.amount"),
            ("args.", "quote names"),
            ("args.a..b", "quote names"),
            ("args.items[*].x", "[any]"),
            ("args.items[-1]", "[0]"),
            ("args.items[0", "[0]"),
            ("args.\"a", "close it"),
            ("identity.nme", "identity.name"),
            ("argz.a", "args.NAME"),
            ("server[0]", "write `server`"),
            ("args.a b", "quote names"),
            ("args.a[99999999999999999999]", "[0]"),
        ] {
            let error = Path::parse(text).unwrap_err();
            assert!(error.hint.contains(hint), "{text}: {error:?}");
        }
    }
}
