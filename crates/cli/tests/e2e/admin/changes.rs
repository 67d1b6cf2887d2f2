//! Changes through the admin API: grants, revocations and freezes.

use serde_json::json;

use super::{AGENT, DUTY, status_of, verdict};
use crate::agent::{Agent, NEWEST, initialize};
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::{Peer, gate_with_peer};

#[test]
fn a_grant_is_made_used_given_a_new_token_and_revoked() {
    let (gate, _peer) =
        gate_with_peer("policies:\n  open: { version: '1', default: allow }", "", "");
    let api = Api::admin(&gate);
    let agent = Agent::open(&gate, "peer");
    assert_eq!(verdict(&agent, "echo"), "sent", "local mode");

    let wrong = [
        (r#"{"label":"local"}"#, 409),
        (r#"{"label":" x"}"#, 400),
        (r#"{"label":"x","policy":"none"}"#, 400),
        (r#"{"label":"x","servers":["none"]}"#, 400),
        (r#"{"label":"x","expires":"2001-01-01"}"#, 400),
        (r#"{"label":"x","expires":"soon"}"#, 400),
        (r#"{"label":"x","lable":"y"}"#, 400),
        (r#"{"policy":"open"}"#, 400),
        ("[]", 400),
    ];
    for (body, status) in wrong {
        api.expect(status, "POST", "grants", body);
    }
    assert_eq!(api.get("status")["local"], true, "nothing of that has ended local mode");

    let made = api.expect(201, "POST", "grants", r#"{"label":"laptop","policy":"open"}"#);
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("tg_") && token.len() == 75, "{token}");
    assert_eq!(api.get("status")["local"], false);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(agent.send(ping).status, 401, "the first grant ends local mode at once");
    assert_eq!(initialize(&gate, "peer", NEWEST).status, 401);
    api.expect(409, "POST", "grants", r#"{"label":"laptop"}"#);

    let agent = Agent::open_with(&gate, "peer", token);
    assert_eq!(verdict(&agent, "echo"), "sent");
    eventually("its use is known", || {
        api.get("grants")["items"][0]["last_use"].is_string().then_some(())
    });
    api.expect(200, "PATCH", "grants/laptop", r#"{"policy":null}"#);
    assert_eq!(verdict(&agent, "echo"), "policy_denied");
    api.expect(200, "PATCH", "grants/laptop", r#"{"policy":"open","expires":"2999-01-01"}"#);
    assert_eq!(verdict(&agent, "echo"), "sent");
    api.expect(200, "PATCH", "grants/laptop", r#"{"servers":[]}"#);
    assert_eq!(status_of(&gate, token), 404);
    api.expect(200, "PATCH", "grants/laptop", r#"{"servers":null}"#);

    let id = made["id"].as_str().unwrap();
    let other = api.expect(200, "POST", &format!("grants/{id}/rotate"), "");
    let other = other["token"].as_str().unwrap();
    assert_eq!((status_of(&gate, token), status_of(&gate, other)), (401, 200));
    api.expect(204, "DELETE", "grants/laptop", "");
    assert_eq!(status_of(&gate, other), 401);
    api.expect(409, "POST", "grants", r#"{"label":"laptop"}"#);
    api.expect(409, "POST", "grants/laptop/rotate", "");
    api.expect(404, "DELETE", "grants/nobody", "");

    let expected = [
        "admin: created the grant `laptop`",
        "admin: changed the grant `laptop`: policy none",
        "admin: changed the grant `laptop`: policy open; expires 2999-01-01T00:00:00Z",
        "admin: changed the grant `laptop`: servers none",
        "admin: changed the grant `laptop`: servers all",
        "admin: rotated the token of the grant `laptop`",
        "admin: revoked the grant `laptop`",
    ];
    assert_eq!(api.changes(), expected);
    let text = gate.home.data_text();
    assert!(!text.contains(token) && !text.contains(other), "a token is in the data folder");
}

#[test]
fn a_revocation_wins_over_the_file_also_after_a_restart() {
    let mut home = Home::new();
    let peer = Peer::new(&home, "peer");
    for restarted in [false, true] {
        let config = format!(
            "policies:\n  open: {{ version: '1', default: allow }}\n\
             grants:\n  - {{ label: agent, token: 'env:AGENT', policy: open }}\n\
             people:\n  - {{ name: duty, token: 'env:viewer', roles: [viewer] }}\n\
             servers:\n{}",
            peer.entry("", "")
        );
        let mut gate = Gate::start_as(home, &config, |command| {
            command.envs(DUTY).env("AGENT", AGENT);
        });
        let (api, duty) = (Api::admin(&gate), Api::with(&gate, DUTY[0].1));
        if !restarted {
            assert_eq!(status_of(&gate, AGENT), 200);
            duty.get("status");
            api.expect(409, "POST", "grants/agent/rotate", "");
            api.expect(204, "DELETE", "grants/agent", "");
            api.expect(204, "DELETE", "people/duty", "");
            api.expect(409, "DELETE", "people/admin", "");
        }
        assert_eq!(status_of(&gate, AGENT), 401);
        duty.expect(401, "GET", "status", "");
        let grants = api.get("grants");
        assert_eq!(grants["items"].as_array().unwrap().len(), 1, "{grants}");
        assert!(grants["items"][0]["revoked"].is_string(), "{grants}");
        assert_eq!(gate.stop().0, Some(0));
        home = gate.into_home();
    }
    // The grants are gone from the file, but one has existed: local mode stays ended.
    let gate = Gate::start_in(home, &format!("servers:\n{}", peer.entry("", "")));
    assert_eq!(initialize(&gate, "peer", NEWEST).status, 401);
    let api = Api::admin(&gate);
    assert_eq!(api.expect(200, "PUT", "local", r#"{"enabled":true}"#), json!({"enabled": true}));
    assert_eq!(initialize(&gate, "peer", NEWEST).status, 200);
    let changes = api.changes();
    assert!(changes.iter().any(|row| row.contains("enabled local mode")), "{changes:?}");
    // And the next grant ends it again.
    api.expect(201, "POST", "grants", r#"{"label":"new"}"#);
    assert_eq!(initialize(&gate, "peer", NEWEST).status, 401);
}

#[test]
fn what_is_frozen_does_nothing() {
    let gate_config = "policies:\n  open: { version: '1', default: allow }";
    let (gate, peer) = gate_with_peer(gate_config, "", "");
    let api = Api::admin(&gate);
    let grant = |label: &str| {
        let body = json!({"label": label, "policy": "open"}).to_string();
        let made = api.expect(201, "POST", "grants", &body);
        Agent::open_with(&gate, "peer", made["token"].as_str().unwrap())
    };
    let (one, two) = (grant("one"), grant("two"));
    let cases = [
        (r#"{"grant":"one"}"#, ["frozen", "sent"]),
        (r#"{"server":"peer"}"#, ["frozen", "frozen"]),
        (r#"{"all":true}"#, ["frozen", "frozen"]),
    ];
    for (what, expected) in cases {
        let made = api.expect(201, "POST", "freeze", what);
        let calls = || peer.received().iter().filter(|m| m["method"] == "tools/call").count();
        let before = calls();
        assert_eq!([verdict(&one, "echo"), verdict(&two, "echo")], expected, "{what}");
        let sent = expected.iter().filter(|verdict| **verdict == "sent").count();
        assert_eq!(calls(), before + sent, "counted at the server");
        assert_eq!(api.get("status")["freezes"].as_array().unwrap().len(), 1);
        let id = made["id"].as_str().unwrap();
        api.expect(204, "DELETE", &format!("freeze/{id}"), "");
        assert_eq!([verdict(&one, "echo"), verdict(&two, "echo")], ["sent", "sent"]);
        api.expect(404, "DELETE", &format!("freeze/{id}"), "");
    }
    for (what, status) in [
        ("{}", 400),
        (r#"{"all":true,"server":"peer"}"#, 400),
        (r#"{"server":"none"}"#, 404),
        (r#"{"grant":"none"}"#, 404),
    ] {
        api.expect(status, "POST", "freeze", what);
    }
    let refused = api.get("audit?grant=one&limit=1000");
    let frozen = refused["items"].as_array().unwrap().iter();
    assert_eq!(frozen.filter(|row| row["error_code"] == "frozen").count(), 3);
}
