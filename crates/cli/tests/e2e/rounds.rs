//! A call of several rounds is judged again before each: after a freeze, a denial or the loss of its
//! server nothing more of it is written. The server's own record decides.

use std::thread;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::{Peer, gate_with_peer};
use crate::recorder::{Era, Recorder};
use crate::sessionless::{Sessionless, last};
use crate::wire::Events;

const DENY: &str = "version: '1'\ndefault: deny\n";
/// `ask` is allowed once an hour under every name that it has.
const ONCE: &str = "version: '1'\ndefault: deny\ntools:\n  ask: { action: allow, limits: [{ counter: c, max: 1, window: hour, scope: grant }] }\n";

/// What may happen between two rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    Frozen(&'static str),
    Denied,
    OutOfReach,
    Revoked,
}

const CHANGES: [Change; 6] = [
    Change::Frozen(r#"{"all":true}"#),
    Change::Frozen(r#"{"server":"*"}"#),
    Change::Frozen(r#"{"grant":"mine"}"#),
    Change::Denied,
    Change::OutOfReach,
    Change::Revoked,
];

/// A gateway with an older child, a newer HTTP server, and a grant.
struct Scene {
    gate: Gate,
    api: Api,
    token: String,
    older: Peer,
    newer: Recorder,
}

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        let older = Peer::new(&home, "older");
        let newer = Recorder::answering(Era::Sessionless, |message| {
            let is_retry = !message["params"]["inputResponses"].is_null();
            match message["method"].as_str()? {
                "tools/list" => Some(json!({"resultType": "complete",
                    "tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})),
                "tools/call" if !is_retry => Some(json!({
                    "resultType": "input_required", "requestState": "s",
                    "inputRequests": {"k": {"method": "elicitation/create", "params": {
                        "message": "Go on?",
                        "requestedSchema": {"type": "object", "properties": {}},
                    }}},
                })),
                _ => None,
            }
        });
        let config = format!(
            "shutdown_grace: 1s\nservers:\n{}{}  other: {{ command: 'false' }}\n",
            older.entry("asking", ""),
            newer.entry("newer", "")
        );
        let gate = Gate::start_in(home, &config);
        let api = Api::admin(&gate);
        api.expect(200, "PUT", "policies/once", ONCE);
        let made = api.expect(201, "POST", "grants", r#"{"label":"mine","policy":"once"}"#);
        let token = made["token"].as_str().unwrap().to_owned();
        Self { gate, api, token, older, newer }
    }

    /// How many messages that continue or begin a call each server received. An error in
    /// response to a request ends a call: a child may receive it when the grant is revoked.
    fn reported(&self) -> [usize; 2] {
        let is_part =
            |message: &&Value| message["method"] == "tools/call" || message.get("result").is_some();
        [self.older.received().iter().filter(is_part).count(), self.newer.of("tools/call").len()]
    }

    /// Makes a change; how to undo it.
    fn make(&self, change: Change, server: &str) -> Option<(&'static str, String, String)> {
        let api = &self.api;
        match change {
            Change::Frozen(what) => {
                let made = api.expect(201, "POST", "freeze", &what.replace('*', server));
                let id = made["id"].as_str().unwrap();
                Some(("DELETE", format!("freeze/{id}"), String::new()))
            }
            Change::Denied => {
                api.expect(200, "PUT", "policies/once", DENY);
                Some(("PUT", "policies/once".to_owned(), ONCE.to_owned()))
            }
            Change::OutOfReach => {
                api.expect(200, "PATCH", "grants/mine", r#"{"servers":["other"]}"#);
                Some(("PATCH", "grants/mine".to_owned(), r#"{"servers":null}"#.to_owned()))
            }
            Change::Revoked => {
                api.expect(204, "DELETE", "grants/mine", "");
                None
            }
        }
    }
}

/// The retry of a call that `asked` has parked.
fn retry_of(asked: &Value) -> Value {
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let (key, _) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
    json!({
        "arguments": {}, "requestState": result["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {}, "model": "m"}},
    })
}

#[test]
fn a_parked_call_goes_no_further_after_a_freeze_a_denial_or_the_loss_of_its_server() {
    for server in ["older", "newer"] {
        for all in [false, true] {
            for change in CHANGES {
                parked(server, all, change);
            }
        }
    }
}

fn parked(server: &str, all: bool, change: Change) {
    let row = format!("{server} {all} {change:?}");
    let scene = Scene::new();
    let (path, tool) = if all {
        ("/mcp".to_owned(), format!("{server}__ask"))
    } else {
        (format!("/mcp/{server}"), "ask".to_owned())
    };
    let client = Sessionless::new(&scene.gate, &path)
        .with_token(&scene.token)
        .able(json!({"sampling": {}, "elicitation": {}}));
    let asked = last(&client.call(&tool, "", json!({"arguments": {}})));
    let retry = retry_of(&asked);
    let before = scene.reported();
    assert_eq!(before.iter().sum::<usize>(), 1, "{row}");

    let undo = scene.make(change, server);
    let refused = client.call(&tool, "", retry.clone());
    let is_refused = refused.status >= 400 || last(&refused)["result"]["isError"] == true;
    assert!(is_refused, "{row}: {refused:?}");
    assert_eq!(scene.reported(), before, "{row}: {refused:?}");

    let Some((verb, place, body)) = undo else { return };
    let status = if verb == "DELETE" { 204 } else { 200 };
    scene.api.expect(status, verb, &place, &body);
    assert_eq!(scene.reported(), before, "{row}");
    let answer = last(&client.call(&tool, "", retry));
    if !all && matches!(change, Change::OutOfReach) {
        // The agent session of a server that leaves the grant ends, and its open calls with it.
        assert!(answer["error"].is_object(), "{row}: {answer}");
        assert_eq!(scene.reported(), before, "{row}");
        return;
    }
    // The refused retry has used nothing up, neither the state nor a counter.
    assert_eq!(answer["result"]["resultType"], "complete", "{row}: {answer}");
    assert_eq!(scene.reported().iter().sum::<usize>(), 2, "{row}");
    let again = last(&client.call(&tool, "", json!({"arguments": {}})));
    assert_eq!(again["result"]["_meta"]["error_code"], "rate_limited", "{row}: {again}");
}

#[test]
fn a_retry_with_other_params_goes_no_further() {
    for server in ["older", "newer"] {
        let scene = Scene::new();
        let client = Sessionless::new(&scene.gate, &format!("/mcp/{server}"))
            .with_token(&scene.token)
            .able(json!({"sampling": {}, "elicitation": {}}));
        let exact = r#"{"n":12345678901234567890,"m":0.1}"#;
        let send = |arguments: &str, members: &Value| {
            let mut params = members.clone();
            params["_meta"] = client.meta();
            let params = params.to_string();
            let rest = params.strip_prefix('{').unwrap();
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"ask","arguments":{arguments},{rest}}}"#
            );
            let headers =
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ask\r\n";
            client.begin(headers, &body).reply()
        };
        let mut retry = retry_of(&last(&send(exact, &json!({}))));
        retry.as_object_mut().unwrap().remove("arguments");
        let before = scene.reported();
        for other in [
            r#"{"n":12345678901234567891,"m":0.1}"#,
            r#"{"n":12345678901234567890,"m":0.1000000000000000055}"#,
            r#"{"n":12345678901234567890.0,"m":0.1}"#,
            r#"{"n":12345678901234567890,"m":0.1,"x":1}"#,
            r#"{"n":12345678901234567890}"#,
        ] {
            let refused = send(other, &retry);
            assert_eq!(refused.json()["error"]["code"], -32602, "{server} {other}: {refused:?}");
        }
        for member in ["task", "extra"] {
            let mut more = retry.clone();
            more[member] = json!({"ttl": 1});
            let refused = send(exact, &more);
            assert_eq!(refused.json()["error"]["code"], -32602, "{server} {member}: {refused:?}");
        }
        assert_eq!(scene.reported(), before, "{server}");
        let answer = last(&send(exact, &retry));
        assert_eq!(answer["result"]["resultType"], "complete", "{server}: {answer}");
    }
}

#[test]
fn a_question_on_the_endpoint_of_all_servers_names_its_server() {
    let scene = Scene::new();
    let agent = Agent::open_able(&scene.gate, "/mcp", &scene.token, &json!({"elicitation": {}}));
    let mut events = Events::of(agent.begin_call("newer__ask", &json!({})));
    let (_, question) = events.message().unwrap();
    assert_eq!(question["params"]["message"], "[newer] Go on?", "{question}");
    assert_eq!(question["params"]["_meta"]["toolgate/server"], "newer", "{question}");
}

#[test]
fn a_call_that_waits_for_its_child_is_not_written_after_a_freeze() {
    let (gate, peer) = gate_with_peer("shutdown_grace: 1s", "late", "");
    let api = Api::admin(&gate);
    let client = Sessionless::new(&gate, "/mcp/peer");
    let answer = thread::scope(|scope| {
        let calling = scope.spawn(|| last(&client.call("echo", "", json!({"arguments": {}}))));
        eventually("the call is admitted", || {
            let rows = api.get("audit?limit=1000");
            let mut rows = rows["items"].as_array().unwrap().iter();
            rows.any(|row| row["kind"] == "intent").then_some(())
        });
        api.expect(201, "POST", "freeze", r#"{"all":true}"#);
        peer.go();
        calling.join().unwrap()
    });
    let meta = &answer["result"]["_meta"];
    assert_eq!((&meta["error_code"], &meta["effect"]), (&json!("frozen"), &json!("not_started")));
    assert!(peer.received().iter().all(|message| message["method"] != "tools/call"));
}

#[test]
fn the_answer_of_a_sessionful_agent_causes_no_second_round_after_a_change() {
    for change in CHANGES {
        let scene = Scene::new();
        let able = json!({"elicitation": {}});
        let agent = Agent::open_able(&scene.gate, "/mcp/newer", &scene.token, &able);
        let mut events = Events::of(agent.begin_call("ask", &json!({})));
        let (_, question) = events.message().unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert_eq!(scene.reported(), [0, 1]);
        scene.make(change, "newer");
        let answer = json!({"jsonrpc": "2.0", "id": question["id"],
            "result": {"action": "accept", "content": {}}});
        let taken = agent.send(&answer.to_string());
        if taken.status == 202 {
            let reported = std::iter::from_fn(|| events.message()).map(|(_, message)| message);
            let end = reported.last().unwrap();
            assert_eq!(end["result"]["isError"], true, "{change:?}: {end}");
        } else {
            assert!(matches!(taken.status, 401 | 404), "{change:?}: {taken:?}");
        }
        assert_eq!(scene.reported(), [0, 1], "{change:?}");
    }
}
