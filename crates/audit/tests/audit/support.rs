//! Rows for the tests, and a seeded random number generator.

use jiff::Timestamp;
use toolgate_audit::{CallId, CounterChange, Decision, Draft, Effect, Hash, Outcome, RowKind};
use toolgate_policy::Amount;

pub(crate) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// An intent with every field that an intent can have.
pub(crate) fn intent(second: i64) -> Draft {
    let mut draft = Draft::new(RowKind::Intent, time(second));
    draft.call_id = Some(CallId::new(u64::try_from(second).unwrap() * 1000, [7; 10]));
    draft.grant = Some("laptop".into());
    draft.identity = Some("sales-desk".into());
    draft.agent_session = Some("0a1b2c3d".into());
    draft.client = Some("claude-code".into());
    draft.via = Some("/mcp".into());
    draft.server = Some("zulip".into());
    draft.tool = Some("close".into());
    draft.fingerprint = Some(Hash::of(b"definition"));
    draft.risk = Some("write".into());
    draft.decision = Some(Decision::Allow);
    draft.rule = Some("/tools/close/limits/close_rate".into());
    draft.policy = Some("readonly".into());
    draft.policy_version = Some(3);
    draft.policy_hash = Some(Hash::of(b"policy"));
    draft.argument_keys = Some(r#"["id","reason"]"#.into());
    draft.counters = vec![CounterChange {
        counter: "close_rate".into(),
        before: Amount::whole(2),
        after: Amount::parse("3.5").unwrap(),
    }];
    draft
}

pub(crate) fn outcome(second: i64) -> Draft {
    let mut draft = Draft::new(RowKind::Outcome, time(second));
    draft.call_id = Some(CallId::new(u64::try_from(second).unwrap() * 1000, [7; 10]));
    draft.grant = Some("laptop".into());
    draft.outcome = Some(Outcome::Ok);
    draft.effect = Some(Effect::Done);
    draft.upstream_ms = Some(12);
    draft.total_ms = Some(14);
    draft
}

/// A row with all other fields, and text that must be escaped.
pub(crate) fn rest(second: i64) -> Draft {
    let mut draft = Draft::new(RowKind::Approval, time(second));
    draft.method = Some("resources/read".into());
    draft.person = Some("дежурный \"ops\"\n\u{1}".into());
    draft.session_id = Some("s-1".into());
    draft.error_code = Some("approval_denied".into());
    draft.arguments = Some(r#"{"a":[1.0,"x"]}"#.into());
    draft.approval_id = Some("ap-1".into());
    draft.message = Some("a\\b\t</script>".into());
    draft.count = Some(4);
    draft
}
