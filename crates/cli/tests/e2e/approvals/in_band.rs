//! In-band answers: only for `approvers: [requester]`, and only for the call that was shown.

use serde_json::{Value, json};

use super::{Desk, code};
use crate::agent::Agent;
use crate::api::Api;
use crate::program::{Card, Program};
use crate::sessionless::{Sessionless, last};
use crate::wire::Events;

const POLICY: &str = r"
policies:
  careful:
    version: '1'
    default: allow
    tools:
      echo: { approve: { wait: 60s, approvers: [requester], note: look twice } }
      pid: { approve: { wait: 60s, approvers: [requester] } }
      ask: { approve: { wait: 60s, approvers: [requester] } }
      my_permissions: { approve: { wait: 60s, approvers: [requester] } }
      mode: { approve: { wait: 60s, approvers: [ops] } }
      env: { approve: { wait: 60s, approvers: [requester, ops] } }
      mutter: { approve: { wait: 60s, approvers: [requester], people: 2 } }
      big: { approve: { wait: 60s } }
      crash: { approve: { wait: 0s, approvers: [requester] } }
";

fn able() -> Value {
    json!({"elicitation": {}})
}

impl Desk {
    fn asking(&self, path: &str) -> Agent {
        Agent::open_able(&self.gate, path, &self.token, &able())
    }

    /// The rows of answers: message, person and `via`.
    fn answers(&self) -> Vec<[Value; 3]> {
        let rows = self.api().get("audit?limit=1000&kind=approval");
        let rows = rows["items"].as_array().unwrap().iter();
        let given = rows.filter(|row| !row["via"].is_null());
        given.map(|row| ["message", "person", "via"].map(|key| row[key].clone())).collect()
    }

    /// How many approvals are pending.
    fn waiting(&self) -> usize {
        self.api().get("approvals?state=pending")["items"].as_array().unwrap().len()
    }
}

/// A call of an agent that can be asked, and the messages of its stream.
struct Asked {
    agent: Agent,
    events: Events,
    /// The question: its id, and the text.
    id: Value,
    text: String,
}

impl Asked {
    fn begin(agent: Agent, tool: &str) -> Self {
        let mut events = Events::of(agent.begin_call(tool, &json!({})));
        let (_, question) = events.message().unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let text = question["params"]["message"].as_str().unwrap().to_owned();
        Self { agent, events, id: question["id"].clone(), text }
    }

    fn answer(&self, result: &str) {
        respond(&self.agent, &self.id, result);
    }

    /// The result of the call.
    fn result(mut self) -> Value {
        loop {
            let (_, message) = self.events.message().unwrap();
            if !message["result"].is_null() {
                return message["result"].clone();
            }
        }
    }
}

fn respond(agent: &Agent, id: &Value, result: &str) {
    let reply = agent.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    assert_eq!(reply.status, 202, "{reply:?}");
}

/// Every kind of target, on every endpoint.
#[test]
fn the_user_of_a_sessionful_client_answers() {
    let desk = Desk::under(POLICY);
    for (count, path, tool) in [(1, "/mcp/peer", "echo"), (2, "/mcp", "peer__echo")] {
        let asked = Asked::begin(desk.asking(path), tool);
        for words in ["echo of peer", "Arguments: {}", "Note: look twice", "Accept sends exactly"] {
            assert!(asked.text.contains(words), "{}", asked.text);
        }
        assert_eq!(desk.received("echo"), count - 1);
        let approval = desk.pending();
        asked.answer(r#"{"action":"accept","content":{}}"#);
        // A second answer to the same question changes nothing.
        asked.answer(r#"{"action":"decline"}"#);
        assert_eq!(code(&asked.result()), "sent");
        assert_eq!(desk.received("echo"), count);
        let story = desk.story(&approval);
        assert_eq!(story, ["held", "approval: approved", "intent", "approval: consumed"]);
    }
    let row = [json!("approved"), json!("desk"), json!("in-band")];
    assert_eq!(desk.answers(), [row.clone(), row]);

    let mut program = Program::register(&desk.gate, &Card::new("u1", "ask"));
    let asked = Asked::begin(desk.asking("/mcp/sessions"), "ask");
    asked.answer(r#"{"action":"accept"}"#);
    program.serve("yes");
    assert_eq!(code(&asked.result()), "sent");
    let asked = Asked::begin(desk.asking("/mcp"), "my_permissions");
    asked.answer(r#"{"action":"accept"}"#);
    assert_eq!(code(&asked.result()), "sent");
}

#[test]
fn a_declined_call_is_not_sent() {
    let desk = Desk::under(POLICY);
    let asked = Asked::begin(desk.asking("/mcp/peer"), "pid");
    asked.answer(r#"{"action":"decline"}"#);
    assert_eq!(code(&asked.result()), "approval_denied");
    assert_eq!(desk.answers(), [[json!("denied"), json!("desk"), json!("in-band")]]);
    assert_eq!(code(&desk.agent("/mcp/peer").call("pid", &json!({}))), "approval_denied");
    assert_eq!(desk.received("pid"), 0);
}

/// Without the capability, or without an answer, the call waits for the person as for any other.
#[test]
fn a_call_waits_if_its_user_is_not_asked_or_does_not_answer() {
    let desk = Desk::under(POLICY);
    let own = desk.person("desk", "[]");
    let other = desk.person("other", "[]");
    let approve = |by: &Api, status| {
        let path = format!("approvals/{}/approve", desk.pending()["id"].as_str().unwrap());
        by.expect(status, "POST", &path, "");
    };
    // Only URLs, which are no forms.
    let url = json!({"elicitation": {"url": {}}});
    for agent in
        [desk.agent("/mcp/peer"), Agent::open_able(&desk.gate, "/mcp/peer", &desk.token, &url)]
    {
        let call = super::calling(agent, "pid", json!({}));
        approve(&other, 403);
        approve(&desk.api(), 403);
        approve(&own, 200);
        assert_eq!(code(&call.join().unwrap()), "sent");
    }
    for nothing in [r#"{"action":"cancel"}"#, r#"{"action":"yes"}"#, "{}"] {
        let asked = Asked::begin(desk.asking("/mcp/peer"), "pid");
        asked.answer(nothing);
        approve(&own, 200);
        assert_eq!(code(&asked.result()), "sent", "{nothing}");
    }
    assert_eq!(desk.received("pid"), 5);
    assert!(desk.answers().iter().all(|[_, _, via]| via == "api"), "{:?}", desk.answers());
    // `wait: 0s` answers at once, so no question is left open.
    assert_eq!(code(&desk.asking("/mcp/peer").call("crash", &json!({}))), "approval_required");

    // Without an identity there is no such person.
    let grant = r#"{"label":"nameless","policy":"careful"}"#;
    let made = desk.api().expect(201, "POST", "grants", grant);
    let agent = Agent::open_with(&desk.gate, "peer", made["token"].as_str().unwrap());
    let refused = agent.call("pid", &json!({}));
    assert_eq!(code(&refused), "approval_required");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Do not repeat the call") && text.contains("elicitation"), "{text}");
}

/// No other rule asks the agent's client, whatever it declares and answers.
#[test]
fn other_approvers_are_never_asked_through_the_client() {
    let desk = Desk::under(POLICY);
    let state = |tool: &str| {
        let listed = desk.api().get("approvals");
        let listed = listed["items"].as_array().unwrap().iter();
        let own: Vec<_> = listed.filter(|it| it["tool"] == tool).collect();
        assert!(own.len() == 1, "{own:?}");
        own[0]["state"].clone()
    };
    for tool in ["mode", "env", "mutter", "big"] {
        let agent = desk.asking("/mcp/peer");
        let mut events = Events::of(agent.begin_call(tool, &json!({"progressToken": 1})));
        // The question would come before the progress.
        let (_, first) = events.message().unwrap();
        assert_eq!(first["method"], "notifications/progress", "{tool}: {first}");
        for id in 0..20 {
            respond(&agent, &id.into(), r#"{"action":"accept","content":{}}"#);
        }
        assert_eq!(state(tool), "pending", "{tool}");
        let mut events = Events::of(sessionless(&desk).begin_call(
            tool,
            &json!("t"),
            &json!({
                "inputResponses": {"q0": {"action": "accept"}, "q1": {"action": "accept"}},
            }),
        ));
        let (_, first) = events.message().unwrap();
        assert_eq!(first["method"], "notifications/progress", "{tool}: {first}");
        assert_eq!((state(tool), desk.received(tool)), (json!("pending"), 0), "{tool}");
    }
    assert_eq!(desk.answers(), [[(); 3]; 0].map(|it| it.map(|()| Value::Null)));
}

/// An answer reaches the question of its own agent session, and nothing else.
#[test]
fn no_other_agent_answers() {
    let desk = Desk::under(POLICY);
    let grant = r#"{"label":"second","policy":"careful","identity":"other"}"#;
    let made = desk.api().expect(201, "POST", "grants", grant);
    let second = made["token"].as_str().unwrap();
    let asked = Asked::begin(desk.asking("/mcp/peer"), "pid");
    let others = [
        desk.asking("/mcp/peer"),
        desk.asking("/mcp"),
        Agent::open_able(&desk.gate, "/mcp/peer", second, &able()),
    ];
    for other in &others {
        respond(other, &asked.id, r#"{"action":"accept"}"#);
    }
    // The answer to one call does not approve the next one.
    let more = Asked::begin(desk.asking("/mcp/peer"), "echo");
    assert_eq!((desk.waiting(), desk.received("pid"), desk.received("echo")), (2, 0, 0));
    asked.answer(r#"{"action":"accept"}"#);
    assert_eq!(code(&asked.result()), "sent");
    assert_eq!((desk.waiting(), desk.received("echo")), (1, 0));
    // A question that was overtaken is withdrawn, and its late answer is ignored.
    let own = desk.person("desk", "[]");
    let id = desk.pending()["id"].as_str().unwrap().to_owned();
    own.expect(200, "POST", &format!("approvals/{id}/deny"), "");
    let (agent, id) = (desk.asking("/mcp/peer"), more.id.clone());
    let Asked { agent: first, mut events, .. } = more;
    let (_, withdrawn) = events.message().unwrap();
    assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
    assert_eq!(withdrawn["params"]["requestId"], id);
    respond(&first, &id, r#"{"action":"accept"}"#);
    assert_eq!(code(&events.message().unwrap().1["result"]), "approval_denied");
    assert_eq!(code(&agent.call("echo", &json!({}))), "approval_denied");
    assert_eq!((desk.received("pid"), desk.received("echo")), (1, 0));
}

/// A client of 2026-07-28 that can be asked.
fn sessionless(desk: &Desk) -> Sessionless {
    Sessionless::new(&desk.gate, "/mcp/peer").with_token(&desk.token).able(able())
}

/// Calls `pid` with these arguments and these further members.
fn call(client: &Sessionless, arguments: &Value, more: &[(&str, Value)]) -> Value {
    let mut members = json!({"arguments": arguments});
    for (key, value) in more {
        members[*key] = value.clone();
    }
    last(&client.call("pid", "", members))
}

/// The question of a round: the state, and the key of its answer.
fn question(answer: &Value) -> (Value, String) {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let requests = result["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1, "{answer}");
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create", "{answer}");
    (result["requestState"].clone(), key.clone())
}

fn answered(key: &str, action: &str) -> (&'static str, Value) {
    let mut all = json!({});
    all[key] = json!({"action": action});
    ("inputResponses", all)
}

#[test]
fn the_user_of_a_sessionless_client_answers() {
    let desk = Desk::under(POLICY);
    let client = sessionless(&desk);
    let arguments = json!({"n": 1});
    let (state, key) = question(&call(&client, &arguments, &[]));
    let approval = desk.pending();
    let (state, accepts) = (("requestState", state), answered(&key, "accept"));
    // Changed arguments, another grant, another state and another key.
    let grant = r#"{"label":"second","policy":"careful","identity":"desk"}"#;
    let made = desk.api().expect(201, "POST", "grants", grant);
    let second = Sessionless::new(&desk.gate, "/mcp/peer").able(able());
    let second = second.with_token(made["token"].as_str().unwrap());
    let retry = [state.clone(), accepts.clone()];
    for refused in [
        call(&client, &json!({"n": 2}), &retry),
        call(&second, &arguments, &retry),
        call(&client, &arguments, &[("requestState", json!("forged")), accepts.clone()]),
    ] {
        assert!(refused["error"]["code"].is_i64(), "{refused}");
    }
    let (again, _) = question(&call(&client, &arguments, std::slice::from_ref(&state)));
    assert_eq!(again, state.1);
    question(&call(&client, &arguments, &[state.clone(), answered("other", "accept")]));
    assert_eq!((desk.pending()["id"].clone(), desk.received("pid")), (approval["id"].clone(), 0));
    let sent = call(&client, &arguments, &retry);
    assert_eq!(
        (code(&sent["result"]), &sent["result"]["resultType"]),
        ("sent", &json!("complete"))
    );
    assert_eq!(desk.received("pid"), 1);
    let story = desk.story(&approval);
    assert_eq!(story, ["held", "approval: approved", "intent", "approval: consumed"]);
    assert_eq!(desk.answers(), [[json!("approved"), json!("desk"), json!("in-band")]]);
    let replayed = call(&client, &arguments, &retry);
    assert!(replayed["error"]["code"].is_i64(), "{replayed}");
    // The next call of the same kind is another approval.
    let (state, key) = question(&call(&client, &arguments, &[]));
    let retry = [("requestState", state), answered(&key, "decline")];
    assert_eq!(code(&call(&client, &arguments, &retry)["result"]), "approval_denied");
    assert_eq!(desk.received("pid"), 1);
}

/// While the client has no request open, nothing is sent, whatever people answer.
#[test]
fn a_parked_call_is_not_sent_before_its_client_continues() {
    let desk = Desk::under(POLICY);
    let client = sessionless(&desk);
    let own = desk.person("desk", "[]");
    for (n, action, result) in
        [(1, "accept", "sent"), (2, "decline", "approval_required"), (3, "cancel", "sent")]
    {
        let arguments = json!({"n": n});
        let before = desk.received("pid");
        let (state, key) = question(&call(&client, &arguments, &[]));
        let id = desk.pending()["id"].as_str().unwrap().to_owned();
        own.expect(200, "POST", &format!("approvals/{id}/approve"), "");
        assert_eq!(desk.received("pid"), before, "{action}");
        let retry = [("requestState", state), answered(&key, action)];
        let answer = call(&client, &arguments, &retry);
        assert_eq!(code(&answer["result"]), result, "{action}: {answer}");
        assert_eq!(desk.received("pid") - before, usize::from(result == "sent"), "{action}");
    }
    assert!(desk.answers().iter().all(|[_, _, via]| via == "api"), "{:?}", desk.answers());
}
