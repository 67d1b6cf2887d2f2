//! Policies, the audit and its events through the admin API.

use serde_json::{Value, json};

use super::verdict;
use crate::agent::Agent;
use crate::api::Api;
use crate::gate::eventually;
use crate::peer::gate_with_peer;
use crate::wire::Events;

#[test]
fn policies_are_put_explained_and_taken_away() {
    let (gate, _peer) = gate_with_peer("", "", "");
    let api = Api::admin(&gate);
    let wrong = api.expect(422, "PUT", "policies/mine", "version: '1'\ndefault: alow\ntolls: {}\n");
    let problems = wrong["error"]["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "all of them: {wrong}");
    let keys: Vec<_> = problems[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["code", "column", "hint", "line", "message"]);
    let failing = "version: '1'\ndefault: deny\ntests:\n  - { call: { tool: a }, expect: allow }\n";
    let failed = api.expect(422, "PUT", "policies/mine", failing);
    assert_eq!(failed["error"]["problems"][0]["code"], "test_failed");
    api.expect(400, "PUT", "policies/-mine", "version: '1'\ndefault: deny\n");
    api.expect(404, "GET", "policies/mine", "");

    let limited = "version: '1'\ndefault: deny\ntools:\n  echo: { action: allow, limits: \
                   [{ counter: c, max: 1, window: 30d, scope: grant }] }\n";
    let put = api.expect(200, "PUT", "policies/mine", limited);
    assert_eq!((&put["version"], &put["source"]), (&1.into(), &"store".into()));
    assert_eq!(api.get("policies/mine")["document"], limited);
    let made = api.expect(201, "POST", "grants", r#"{"label":"one","policy":"mine"}"#);
    let agent = Agent::open_with(&gate, "peer", made["token"].as_str().unwrap());
    let explain = |body: &str| api.expect(200, "POST", "policies/mine/explain", body);
    let echo = r#"{"grant":"one","server":"peer","tool":"echo","arguments":{}}"#;
    let before = explain(echo);
    assert_eq!((&before["effect"], &before["limits"][0]["used"]), (&"allow".into(), &json!(0)));
    assert_eq!([verdict(&agent, "echo"), verdict(&agent, "echo")], ["sent", "rate_limited"]);
    let after = explain(echo);
    assert_eq!(
        (&after["effect"], &after["rule"]),
        (&"deny".into(), &"/tools/echo/limits/c".into())
    );
    assert_eq!(explain(r#"{"tool":"pid"}"#)["rule"], "(default deny)");
    api.expect(400, "POST", "policies/mine/explain", r#"{"tool":"pid","arguments":[]}"#);

    // The next version decides the next call.
    let put = api.expect(200, "PUT", "policies/mine", r#"{"version":"1","default":"allow"}"#);
    assert_eq!(put["version"], 2);
    assert_eq!(verdict(&agent, "pid"), "sent");
    let rows = api.get("audit?grant=one&tool=pid");
    assert_eq!(rows["items"][0]["policy_version"], 2, "{rows}");
    api.expect(409, "DELETE", "policies/mine", "");
    api.expect(204, "DELETE", "grants/one", "");
    api.expect(204, "DELETE", "policies/mine", "");
    api.expect(404, "DELETE", "policies/mine", "");
    let rows = api.get("audit?limit=1000");
    let reported: Vec<_> = rows["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["kind"] == "policy")
        .map(|row| (row["person"].as_str().unwrap(), row["message"].as_str().unwrap()))
        .collect();
    let put = ("admin", "put the policy `mine`");
    assert_eq!(reported, [put, put, ("admin", "removed the policy `mine`")]);
}

/// `recommended` is built in: grants can refer to it, and it cannot be changed.
#[test]
fn the_built_in_policy_can_be_attached() {
    let (gate, peer) = gate_with_peer("", "", "");
    let api = Api::admin(&gate);
    let listed = &api.get("policies")["items"][0];
    assert_eq!((&listed["name"], &listed["source"]), (&"recommended".into(), &"built-in".into()));
    assert!(api.get("policies/recommended")["document"].as_str().unwrap().contains("classes:"));
    for method in ["PUT", "DELETE"] {
        let body = "version: '1'\ndefault: allow\n";
        let refused = api.expect(409, method, "policies/recommended", body);
        assert!(refused["error"]["message"].as_str().unwrap().contains("built in"), "{refused}");
    }
    let made = api.expect(201, "POST", "grants", r#"{"label":"one","policy":"recommended"}"#);
    let agent = Agent::open_with(&gate, "peer", made["token"].as_str().unwrap());
    assert_eq!(verdict(&agent, "echo"), "sent");
    let held = std::thread::spawn(move || verdict(&agent, "delete_all"));
    let pending = || {
        let listed = api.get("approvals?state=pending");
        listed["items"][0]["id"].as_str().map(str::to_owned)
    };
    let id = crate::gate::eventually("it is held", pending);
    api.expect(200, "POST", &format!("approvals/{id}/deny"), "");
    assert_eq!(held.join().unwrap(), "approval_denied");
    drop((gate, peer));

    // A policy of that name in the file takes precedence.
    let (gate, _peer) = gate_with_peer(
        "policies: { recommended: { version: '1', default: deny } }\n\
         grants: [{ label: two, token_sha256: 0000000000000000000000000000000000000000000000000000000000000000, policy: recommended }]",
        "",
        "",
    );
    let listed = Api::admin(&gate).get("policies");
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["items"][0]["source"], "file");
}

#[test]
fn the_audit_is_filtered_and_paged() {
    let (gate, _peer) = gate_with_peer("", "", "");
    let api = Api::admin(&gate);
    let agent = Agent::open(&gate, "peer");
    for tool in ["echo", "pid", "echo"] {
        agent.call(tool, &json!({}));
    }
    let echo = eventually("all outcomes are written", || {
        let rows = api.get("audit?tool=echo");
        (rows["items"].as_array().unwrap().len() == 4).then_some(rows)
    });
    assert_eq!(echo["next"], Value::Null);
    let mut seen = Vec::new();
    let mut path = "audit?limit=2".to_owned();
    loop {
        let part = api.get(&path);
        seen.extend(part["items"].as_array().unwrap().iter().map(|row| row["seq"].clone()));
        match part["next"].as_str() {
            Some(next) => path = format!("audit?limit=2&after={next}"),
            None => break,
        }
    }
    let all: Vec<Value> = (1..=6).map(Value::from).collect();
    assert_eq!(seen, all);
    assert_eq!(api.get("audit?decision=deny")["items"], json!([]));
    for wrong in ["audit?limit=0", "audit?limit=1001", "audit?decision=maybe", "audit?after=x"] {
        api.expect(400, "GET", wrong, "");
    }
}

#[test]
fn events_are_rows_as_they_are_written() {
    let (mut gate, _peer) = gate_with_peer("", "", "");
    let api = Api::admin(&gate);
    let listen = |headers: &str| {
        let connection = api.begin("GET", "/api/v1/events", headers, "");
        Events::of(connection)
    };
    let mut events = listen("");
    let agent = Agent::open(&gate, "peer");
    agent.call("echo", &json!({}));
    let mut kinds = Vec::new();
    while kinds.len() < 2 {
        let event = events.next().unwrap();
        if !event.data.is_empty() {
            let row: Value = serde_json::from_str(&event.data).unwrap();
            assert_eq!(event.id, Some(row["seq"].to_string()));
            kinds.push(row["kind"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(kinds, ["intent", "outcome"]);
    let mut again = listen("Last-Event-ID: 1\r\n");
    let event = std::iter::from_fn(|| again.next()).find(|event| !event.data.is_empty()).unwrap();
    assert_eq!(event.id.as_deref(), Some("2"));
    // A stop does not wait for open event streams.
    assert_eq!(gate.stop().0, Some(0));
}
