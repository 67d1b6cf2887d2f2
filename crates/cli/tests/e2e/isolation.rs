//! Isolation: what one grant has, another never gets by naming it (T-08, T-09).

use serde_json::{Value, json};

use crate::agent::{Agent, path, post_head};
use crate::gate::{Gate, Home};
use crate::peer::Peer;
use crate::wire::{Connection, Events, Reply, ask};

pub(crate) const TOKENS: [(&str, &str); 2] = [
    ("MINE", "token-of-the-grant-mine-0123456789"),
    ("OTHER", "token-of-the-grant-other-012345678"),
];
const MINE: &str = TOKENS[0].1;
const OTHER: &str = TOKENS[1].1;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A gateway with one server that has these further keys, and two grants that may do anything.
pub(crate) fn two_grants(keys: &str) -> (Gate, Peer) {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let config = format!(
        "policies: {{ open: {{ version: '1', default: allow }} }}\n\
         grants:\n  - {{ label: mine, token: env:MINE, policy: open }}\n  \
         - {{ label: other, token: env:OTHER, policy: open }}\nservers:\n{}",
        peer.entry("listing", keys)
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.envs(TOKENS);
    });
    (gate, peer)
}

/// A request of protocol 2026-07-28.
fn modern(gate: &Gate, token: &str, headers: &str, method: &str, mut params: Value) -> Connection {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
    });
    let name = params["name"].as_str().map(|name| format!("Mcp-Name: {name}\r\n"));
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let headers = format!(
        "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n{}Authorization: Bearer {token}\r\n{headers}",
        name.unwrap_or_default()
    );
    let head = post_head(&gate.mcp(), &path("peer"), &headers);
    let mut connection = Connection::open(&gate.mcp());
    connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    connection
}

fn called(gate: &Gate, token: &str, headers: &str, params: Value) -> Reply {
    modern(gate, token, headers, "tools/call", params).reply()
}

#[test]
fn an_agent_session_is_worth_nothing_with_another_token() {
    let (gate, peer) = two_grants("");
    let mine = Agent::open_with(&gate, "peer", MINE);
    let mut thief = Agent::open_with(&gate, "peer", OTHER);
    let own = std::mem::replace(&mut thief.session, mine.session.clone());
    assert_eq!(thief.send(PING).status, 404);
    let bearer = thief.authorization().to_owned();
    let listen = format!("Accept: text/event-stream\r\n{bearer}");
    assert_eq!(thief.get(&listen).head().status, 404);
    assert_eq!(thief.delete_with(&bearer).status, 404);
    let pinged = peer.received().iter().any(|message| message["method"] == "ping");
    assert!(!pinged, "nothing of it has reached the server");
    assert!(mine.works(), "it was not ended");
    // Without a token, or on another endpoint, it is not there either.
    assert_eq!(thief.delete().status, 401);
    let mut elsewhere = Agent::open_at_with(&gate, "/mcp", MINE);
    elsewhere.session.clone_from(&mine.session);
    assert_eq!(elsewhere.send(PING).status, 404);
    thief.session = own;
    assert!(thief.works());
}

#[test]
fn a_stream_is_resumed_by_its_own_agent_session_alone() {
    let (gate, peer) = two_grants("");
    let mine = Agent::open_with(&gate, "peer", MINE);
    let thief = Agent::open_with(&gate, "peer", OTHER);
    let mut call = Events::of(mine.begin_call("slow", &json!({})));
    let event = call.next().unwrap().id.unwrap();
    drop(call);
    let resume = |agent: &Agent| {
        let headers = format!(
            "Accept: text/event-stream\r\nLast-Event-ID: {event}\r\n{}",
            agent.authorization()
        );
        agent.get(&headers)
    };
    let refused = resume(&thief).head();
    assert!((400..500).contains(&refused.status), "{refused:?}");
    peer.go();
    let mut events = Events::of(resume(&mine));
    let answer = std::iter::from_fn(|| events.next()).find(|event| event.data.contains("at last"));
    assert!(answer.is_some(), "who began it gets its end");
}

#[test]
fn progress_reaches_only_its_caller() {
    let (gate, _peer) = two_grants("instances: shared");
    let mine = Agent::open_with(&gate, "peer", MINE);
    let other = Agent::open_with(&gate, "peer", OTHER);
    let listen = format!("Accept: text/event-stream\r\n{}", other.authorization());
    let mut received = Events::of(other.get(&listen));
    // Both use the same token for the same server.
    for agent in [&mine, &other] {
        let mut events = Events::of(agent.begin_call("progress", &json!({"progressToken": "p"})));
        let reported: Vec<_> =
            std::iter::from_fn(|| events.next()).map(|event| event.data).collect();
        let progress =
            reported.iter().filter(|data| data.contains("notifications/progress")).count();
        assert_eq!(progress, 1, "{reported:?}");
    }
    other.call("notify", &json!({}));
    let first =
        std::iter::from_fn(|| received.next()).find(|event| !event.data.is_empty()).unwrap();
    assert!(first.data.contains("list_changed"), "{}", first.data);
}

#[test]
fn a_subscription_belongs_to_its_agent() {
    let (gate, _peer) = two_grants("instances: shared");
    let mine = Agent::open_with(&gate, "peer", MINE);
    let mut thief = Agent::open_with(&gate, "peer", OTHER);
    let listen = |agent: &Agent| {
        let headers = format!("Accept: text/event-stream\r\n{}", agent.authorization());
        Events::of(agent.get(&headers))
    };
    let (mut received, mut overheard) = (listen(&mine), listen(&thief));
    let about = json!({"uri": "demo://mine"});
    assert_eq!(mine.request("resources/subscribe", &about)["result"], json!({}));
    let own = std::mem::replace(&mut thief.session, mine.session.clone());
    for what in ["subscribe", "unsubscribe"] {
        let method = format!("resources/{what}");
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": about});
        assert_eq!(thief.send(&body.to_string()).status, 404, "{what}");
    }
    thief.session = own;
    // In its own agent session it may unsubscribe, which changes nothing.
    assert_eq!(thief.request("resources/unsubscribe", &about)["result"], json!({}));
    thief.call("update", &json!({}));
    thief.call("notify", &json!({}));
    let (_, first) = received.message().unwrap();
    assert_eq!(first["params"]["uri"], "demo://mine", "{first}");
    let (_, first) = overheard.message().unwrap();
    assert_eq!(first["method"], "notifications/tools/list_changed", "{first}");
}

#[test]
fn the_id_of_a_subscription_is_worth_nothing_with_another_token() {
    let (gate, peer) = two_grants("instances: shared");
    // Everybody gives his request the same id, which is that of the subscription.
    let listen = |token: &str, uris: &[&str]| {
        let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
        let mut events = Events::of(modern(&gate, token, "", "subscriptions/listen", wanted));
        let (_, agreed) = events.message().unwrap();
        assert_eq!(agreed["params"]["notifications"]["resourceSubscriptions"], json!(uris));
        events
    };
    let hears = |events: &mut Events, uri: &str| {
        let (_, reported) = events.message().unwrap();
        let tag = &reported["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!((&reported["params"]["uri"], tag), (&json!(uri), &json!(7)), "{reported}");
    };
    let update = || {
        let reply = called(&gate, OTHER, "", json!({"name": "update", "arguments": {}}));
        assert_eq!(reply.status, 200, "{reply:?}");
    };
    let mut mine = listen(MINE, &["demo://mine"]);
    let mut other = listen(OTHER, &["demo://other"]);
    update();
    hears(&mut mine, "demo://mine");
    hears(&mut other, "demo://other");
    // An agent that cancels under the id, or ends a subscription to the same, ends only its own.
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let (body, address) = (cancel.to_string(), gate.mcp());
    let headers = format!(
        "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Authorization: Bearer {OTHER}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(ask(&address, &post_head(&address, &path("peer"), &headers)).status, 202);
    drop(listen(OTHER, &["demo://mine", "demo://now"]));
    let ended = peer.hears("resources/unsubscribe");
    assert_eq!(ended["params"]["uri"], "demo://now", "what somebody else follows goes on");
    update();
    hears(&mut mine, "demo://mine");
    hears(&mut other, "demo://other");
}

#[test]
fn a_parked_call_continues_only_for_its_own_grant() {
    let (gate, peer) = two_grants("");
    let last = |mut events: Events| {
        let mut last = Value::Null;
        while let Some(event) = events.next() {
            last = serde_json::from_str(&event.data).unwrap();
        }
        last
    };
    let asked = modern(&gate, MINE, "", "tools/call", json!({"name": "ask", "arguments": {}}));
    let asked = last(Events::of(asked));
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let (key, _) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let retry = json!({
        "name": "ask", "arguments": {},
        "inputResponses": {key: {"model": "m", "answer": 42}},
        "requestState": result["requestState"],
    });
    let stolen = called(&gate, OTHER, "", retry.clone());
    assert_eq!((stolen.status, &stolen.json()["error"]["code"]), (400, &json!(-32602)));
    let answer = last(Events::of(modern(&gate, MINE, "", "tools/call", retry)));
    assert_eq!(answer["result"]["structuredContent"]["result"]["answer"], 42, "{answer}");
    let calls = peer.received().iter().filter(|it| it["method"] == "tools/call").count();
    assert_eq!(calls, 1);
}

#[test]
fn grants_without_sessions_share_no_child_and_no_cache() {
    let (gate, _peer) = two_grants("");
    let pid = |token: &str| {
        let headers = "Toolgate-Session: the-same\r\n";
        let reply = called(&gate, token, headers, json!({"name": "pid", "arguments": {}}));
        // The first call over a connection lists the tools before, so its answer may be a stream.
        let answer = crate::sessionless::last(&reply);
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(pid(MINE), pid(MINE));
    assert_ne!(pid(MINE), pid(OTHER), "one value of the header, two grants");
    let list = modern(&gate, MINE, "", "tools/list", json!({})).reply().json();
    assert_eq!(list["result"]["cacheScope"], "private", "{list}");
}
