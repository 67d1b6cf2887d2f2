//! A data folder that another process changes, and one with ten thousand grants.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate_audit::{Draft, Hash, RowKind};
use toolgate_store::{Change, Freeze, FreezeTarget, Store, StoredGrant};
use toolgate_store_sqlite::{Durability, OpenOptions, Randomness};

use crate::agent::{Agent, NEWEST, initialize_with};
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::Peer;

const DATA: &str = ".local/share/toolgate";
const OPEN: &str = r#"{"version":"1","default":"allow"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// The store of a folder, opened by this process in addition to others.
fn another_process(home: &Home) -> Arc<dyn Store> {
    let owner = u64::from(std::process::id()) << 20
        | u64::from(Timestamp::now().subsec_nanosecond().unsigned_abs() >> 12);
    let randomness = Randomness { owner, signing: [1; 32], hashing: [2; 32] };
    let options = OpenOptions::new(Durability::Process, randomness);
    let opened = toolgate_store_sqlite::open(&home.path(DATA), options, Timestamp::now());
    Arc::new(opened.unwrap().store)
}

fn token(number: usize) -> String {
    format!("token-{number:05}-of-ten-thousand")
}

fn grant(number: usize) -> StoredGrant {
    StoredGrant {
        id: format!("id-{number:05}").into(),
        label: format!("grant-{number:05}").into(),
        token: Hash::of(token(number).as_bytes()),
        identity: None,
        groups: Vec::new(),
        servers: None,
        sessions: None,
        policy: Some("open".into()),
        created: Timestamp::now(),
        expires: None,
        last_use: None,
        revoked: None,
    }
}

fn change(store: &Arc<dyn Store>, changes: Vec<Change>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let row = || Draft::new(RowKind::Admin, Timestamp::now());
    let answers = changes.into_iter().map(|change| store.change(change, row()));
    for answer in runtime.block_on(join_all(answers)) {
        answer.unwrap();
    }
}

fn close(store: &Arc<dyn Store>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.close(Timestamp::now())).unwrap();
}

/// The error code of a call, or `sent`; `401` if the token is not taken any more.
fn verdict(agent: &Agent) -> String {
    let body =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#;
    let reply = agent.send(body);
    if reply.status != 200 {
        return reply.status.to_string();
    }
    let code = reply.json()["result"]["_meta"]["error_code"].clone();
    code.as_str().unwrap_or("sent").to_owned()
}

#[test]
fn what_another_process_changes_bites_on_the_next_call() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let gate = Gate::start_in(home, &format!("servers:\n{}", peer.entry("", "")));
    let other = another_process(&gate.home);
    let policy =
        |document: &str| Change::PutPolicy { name: "open".into(), document: document.into() };
    let grants = (0..2).map(|number| Change::PutGrant(Box::new(grant(number))));
    change(&other, std::iter::once(policy(OPEN)).chain(grants).collect());
    let agents: Vec<Agent> = (0..2)
        .map(|number| {
            let bearer = format!("Authorization: Bearer {}\r\n", token(number));
            eventually("the grant is known", || {
                let status = initialize_with(&gate, "/mcp/peer", NEWEST, &bearer).status;
                (status == 200).then_some(())
            });
            Agent::open_with(&gate, "peer", &token(number))
        })
        .collect();
    let [one, two] = &agents[..] else { panic!("two agents") };
    let calls = || peer.received().iter().filter(|m| m["method"] == "tools/call").count();
    let freeze = |id: &str, what| {
        let (created, person, reason) = (Timestamp::now(), None, None);
        Change::Freeze(Freeze { id: id.into(), what, created, person, reason })
    };
    let deny = r#"{"version":"1","default":"allow","tools":{"echo":{"action":"deny"}}}"#;
    // Each change, and what the very next calls of both get: no time passes before what is refused.
    let steps: Vec<(Change, [&str; 2])> = vec![
        (policy(OPEN), ["sent", "sent"]),
        (freeze("f1", FreezeTarget::Grant("grant-00000".into())), ["frozen", "sent"]),
        (Change::Unfreeze("f1".into()), ["sent", "sent"]),
        (freeze("f2", FreezeTarget::Server("peer".into())), ["frozen", "frozen"]),
        (Change::Unfreeze("f2".into()), ["sent", "sent"]),
        (freeze("f3", FreezeTarget::All), ["frozen", "frozen"]),
        (Change::Unfreeze("f3".into()), ["sent", "sent"]),
        (policy(deny), ["policy_denied", "policy_denied"]),
        (policy(OPEN), ["sent", "sent"]),
    ];
    for (step, (made, expected)) in steps.into_iter().enumerate() {
        let lifts = matches!(made, Change::Unfreeze(_));
        change(&other, vec![made]);
        if lifts {
            // What is frozen is refused without asking the store; it thaws within a second.
            eventually("it thaws", || (verdict(one) == "sent").then_some(()));
        }
        let before = calls();
        assert_eq!([verdict(one), verdict(two)], expected, "step {step}");
        let sent = expected.iter().filter(|verdict| **verdict == "sent").count();
        assert_eq!(calls() - before, sent, "step {step}");
    }
    change(&other, vec![Change::RevokeGrant("id-00000".into())]);
    let before = calls();
    let refused = verdict(one);
    // With the grant goes its agent session, and the way to the server with that; whichever is
    // noticed first.
    let refusals = ["policy_denied", "401", "404", "upstream_unavailable"];
    assert!(refusals.contains(&refused.as_str()), "{refused}");
    assert_eq!(calls(), before, "nothing was sent");
    eventually("the token is refused", || (one.send(PING).status == 401).then_some(()));
    assert_eq!(verdict(two), "sent");
    close(&other);
}

#[test]
fn ten_thousand_grants_are_found_listed_and_revoked() {
    const GRANTS: usize = 10_000;
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let store = another_process(&home);
    let policy = Change::PutPolicy { name: "open".into(), document: OPEN.into() };
    let grants = (0..GRANTS).map(|number| Change::PutGrant(Box::new(grant(number))));
    change(&store, std::iter::once(policy).chain(grants).collect());
    close(&store);
    let gate = Gate::start_in(home, &format!("servers:\n{}", peer.entry("", "")));
    let api = Api::admin(&gate);
    let (mut labels, mut after) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("grants?limit=1000{after}"));
        let items = page["items"].as_array().unwrap();
        labels.extend(items.iter().map(|item| item["label"].as_str().unwrap().to_owned()));
        let Value::String(next) = &page["next"] else { break };
        after = format!("&after={next}");
    }
    let expected: Vec<String> = (0..GRANTS).map(|number| grant(number).label.to_string()).collect();
    assert_eq!(labels, expected);
    let agents: Vec<Agent> = [0, 4_999, 5_000, GRANTS - 1]
        .iter()
        .map(|number| Agent::open_with(&gate, "peer", &token(*number)))
        .collect();
    for agent in &agents {
        assert_eq!(verdict(agent), "sent");
    }
    api.expect(204, "DELETE", "grants/grant-05000", "");
    let verdicts: Vec<String> = agents.iter().map(verdict).collect();
    assert_eq!(verdicts, ["sent", "sent", "401", "sent"], "the next request of that one");
    assert_eq!(api.get("audit?grant=grant-05000")["items"][0]["tool"], json!("echo"));
}
