//! The admin API: who may use it, what it says, and what changes with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::agent::{Agent, NEWEST, initialize, initialize_with};
use crate::api::{Api, admin_token};
use crate::gate::{Gate, Home, eventually};
use crate::golden;
use crate::peer::{Peer, gate_with_peer};
use crate::wire::{Events, get};

const DUTY: [(&str, &str); 4] = [
    ("viewer", "a-token-of-somebody-who-looks"),
    ("approver", "a-token-of-somebody-who-approves"),
    ("policy_manager", "a-token-of-somebody-with-policies"),
    ("admin", "a-token-of-somebody-who-may-all"),
];
const AGENT: &str = "a-token-of-an-agent-not-a-person";

/// A gateway with one person of each role and one grant, all in the file.
fn staffed(servers: &str) -> Gate {
    let people: Vec<String> = DUTY
        .iter()
        .map(|(role, _)| {
            format!("  - {{ name: {role}-of-the-file, token: 'env:{role}', roles: [{role}] }}\n")
        })
        .collect();
    let people = people.concat();
    let config = format!(
        "people:\n{people}policies:\n  open: {{ version: '1', default: allow }}\n\
         grants:\n  - {{ label: agent, token: 'env:AGENT', policy: open }}\n{servers}"
    );
    Gate::start_as(Home::new(), &config, |command| {
        command.envs(DUTY).env("AGENT", AGENT);
    })
}

/// `error_code` of a refusal, or `sent`.
fn verdict(agent: &Agent, tool: &str) -> String {
    let result = agent.call(tool, &json!({}));
    result["_meta"]["error_code"].as_str().unwrap_or("sent").to_owned()
}

fn status_of(gate: &Gate, token: &str) -> u16 {
    let bearer = format!("Authorization: Bearer {token}\r\n");
    initialize_with(gate, "/mcp/peer", NEWEST, &bearer).status
}

#[test]
fn the_admin_token_opens_the_api_and_nothing_else_does() {
    let (mut gate, _peer) = gate_with_peer("", "", "");
    let data = gate.home.path(".local/share/toolgate");
    let mode = fs::metadata(data.join("admin.token")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let line: Value =
        serde_json::from_str(&fs::read_to_string(data.join("serve.json")).unwrap()).unwrap();
    assert_eq!(line, *gate.ready());

    let nobody = Api::nobody(&gate).ask("GET", "status", "");
    assert_eq!((nobody.status, nobody.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(nobody.json()["error"]["code"], "unauthorized");
    let status = Api::admin(&gate).get("status");
    assert_eq!(status["admin"], gate.ready()["admin"]);
    assert_eq!((&status["local"], &status["pid"]), (&true.into(), &gate.pid().into()));
    assert_eq!(status["audit"]["durability"], Value::Null);
    assert_eq!(status["durability"], "process");

    let servers = Api::admin(&gate).get("servers");
    assert_eq!(servers["items"][0]["name"], "peer");
    assert_eq!((&servers["items"][0]["source"], &servers["next"]), (&"file".into(), &Value::Null));
    let people = Api::admin(&gate).get("people");
    assert_eq!(people["items"][0]["name"], "admin");
    for path in ["nothing", "grants/x/y/z", ""] {
        Api::admin(&gate).expect(404, "GET", path, "");
    }
    Api::admin(&gate).expect(405, "DELETE", "status", "");
    Api::admin(&gate).expect(400, "GET", "grants?lable=x", "");
    // Nothing of it is on the agents' port.
    assert_eq!(get(&gate.mcp(), "/api/v1/status").status, 404);

    assert!(!gate.log.text().contains(&admin_token(&gate.home)), "the token was printed");
    assert_eq!(gate.stop().0, Some(0));
    assert!(!data.join("serve.json").exists(), "nobody is there any more");
}

#[test]
fn the_description_of_the_api() {
    let gate = Gate::start("");
    let document = Api::admin(&gate).get("openapi.json");
    golden::check("api/openapi.json", &(serde_json::to_string_pretty(&document).unwrap() + "\n"));
}

/// Every route, and who may use it.
const ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "openapi.json", "viewer"),
    ("GET", "status", "viewer"),
    ("GET", "servers", "viewer"),
    ("POST", "servers", "admin"),
    ("DELETE", "servers/{name}", "admin"),
    ("POST", "servers/{name}/test", "admin"),
    ("GET", "sessions", "viewer"),
    ("GET", "tools", "viewer"),
    ("GET", "grants", "viewer"),
    ("POST", "grants", "admin"),
    ("PATCH", "grants/{id}", "policy_manager"),
    ("POST", "grants/{id}/rotate", "admin"),
    ("DELETE", "grants/{id}", "admin"),
    ("GET", "people", "viewer"),
    ("POST", "people", "admin"),
    ("POST", "people/{id}/rotate", "admin"),
    ("DELETE", "people/{id}", "admin"),
    ("GET", "policies", "viewer"),
    ("GET", "policies/{name}", "viewer"),
    ("PUT", "policies/{name}", "policy_manager"),
    ("DELETE", "policies/{name}", "policy_manager"),
    ("POST", "policies/{name}/explain", "viewer"),
    ("GET", "freeze", "viewer"),
    ("POST", "freeze", "admin"),
    ("DELETE", "freeze/{id}", "admin"),
    ("PUT", "local", "admin"),
    ("POST", "clock/accept", "admin"),
    ("GET", "audit", "viewer"),
    ("GET", "events", "viewer"),
];

#[test]
fn every_route_for_every_role() {
    let gate = staffed("");
    let described = Api::admin(&gate).get("openapi.json");
    let mut known: Vec<String> = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1/").unwrap();
        known.extend(methods.as_object().unwrap().keys().map(|method| format!("{method} {path}")));
    }
    let mut here: Vec<String> = ROUTES
        .iter()
        .map(|(method, path, _)| format!("{} {path}", method.to_lowercase()))
        .collect();
    known.sort();
    here.sort();
    assert_eq!(known, here, "a route without its row in this test");

    let status = |api: &Api, method: &str, path: &str| {
        let path = path.replace("{id}", "nothing").replace("{name}", "nothing");
        let mut connection = api.begin(method, &format!("/api/v1/{path}"), "", "");
        connection.head().status
    };
    for (method, path, role) in ROUTES {
        assert_eq!(status(&Api::nobody(&gate), method, path), 401, "{method} {path}: no token");
        let agent = Api::with(&gate, AGENT);
        assert_eq!(status(&agent, method, path), 401, "{method} {path}: the token of a grant");
        for (who, token) in DUTY {
            let may = who == "admin" || *role == "viewer" || who == *role;
            let got = status(&Api::with(&gate, token), method, path);
            assert!(got != 401, "{method} {path} as {who}: {got}");
            assert_eq!(got != 403, may, "{method} {path} as {who}: {got}");
        }
    }
    // Whoever may only attach policies may not widen what a grant reaches.
    let manager = Api::with(&gate, DUTY[2].1);
    manager.expect(403, "PATCH", "grants/agent", r#"{"servers":null}"#);
    manager.expect(409, "PATCH", "grants/agent", r#"{"policy":"open"}"#);
}

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
        let calls = || peer.heard().iter().filter(|m| m["method"] == "tools/call").count();
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
    let told: Vec<_> = rows["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["kind"] == "policy")
        .map(|row| (row["person"].as_str().unwrap(), row["message"].as_str().unwrap()))
        .collect();
    let put = ("admin", "put the policy `mine`");
    assert_eq!(told, [put, put, ("admin", "removed the policy `mine`")]);
}

/// `recommended` is there without anybody having written it: grants can name it, nobody changes it.
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
    assert_eq!(verdict(&agent, "delete_all"), "approval_required");
    drop((gate, peer));

    // A file of one's own under that name counts.
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
    // A stop does not wait for whoever listens.
    assert_eq!(gate.stop().0, Some(0));
}
