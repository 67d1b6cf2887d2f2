//! Parses the text of a configuration into a tree and words the problems of its YAML.
//!
//! Nothing is typed here: a scalar keeps its spelling and whether it was quoted, and the readers
//! interpret it. Duplicate keys are reported and stay in the tree, so that one mistake does not
//! hide the next.
//!
//! Invariant: size and depth are bounded, aliases expanded.
//! Start at [`parse`].

use std::borrow::Cow;

use toolgate_policy::Severity;
pub(crate) use toolgate_yaml::{Entry, Key, Kind, Node, Scalar, Value};
use toolgate_yaml::{Issue, IssueKind, Rules};

use crate::finding::{Finding, MAX_FINDINGS, Span};
use crate::problem::code;
use crate::source::Source;

/// 64 levels below the document itself.
const RULES: Rules =
    Rules { max_depth: 65, max_nodes: 100_000, strict: false, keep_duplicates: false };

/// Parses the only document of `source`. Findings that leave a tree go to `findings` too; `None`
/// means that there is no tree.
pub(crate) fn parse(source: &Source, findings: &mut Vec<Finding>) -> Option<Node> {
    toolgate_yaml::parse(&source.text, &RULES, &mut |issue| {
        if findings.len() < MAX_FINDINGS || leaves_no_tree(&issue.kind) {
            findings.push(worded(issue, source));
        }
    })
}

fn leaves_no_tree(kind: &IssueKind) -> bool {
    matches!(kind, IssueKind::Syntax(_) | IssueKind::TooDeep | IssueKind::TooManyNodes)
}

fn worded(Issue { kind, span }: Issue, source: &Source) -> Finding {
    let (code, message, hint): (_, Cow<'static, str>, Option<Cow<'static, str>>) = match kind {
        IssueKind::Syntax(message) => {
            let hint = syntax_hint(&message, source, span);
            (code::SYNTAX, message.into(), hint.map(Cow::Borrowed))
        }
        IssueKind::TooDeep => {
            (code::TOO_LARGE, "the file is nested more than 64 levels deep".into(), None)
        }
        IssueKind::TooManyNodes => {
            let message =
                "the file has more than 100,000 values, counting aliases as often as they are used";
            (code::TOO_LARGE, message.into(), None)
        }
        IssueKind::SecondDocument => (
            code::UNSUPPORTED_YAML,
            "a second document in one file".into(),
            Some("remove `---`".into()),
        ),
        IssueKind::Tag => (
            code::UNSUPPORTED_YAML,
            "tags are not supported".into(),
            Some("write the value without the tag".into()),
        ),
        IssueKind::UnknownAlias(name) => (
            code::SYNTAX,
            format!("`*{name}` has no anchor before it").into(),
            Some("define it first with `&`, or quote the text".into()),
        ),
        // The rules accept anchors and other aliases.
        IssueKind::RecursiveAlias | IssueKind::Alias(_) | IssueKind::Anchor => (
            code::SYNTAX,
            "an alias inside its own anchor".into(),
            Some("write the value out".into()),
        ),
        IssueKind::MergeKey => {
            let hint = "merge keys are not part of YAML 1.2: repeat the keys, or use an alias for the whole value";
            (code::UNSUPPORTED_YAML, "merge keys are not supported".into(), Some(hint.into()))
        }
        IssueKind::KeyNotText => {
            (code::WRONG_TYPE, "a key must be text".into(), Some("write `key: value`".into()))
        }
        IssueKind::DuplicateKey { name, first_line } => {
            // `KEY=value` in place of a key may contain a secret.
            let shown = name.split_once('=').map_or(name.as_str(), |(name, _)| name);
            let hint = format!("it is already on line {first_line}: keep one of them");
            (code::DUPLICATE_KEY, format!("`{shown}` is defined twice").into(), Some(hint.into()))
        }
    };
    let (message, hint) = (message.into_owned(), hint.map(Cow::into_owned));
    Finding { severity: Severity::Error, code, span, message, hint }
}

fn syntax_hint(message: &str, source: &Source, span: Span) -> Option<&'static str> {
    let start = source.text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = source.text.get(start..)?.lines().next()?;
    let indent = line.len() - line.trim_start().len();
    if line.get(..indent)?.contains('\t') {
        return Some("indent with spaces: YAML does not allow tabs there");
    }
    message.contains("mapping values").then_some("quote a value that has `: ` in it")
}
