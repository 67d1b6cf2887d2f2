use super::{Rules, parse};
use crate::{IssueKind, Node};

const STRICT: Rules = Rules { max_depth: 4, max_nodes: 1_000, strict: true, keep_duplicates: true };
const EXPANDING: Rules =
    Rules { max_depth: 4, max_nodes: 40, strict: false, keep_duplicates: false };

fn read(text: &str, rules: &Rules) -> (Option<Node>, Vec<(IssueKind, usize, usize)>) {
    let mut issues = Vec::new();
    let node = parse(text, rules, &mut |issue| {
        issues.push((issue.kind, issue.span.line, issue.span.column));
    });
    (node, issues)
}

#[test]
fn valid_documents_give_the_same_tree_under_both_rules() {
    for (text, json) in [
        ("", "null"),
        ("~", "null"),
        ("a: 1", r#"{"a":1}"#),
        ("a: 1.50\nb: [true, False, 'true', off]", r#"{"a":1.50,"b":[true,false,"true","off"]}"#),
        ("{\"a\": {\"b\": null}}", r#"{"a":{"b":null}}"#),
        ("~: x\n1: y", r#"{"~":"x","1":"y"}"#),
        ("a: |\n  two\n  lines\n", r#"{"a":"two\nlines\n"}"#),
        ("a: 010", r#"{"a":"010"}"#),
    ] {
        for rules in [&STRICT, &EXPANDING] {
            let (node, issues) = read(text, rules);
            assert_eq!(node.unwrap().to_json(), json, "{text}");
            assert!(issues.is_empty(), "{text}: {issues:?}");
        }
    }
}

#[test]
fn issues_have_their_place() {
    let alias = |text: &str| IssueKind::Alias(text.to_owned());
    let twice = |line| IssueKind::DuplicateKey { name: "a".into(), first_line: line };
    let cases = [
        ("a: 1\nb: 2\na: 3", &STRICT, twice(1), (3, 1), Some(r#"{"a":1,"b":2,"a":3}"#)),
        ("a: 1\nb: 2\na: 3", &EXPANDING, twice(1), (3, 1), Some(r#"{"a":1,"b":2}"#)),
        ("? [a]\n: 1", &STRICT, IssueKind::KeyNotText, (1, 3), Some("{}")),
        ("a: !x 1", &STRICT, IssueKind::Tag, (1, 7), Some(r#"{"a":1}"#)),
        ("a: !!str 1", &STRICT, IssueKind::Tag, (1, 10), Some(r#"{"a":1}"#)),
        ("a: !x 1", &EXPANDING, IssueKind::Tag, (1, 7), Some(r#"{"a":1}"#)),
        ("a: &x 1", &STRICT, IssueKind::Anchor, (1, 7), Some(r#"{"a":1}"#)),
        ("a: *x", &STRICT, alias("*x"), (1, 4), Some(r#"{"a":"*x"}"#)),
        ("*x : 1", &STRICT, alias("*x"), (1, 1), Some(r#"{"*x":1}"#)),
        ("a: *x", &EXPANDING, IssueKind::UnknownAlias("x".into()), (1, 4), Some(r#"{"a":null}"#)),
        ("a: &x [*x]", &EXPANDING, IssueKind::RecursiveAlias, (1, 8), Some(r#"{"a":[null]}"#)),
        ("<<: 1", &EXPANDING, IssueKind::MergeKey, (1, 1), Some("{}")),
        ("a: 1\n---\nb: 2", &STRICT, IssueKind::SecondDocument, (2, 1), Some(r#"{"a":1}"#)),
        ("[[[[[]]]]]", &STRICT, IssueKind::TooDeep, (1, 5), None),
        (
            "a: &x [1, 2, 3, 4]\nb: &y [*x, *x]\nc: [*y, *y]",
            &EXPANDING,
            IssueKind::TooManyNodes,
            (3, 5),
            None,
        ),
    ];
    for (text, rules, kind, at, json) in cases {
        let (node, issues) = read(text, rules);
        assert_eq!(issues, [(kind, at.0, at.1)], "{text}");
        assert_eq!(node.map(|node| node.to_json()).as_deref(), json, "{text}");
    }
}

#[test]
fn aliases_are_expanded() {
    let (node, issues) = read("a: &x {b: 1}\nc: *x", &EXPANDING);
    assert_eq!(node.unwrap().to_json(), r#"{"a":{"b":1},"c":{"b":1}}"#);
    assert!(issues.is_empty());
}

#[test]
fn a_syntax_error_leaves_no_tree() {
    for text in ["a: [1", "a: 'x", "%YAML 1.2\n---\na: 1"] {
        let (node, issues) = read(text, &STRICT);
        assert!(node.is_none(), "{text}");
        assert!(matches!(issues.as_slice(), [(IssueKind::Syntax(_), ..)]), "{text}: {issues:?}");
    }
}
