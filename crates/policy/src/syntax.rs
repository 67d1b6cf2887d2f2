//! Parses the text of a policy into a tree and words the problems of its YAML.
//!
//! Invariant: anchors, aliases, tags and several documents in one file are rejected, so that the
//! policy means what a person reads.
//! Invariant: size and depth are bounded.

pub(crate) use toolgate_yaml::{Entry as Member, Key, Node, Value};
use toolgate_yaml::{Issue, IssueKind, Rules, Scalar};

use crate::{Code, Span, problem::Findings};

/// Largest document, in bytes.
pub const MAX_BYTES: usize = 4 << 20;

const RULES: Rules =
    Rules { max_depth: 64, max_nodes: usize::MAX, strict: true, keep_duplicates: true };

/// Parses a document. `None` after a report if there is no tree.
pub(crate) fn parse(source: &str, findings: &mut Findings<'_>) -> Option<Node> {
    if source.len() > MAX_BYTES {
        findings.add(
            Code::TooLarge,
            Span::default(),
            format!("the document has more than {MAX_BYTES} bytes (4 MiB)"),
            "split it into several policies, or use globs and classes instead of single tools",
        );
        return None;
    }
    let mut has_alias = false;
    let mut root = toolgate_yaml::parse(source, &RULES, &mut |issue| {
        // An unquoted glob as a key takes its colon with it, which ends the mapping.
        let follows = has_alias && matches!(issue.kind, IssueKind::Syntax(_));
        has_alias |= matches!(issue.kind, IssueKind::Alias(_));
        if !follows {
            report(issue, findings);
        }
    })?;
    if matches!(root.value(), Value::Null) {
        findings.add(
            Code::Syntax,
            Span::default(),
            "the document is empty",
            "a policy begins with `version: \"1\"` and `default: deny`",
        );
        return None;
    }
    root.for_each_scalar(&mut |scalar, span| ambiguous_number(scalar, span, findings));
    Some(root)
}

/// A value's type, for messages.
pub(crate) fn type_name(node: &Node) -> &'static str {
    match node.value() {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) | Value::AmbiguousNumber(_) => "a number",
        Value::Text(_) => "a string",
        Value::List(_) => "a list",
        Value::Map(_) => "a mapping",
    }
}

fn ambiguous_number(scalar: &mut Scalar, span: Span, findings: &mut Findings<'_>) {
    let Value::AmbiguousNumber(text) = scalar.value() else { return };
    findings.add(
        Code::Number,
        span,
        format!("`{text}` is a number that parsers read differently"),
        "write it in plain decimal, or quote it if it is text",
    );
    // The document is rejected; any number lets the remaining checks continue.
    "1".clone_into(&mut scalar.text);
}

fn report(Issue { kind, span }: Issue, findings: &mut Findings<'_>) {
    let (code, message, hint) = match kind {
        IssueKind::Syntax(message) => (Code::Syntax, sentence(&message), syntax_hint(&message)),
        IssueKind::TooDeep | IssueKind::TooManyNodes => (
            Code::TooLarge,
            format!("nested deeper than {} levels", RULES.max_depth),
            "flatten the document; no policy needs that depth".to_owned(),
        ),
        IssueKind::Alias(text) => {
            let glob = text.trim_end_matches(':');
            (
                Code::Unsupported,
                format!("`{glob}` is a YAML alias, which the policy language does not have"),
                format!("quote globs that begin with `*`: `\"{glob}\"`"),
            )
        }
        IssueKind::UnknownAlias(_) | IssueKind::RecursiveAlias => unsupported("aliases"),
        IssueKind::Anchor => unsupported("anchors"),
        IssueKind::Tag => unsupported("tags"),
        IssueKind::MergeKey => unsupported("merge keys"),
        IssueKind::SecondDocument => (
            Code::Unsupported,
            "several documents in one file are not part of the policy language".to_owned(),
            "put each policy into a file of its own".to_owned(),
        ),
        IssueKind::KeyNotText => (
            Code::Syntax,
            "a key must be text".to_owned(),
            "write `key: value`; quote keys such as `\"[abc]*\"`".to_owned(),
        ),
        IssueKind::DuplicateKey { name, first_line } => (
            Code::DuplicateKey,
            format!("duplicate key `{name}`"),
            format!("the first one is on line {first_line}: merge the two"),
        ),
    };
    findings.add(code, span, message, hint);
}

fn unsupported(what: &str) -> (Code, String, String) {
    (
        Code::Unsupported,
        format!("{what} are not part of the policy language"),
        "write the value out where it is used".to_owned(),
    )
}

fn sentence(message: &str) -> String {
    let mut message = message.trim_end_matches('.').to_owned();
    if let Some(first) = message.get_mut(0..1) {
        first.make_ascii_lowercase();
    }
    message
}

fn syntax_hint(message: &str) -> String {
    if message.contains("anchor or alias") {
        return "quote globs that begin with `*`, as in `\"*_delete\"` or `\"*\"`".to_owned();
    }
    "check quotes, brackets and indentation; a value with `: ` or ` #` in it needs quotes"
        .to_owned()
}
