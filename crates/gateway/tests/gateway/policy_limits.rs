//! Limits and ownership: what is counted, refunded and owned.

use crate::harness::INITIALIZE;
use crate::policy::{answer, ask, both, call, harness, verdict};
use crate::script::settle;

#[tokio::test(start_paused = true)]
async fn a_limit_of_n_admits_n_and_the_next_window_opens() {
    let (harness, auto_server) = harness(
        "version: \"1\"\ndefault: deny\ntools:\n  close: { action: allow, limits: [{ counter: close_rate, max: 3, window: minute, scope: grant }] }\n",
    );
    let agents = both(&harness).await;
    auto_server.received();
    let mut verdicts = Vec::new();
    for n in 0..5 {
        let (agent, prefix) = &agents[n % 2];
        verdicts.push(verdict(agent, &format!("{prefix}close")).await);
    }
    let spent = "rate_limited /tools/close/limits/close_rate";
    assert_eq!(verdicts, ["sent", "sent", "sent", spent, spent]);
    let refused = answer(&agents[0].0, &call("close")).await;
    assert!(refused.contains(r#""retry_after_s":60"#), "{refused}");
    harness.test_admission.clock.set("2026-11-15T12:01:00Z".parse().unwrap());
    assert_eq!(verdict(&agents[0].0, "close").await, "sent");
}

#[tokio::test(start_paused = true)]
async fn edits_keep_counts_and_new_names_start_at_zero() {
    let document = |counter: &str, max: u8, more: &str| {
        format!(
            "version: \"1\"\ndefault: deny\n{more}tools:\n  close: {{ action: allow, limits: \
             [{{ counter: {counter}, max: {max}, window: hour, scope: grant }}] }}\n"
        )
    };
    let (harness, _player) = harness(&document("c", 3, ""));
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    let calls = async |count: usize| {
        let mut sent = 0;
        for _ in 0..count {
            sent += usize::from(verdict(&agent, "close").await == "sent");
        }
        sent
    };
    assert_eq!(calls(2).await, 2);
    // Each edit, and how many of nine calls pass after it.
    let edits = [
        (document("c", 3, "description: other words\n"), 1),
        (document("c", 5, "hide: [x]\n"), 2),
        (document("c", 2, ""), 0),
        (document("d", 2, ""), 2),
        (document("c", 6, ""), 1),
    ];
    for (edit, expected) in edits {
        harness.test_admission.enforce(&edit);
        harness.gateway.access_changed();
        assert_eq!(calls(9).await, expected, "{edit}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_left_is_given_back() {
    let (harness, auto_server) = harness(
        "version: \"1\"\ndefault: deny\ntools:\n  close: { action: allow, limits: [{ counter: c, max: 1, window: hour, scope: grant }] }\n",
    );
    let agent = harness.open_all(INITIALIZE).await;
    answer(&agent, &ask("tools/list", "{}")).await;
    auto_server.die(1);
    settle().await;
    let failed = answer(&agent, &call("files__close")).await;
    assert!(failed.contains(r#""error_code":"upstream_unavailable""#), "{failed}");
    assert_eq!(verdict(&agent, "files__close").await, "sent");
    assert!(verdict(&agent, "files__close").await.starts_with("rate_limited"));
    // A failure names the rows that tell of it, as a refusal does.
    let rows = harness.test_admission.rows_by(1).await;
    let call_id = rows[0].draft.call_id.unwrap().to_string();
    assert!(failed.contains(&format!(r#""call_id":"{call_id}""#)), "{failed}");
}

/// A large result is read off the runtime's threads, and still before the agent sees it.
#[tokio::test(start_paused = true)]
async fn what_a_large_result_yields_belongs_to_the_grant() {
    let (harness, auto_server) = harness(
        "version: \"1\"\ndefault: allow\ntools:\n  read_a: { yields: { job: result.id } }\n  close:\n    require: [{ conditions: [{ path: args.id, op: owned, value: job }] }]\n",
    );
    for (agent, prefix) in both(&harness).await {
        let close = call(&format!("{prefix}close"));
        for (id, filler) in [("small", 10), ("large", 1024 * 1024)] {
            let filler = "x".repeat(filler);
            auto_server.set(
                "tools/call",
                &format!(
                    r#"{{"content":[{{"type":"text","text":"{filler}"}}],"structuredContent":{{"id":"{prefix}{id}"}}}}"#
                ),
            );
            let close = close.replace("secret-7", &format!("{prefix}{id}"));
            let before = answer(&agent, &close).await;
            assert!(before.contains("policy_denied"), "{prefix}{id}");
            answer(&agent, &call(&format!("{prefix}read_a"))).await;
            let after = answer(&agent, &close).await;
            assert!(!after.contains("policy_denied"), "{prefix}{id}");
        }
    }
}

/// A call without arguments is one call, however that is spelled.
#[tokio::test(start_paused = true)]
async fn a_call_without_arguments_is_one_call_in_every_spelling() {
    let (harness, auto_server) =
        harness("version: \"1\"\ndefault: allow\ntools:\n  close: { unless_seen_within: 5m }\n");
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    for (params, is_sent) in [
        (r#"{"name":"close","arguments":{}}"#, true),
        (r#"{"name":"close","arguments":null}"#, false),
        (r#"{"name":"close"}"#, false),
        (r#"{"name":"close","arguments":{"a":null}}"#, true),
    ] {
        let answer = answer(&agent, &ask("tools/call", params)).await;
        assert_eq!(!answer.contains("policy_denied"), is_sent, "{params}: {answer}");
    }
    let received = auto_server.received();
    let calls = received.iter().filter(|body| body.contains("tools/call")).count();
    assert_eq!(calls, 2, "{received:?}");
}
