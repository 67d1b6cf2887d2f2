use crate::{Call, Class, Known, Outcome, Policy};

fn outcome(arguments: &str, result: &str) -> Outcome {
    let source = r#"
version: "1"
default: allow
tools:
  analyze: { yields: { job: result.session_id, part: { path: "result.parts[1].id", for: 1h, shared: true, scope: identity } } }
  close: { ends: { job: args.session_id } }
"#;
    let loaded = Policy::load("p", source, &Known::default());
    let policy = loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.problems));
    let tool = if arguments.is_empty() { "analyze" } else { "close" };
    policy.outcome(&Call::new("photo", tool, Class::Other, arguments), result)
}

fn values(outcome: &Outcome) -> Vec<(&str, &str)> {
    outcome.yields.iter().map(|y| (y.kind.as_str(), y.value.as_str())).collect()
}

#[test]
fn results_yield_what_they_name() {
    for (result, expected) in [
        (r#"{"structuredContent":{"session_id":"a1"}}"#, vec![("job", "\"a1\"")]),
        (r#"{"structuredContent":{"session_id":7.0},"isError":false}"#, vec![("job", "7")]),
        (
            r#"{"content":[{"type":"text","text":"{\"session_id\": \"b\"}"}]}"#,
            vec![("job", "\"b\"")],
        ),
        (
            r#"{"content":[{"type":"text","text":"no object"},{"type":"text","text":"{\"session_id\":3}"}]}"#,
            vec![("job", "3")],
        ),
        (
            r#"{"structuredContent":{"parts":[{"id":1},{"id":2}]},"content":[]}"#,
            vec![("part", "2")],
        ),
        (r#"{"structuredContent":{"session_id":"a1"},"isError":true}"#, vec![]),
        (r#"{"structuredContent":{"session_id":"a1"},"isError":"no"}"#, vec![]),
        (r#"{"structuredContent":{"session_id":[1]}}"#, vec![]),
        (r#"{"structuredContent":{"session_id":1.5}}"#, vec![]),
        (r#"{"structuredContent":{"session_id":null}}"#, vec![]),
        (r"{}", vec![]),
        (r"not json", vec![]),
    ] {
        assert_eq!(values(&outcome("", result)), expected, "{result}");
    }
    let long = format!(r#"{{"structuredContent":{{"session_id":"{}"}}}}"#, "x".repeat(257));
    assert!(outcome("", &long).yields.is_empty());
}

#[test]
fn results_end_what_the_arguments_name() {
    let ended = outcome(r#"{"session_id":"a1"}"#, r#"{"content":[]}"#).ends;
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].kind.as_str(), ended[0].value.as_str()), ("job", "\"a1\""));
    assert!(outcome(r#"{"session_id":"a1"}"#, r#"{"content":[],"isError":true}"#).ends.is_empty());
    assert!(outcome(r#"{"other":1}"#, r#"{"content":[]}"#).ends.is_empty());
}
