use super::*;

/// Failure, its code, its effect, and what the text must say.
fn table() -> Vec<(Failure, &'static str, Effect, &'static str)> {
    let refused = |number| {
        let class = match number {
            401 => StatusClass::Credentials,
            404 => StatusClass::NoEndpoint,
            _ => StatusClass::ServerError,
        };
        Failure::Refused { status: RefusedStatus { number, class } }
    };
    vec![
        (
            Failure::unavailable("connection refused"),
            "upstream_unavailable",
            Effect::NotStarted,
            "[UPSTREAM] server `s` cannot be reached: connection refused. Nothing was sent. \
             Trying again is safe, and useful once the server is back.",
        ),
        (
            Failure::Unavailable {
                why: "it keeps crashing".into(),
                retry_after: Some(Duration::from_millis(3_200)),
            },
            "upstream_unavailable",
            Effect::NotStarted,
            "[UPSTREAM] server `s` cannot be reached: it keeps crashing. Nothing was sent. \
             Try again in 4 s.",
        ),
        (
            refused(401),
            "outcome_unknown",
            Effect::Unknown,
            "[UPSTREAM] server `s` answered HTTP 401, so it does not accept our credentials: \
             see `headers` of this server. It may or may not have taken effect: check before you \
             repeat it.",
        ),
        (
            refused(401).of_handshake(),
            "upstream_unavailable",
            Effect::NotStarted,
            "[UPSTREAM] server `s` cannot be reached: it answered HTTP 401, so it does not accept \
             our credentials: see `headers` of this server. Nothing was sent. Trying again is \
             safe, and useful once the server is back.",
        ),
        (
            Failure::Forgotten,
            "upstream_unavailable",
            Effect::Unknown,
            "[UPSTREAM] server `s` has lost the session; a new one is being opened. The \
             request was sent, but servers that have lost a session usually do not execute it. \
             Repeat the call; if a second effect would do harm, check first.",
        ),
        (
            refused(500),
            "outcome_unknown",
            Effect::Unknown,
            "[UPSTREAM] server `s` answered HTTP 500. It may or may not have taken effect: \
             check before you repeat it.",
        ),
        (
            Failure::Timeout { after: Duration::from_mins(1) },
            "upstream_timeout",
            Effect::Unknown,
            "[UPSTREAM] server `s` did not answer within 60s. It may or may not have taken \
             effect: check before you repeat it.",
        ),
        (
            Failure::Lost { why: "the process exited with code 3".into() },
            "outcome_unknown",
            Effect::Unknown,
            "[UPSTREAM] server `s` was lost before it answered: the process exited with code 3. \
             It may or may not have taken effect: check before you repeat it.",
        ),
    ]
}

#[test]
fn every_failure_states_what_why_and_whether_to_retry() {
    for (failure, code, effect, text) in table() {
        assert_eq!(failure.error_code(), code, "{failure:?}");
        assert_eq!(failure.effect(), effect, "{failure:?}");
        assert_eq!(failure.text("s"), text);
    }
}

#[test]
fn a_tool_call_gets_a_tool_result_and_anything_else_an_error() {
    let failure =
        Failure::Unavailable { why: "x".into(), retry_after: Some(Duration::from_secs(2)) };
    let result: Value =
        serde_json::from_slice(&failure.answer("s", "7", AnswerKind::ToolResult, None)).unwrap();
    assert_eq!(result["id"], 7);
    assert_eq!(result["result"]["isError"], true);
    let meta = json!({
        "error_code": "upstream_unavailable", "effect": "not_started", "retry_after_s": 2
    });
    assert_eq!(result["result"]["_meta"], meta);

    let error: Value =
        serde_json::from_slice(&failure.answer("s", "\"a\"", AnswerKind::Other, None)).unwrap();
    assert_eq!(error["id"], "a");
    assert_eq!(error["error"]["code"], code::INTERNAL_ERROR);
    assert_eq!(error["error"]["data"], meta);
}
