//! Requests of servers during a call: clients of protocol 2026-07-28 receive them with
//! `input_required` and respond with their next request.

use std::sync::Arc;
use std::time::Duration;

use toolgate_audit::{Effect, Outcome};
use toolgate_gateway::{Access, Endpoint, Grant};
use toolgate_json::{peek, text};

use crate::client::{Client, ask_as};
use crate::harness::{Harness, settings};
use crate::reply::Seen;
use crate::script::{Kind, Line, Peer, Sent, settle};
use crate::test_admission::policy;

const ASKS: &str =
    r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","x":1.0}}"#;
const CALL: &str = r#""name":"t","arguments":{"a":1,"b":2}"#;
const ABLE: &str = r#"{"elicitation":{},"sampling":{}}"#;

fn able(harness: &Harness) -> Client<'_> {
    Client { capabilities: ABLE, ..Client::of_files(harness) }
}

fn call() -> String {
    ask_as("1", "tools/call", CALL)
}

/// The question in an answer, under its key, and the state.
fn asked(answer: &str) -> (String, String) {
    assert!(answer.contains(r#""resultType":"input_required""#), "{answer}");
    let state = text(peek(answer, &["result", "requestState"]).unwrap().unwrap()).unwrap();
    let questions = peek(answer, &["result", "inputRequests"]).unwrap().unwrap();
    let key = questions.strip_prefix("{\"").unwrap().split('"').next().unwrap();
    let question = peek(questions, &[key]).unwrap().unwrap();
    assert_eq!(question, r#"{"method":"elicitation/create","params":{"message":"m","x":1.0}}"#);
    (key.to_owned(), state.into_owned())
}

fn retry(id: &str, params: &str, answer: &str, state: &str) -> String {
    let more = format!(r#"{params},"inputResponses":{answer},"requestState":"{state}""#);
    ask_as(id, "tools/call", &more)
}

fn yes(key: &str) -> String {
    format!(r#"{{"{key}":{{"action":"accept","content":{{"n":1.0}}}},"other":7}}"#)
}

fn with_token(request: &str, token: &str) -> String {
    request.replace(r#""_meta":{"#, &format!(r#""_meta":{{"progressToken":{token},"#))
}

fn progress(token: &str, n: u8) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
    )
}

/// A call that waits for its client.
async fn parked(client: &Client<'_>, peer: &mut Peer) -> (Line, Sent, String, String) {
    let mut reply = client.ask(&call());
    let mut line = peer.line().await;
    let sent = line.next().await;
    sent.say(ASKS);
    let (key, state) = asked(&reply.message().await);
    assert_eq!(reply.next().await, None, "the request is over");
    (line, sent, key, state)
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_the_request_and_the_next_one_goes_on_with_the_call() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        harness.test_admission.enforce(
            "version: \"1\"\ndefault: allow\ntools:\n  t:\n    limits: [{ counter: once, window: hour, max: 1, scope: grant }]\n",
        );
        let client = able(&harness);
        let (mut line, sent, key, state) = parked(&client, &mut peer).await;
        assert!(line.rest().await.is_empty(), "the call runs on");
        let reply = client.ask(&retry("2", CALL, &yes(&key), &state));
        let answered = line.next().await;
        assert_eq!(
            answered.body,
            r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{"n":1.0}}}"#
        );
        sent.say(&ASKS.replace("\"q\"", "8"));
        let mut reply = reply;
        let (key, state) = asked(&reply.message().await);
        let reply = client.ask(&retry("\"x\"", CALL, &yes(&key), &state));
        assert_eq!(line.next().await.id(), "8");
        sent.answer(r#"{"content":[]}"#);
        assert_eq!(
            reply.answer().await,
            r#"{"jsonrpc":"2.0","id":"x","result":{"resultType":"complete","content":[]}}"#
        );
        let rows = harness.test_admission.rows_by(4).await;
        let outcomes: Vec<_> = rows.iter().map(|row| row.draft.outcome).collect();
        let asked = Some(Outcome::InputRequired);
        assert_eq!(outcomes, [None, asked, asked, Some(Outcome::Ok)], "one call, three legs");
        assert!(rows.iter().all(|row| row.draft.call_id == rows[0].draft.call_id));
        let again = client.ask(&call()).answer().await;
        assert!(again.contains("rate_limited"), "it was counted once: {again}");
    }
}

/// A client matches progress by the token of the request that it waits for.
#[tokio::test(start_paused = true)]
async fn progress_carries_the_token_of_the_newest_round() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let client = able(&harness);
        let mut reply = client.ask(&with_token(&call(), "\"first\""));
        let mut line = peer.line().await;
        let sent = line.next().await;
        let ours = sent.part(&["params", "_meta", "progressToken"]).unwrap();
        sent.say(&progress(ours, 1));
        assert_eq!(reply.message().await, progress("\"first\"", 1));
        sent.say(ASKS);
        let (key, state) = asked(&reply.message().await);
        let mut reply = client.ask(&with_token(&retry("2", CALL, &yes(&key), &state), "7"));
        line.next().await;
        sent.say(&progress(ours, 2));
        assert_eq!(reply.message().await, progress("7", 2));
        sent.say(&ASKS.replace("\"q\"", "8"));
        let (key, state) = asked(&reply.message().await);
        // This round wants no progress.
        let reply = client.ask(&retry("3", CALL, &yes(&key), &state));
        line.next().await;
        sent.say(&progress(ours, 3));
        sent.answer(r#"{"content":[]}"#);
        assert_eq!(
            reply.answer().await,
            r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","content":[]}}"#
        );
    }
}

/// The end of a leg is to be written before the client hears of it; on a full disk he hears of it
/// all the same, and goes on once there is room.
#[tokio::test(start_paused = true)]
async fn a_question_does_not_wait_for_ever_for_the_disk() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let client = able(&harness);
    let mut reply = client.ask(&call());
    let mut line = peer.line().await;
    let sent = line.next().await;
    harness.test_admission.memory.set_broken(true);
    sent.say(ASKS);
    let (key, state) = asked(&reply.message().await);
    let refused = client.ask(&retry("2", CALL, &yes(&key), &state)).answer().await;
    assert!(refused.contains("not_audited"), "{refused}");
    harness.test_admission.memory.set_broken(false);
    let reply = client.ask(&retry("3", CALL, &yes(&key), &state));
    assert_eq!(line.next().await.id(), "\"q\"");
    sent.answer("{}");
    reply.answer().await;
    let rows = harness.test_admission.rows_by(3).await;
    let outcomes: Vec<_> = rows.iter().map(|row| row.draft.outcome).collect();
    assert_eq!(outcomes, [None, Some(Outcome::InputRequired), Some(Outcome::Ok)]);
}

#[tokio::test(start_paused = true)]
async fn a_state_is_good_for_its_own_call_once() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let client = able(&harness);
    let (mut line, sent, key, state) = parked(&client, &mut peer).await;
    let stranger = Grant {
        label: "other".into(),
        policy: Some(policy("version: \"1\"\ndefault: allow\n")),
        ..Grant::default()
    };
    let stranger = Client { grant: Arc::new(stranger), ..client.clone() };
    let elsewhere = Client { endpoint: Endpoint::All, ..client.clone() };
    let flipped = |(at, digit)| if at == 40 { if digit == '0' { '1' } else { '0' } } else { digit };
    let forged: String = state.chars().enumerate().map(flipped).collect();
    let refused = [
        (&client, CALL, forged.as_str()),
        (&client, CALL, ""),
        (&client, CALL, "00ff"),
        (&client, r#""name":"u","arguments":{"a":1,"b":2}"#, &state),
        (&client, r#""name":"t","arguments":{"a":1,"b":3}"#, &state),
        (&client, r#""name":"t""#, &state),
        (&stranger, CALL, &state),
        (&elsewhere, CALL, &state),
    ];
    for (client, params, state) in refused {
        let refusal = client.refusal(&retry("2", params, &yes(&key), state)).await;
        assert!(refusal.starts_with("-32602 "), "{params} {refusal}");
    }
    for missing in ["{}", r#"{"nobody":{}}"#, &format!(r#"{{"{key}":7}}"#)] {
        let mut again = client.ask(&retry("3", CALL, missing, &state));
        assert_eq!(asked(&again.message().await).0, key);
    }
    assert!(line.rest().await.is_empty(), "nothing of that has reached the server");
    let reordered = r#""name":"t","arguments":{"b":2, "a":1}"#;
    let reply = client.ask(&retry("4", reordered, &yes(&key), &state));
    assert_eq!(line.next().await.id(), "\"q\"");
    let replayed = client.refusal(&retry("5", CALL, &yes(&key), &state)).await;
    assert!(replayed.contains("was used"), "{replayed}");
    sent.answer("{}");
    reply.answer().await;
    let too_late = client.refusal(&retry("6", CALL, &yes(&key), &state)).await;
    assert!(too_late.contains("was used"), "{too_late}");
}

#[tokio::test(start_paused = true)]
async fn a_round_that_is_not_continued_in_ten_minutes_cancels_the_call() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        harness
            .test_admission
            .enforce("version: \"1\"\ndefault: allow\ntools:\n  t: { concurrency: { max: 1 } }\n");
        let client = able(&harness);
        let (mut line, sent, key, state) = parked(&client, &mut peer).await;
        tokio::time::sleep(Duration::from_secs(599)).await;
        assert!(line.rest().await.is_empty());
        let second = client.ask(&call()).answer().await;
        assert!(second.contains("rate_limited"), "the call is in flight: {second}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let told = line.rest().await;
        assert_eq!(told.len(), 2, "{told:?}");
        let cancels = told.iter().find(|body| body.contains("notifications/cancelled")).unwrap();
        assert_eq!(peek(cancels, &["params", "requestId"]).unwrap(), Some(sent.id()));
        assert!(told.iter().any(|body| body.contains(r#""id":"q","error""#)), "{told:?}");
        let refusal = client.refusal(&retry("2", CALL, &yes(&key), &state)).await;
        assert!(refusal.starts_with("-32602 "), "{refusal}");
        let late = "2026-11-15T12:10:01Z".parse().unwrap();
        harness.test_admission.clock.set(late);
        harness.test_admission.store.tick(late);
        let rows = harness.test_admission.rows_by(4).await;
        let last = &rows[3].draft;
        assert_eq!(last.call_id, rows[0].draft.call_id);
        assert_eq!((last.outcome, last.effect), (Some(Outcome::Cancelled), Some(Effect::Unknown)));
        let after = client.ask(&call());
        line.next().await.answer(r#"{"content":[]}"#);
        assert!(after.answer().await.contains("complete"), "it is no longer in flight");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_is_too_old_after_ten_minutes_whatever_became_of_its_call() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let client = able(&harness);
    let (_line, _sent, key, state) = parked(&client, &mut peer).await;
    harness.test_admission.clock.set("2026-11-15T12:10:01Z".parse().unwrap());
    let refusal = client.refusal(&retry("2", CALL, &yes(&key), &state)).await;
    assert!(refusal.contains("has expired"), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn the_next_leg_is_decided_again() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let client = able(&harness);
    let (mut line, sent, key, state) = parked(&client, &mut peer).await;
    let grant = |document: &str| {
        let grant =
            Grant { label: "local".into(), policy: Some(policy(document)), ..Grant::default() };
        let grant = Arc::new(grant);
        let access = Access::new(Some(Arc::clone(&grant)), []);
        harness.test_admission.admission.set_access(access);
        grant
    };
    let strict = Client { grant: grant("version: \"1\"\ndefault: deny\n"), ..client.clone() };
    let refused = strict.ask(&retry("2", CALL, &yes(&key), &state)).answer().await;
    assert!(refused.contains("policy_denied") && refused.contains(r#""resultType":"complete""#));
    assert!(line.rest().await.is_empty());
    let open = Client { grant: grant("version: \"1\"\ndefault: allow\n"), ..client.clone() };
    let reply = open.ask(&retry("3", CALL, &yes(&key), &state));
    assert_eq!(line.next().await.id(), "\"q\"");
    sent.answer("{}");
    reply.answer().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_outcome_of_a_parked_call_is_unknown() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (_line, _sent, key, state) = parked(&able(&harness), &mut peer).await;
    let restarted = Harness::numbered_from(1_000);
    let peer = Peer::new(Kind::Child);
    restarted.apply([restarted.server(settings("files"), &peer)]);
    let client = able(&restarted);
    let answer = client.ask(&retry("2", CALL, &yes(&key), &state)).answer().await;
    assert!(answer.contains("outcome_unknown") && answer.contains(r#""resultType":"complete""#));
    settle().await;
    assert_eq!(peer.tried(), 0, "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn only_what_a_client_can_answer_is_asked_and_only_in_what_may_ask() {
    let (harness, mut peer) = Harness::one(Kind::Http);
    let client = able(&harness);
    let mut listing = client.ask(&ask_as("1", "tools/list", ""));
    let mut line = peer.line().await;
    let sent = line.next().await;
    sent.say(ASKS);
    assert!(line.next().await.part(&["error"]).is_some(), "a list asks nothing");
    sent.answer(r#"{"tools":[]}"#);
    assert!(listing.message().await.contains("complete"));
    let mut reply = client.ask(&call());
    let sent = line.next().await;
    for method in ["roots/list", "x/y"] {
        sent.say(&format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{method}"}}"#));
        assert!(line.next().await.part(&["error"]).is_some(), "{method}");
    }
    sent.say(r#"{"jsonrpc":"2.0","id":6,"method":"sampling/createMessage","params":{}}"#);
    assert!(reply.message().await.contains("sampling/createMessage"));
}

#[tokio::test(start_paused = true)]
async fn questions_that_come_together_are_asked_one_after_the_other() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let client = able(&harness);
        let mut reply = client.ask(&call());
        let mut line = peer.line().await;
        let sent = line.next().await;
        sent.say(ASKS);
        sent.say(&ASKS.replace("\"q\"", "8"));
        let (first, state) = asked(&reply.message().await);
        assert_eq!(reply.next().await, None);
        let mut reply = client.ask(&retry("2", CALL, &yes(&first), &state));
        assert_eq!(line.next().await.id(), "\"q\"");
        let (second, state) = asked(&reply.message().await);
        assert_ne!(first, second);
        assert!(line.rest().await.is_empty(), "nobody has answered that yet");
        let reply = client.ask(&retry("3", CALL, &yes(&second), &state));
        assert_eq!(line.next().await.id(), "8");
        sent.answer(r#"{"content":[]}"#);
        assert!(reply.answer().await.contains(r#""resultType":"complete""#));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_lacks_a_capability_names_it() {
    let (form, url) = (r#"{"elicitation":{}}"#, r#"{"elicitation":{"url":{}}}"#);
    let table = [
        ("{}", "roots/list", "{}", r#"{"roots":{}}"#),
        ("{}", "elicitation/create", "{}", form),
        (form, "elicitation/create", r#"{"mode":"url"}"#, url),
        (url, "elicitation/create", "{}", r#"{"elicitation":{"form":{}}}"#),
        ("{}", "sampling/createMessage", "{}", r#"{"sampling":{}}"#),
        (
            r#"{"sampling":{}}"#,
            "sampling/createMessage",
            r#"{"tools":[]}"#,
            r#"{"sampling":{"tools":{}}}"#,
        ),
    ];
    for (capabilities, method, params, required) in table {
        for kind in [Kind::Child, Kind::Http] {
            let (harness, mut peer) = Harness::one(kind);
            let client = Client { capabilities, ..Client::of_files(&harness) };
            let mut line = None;
            for fails in [true, false] {
                let reply = client.ask(&call());
                if line.is_none() {
                    line = Some(peer.line().await);
                }
                let line = line.as_mut().unwrap();
                let sent = line.next().await;
                sent.say(&format!(
                    r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{params}}}"#
                ));
                let told = line.next().await;
                assert_eq!(told.part(&["error", "code"]), Some("-32601"), "{required}");
                sent.answer(&format!(
                    r#"{{"content":[{{"type":"text","text":"alas"}}],"isError":{fails}}}"#
                ));
                let seen = reply.all().await;
                let [Seen::Body(body, status)] = &seen[..] else { panic!("{seen:?}") };
                let error = peek(body, &["error"]).unwrap();
                if !fails {
                    // The server could do without.
                    assert_eq!((error, *status), (None, 200), "{body}");
                    continue;
                }
                let error = error.unwrap();
                assert_eq!(peek(error, &["code"]).unwrap(), Some("-32021"));
                let data = format!(r#"{{"requiredCapabilities":{required}}}"#);
                assert_eq!(peek(error, &["data"]).unwrap(), Some(data.as_str()));
                assert!(error.contains("alas") && *status == 400, "{status} {error}");
            }
        }
    }
}
