//! Servers that fail: the answer states what happened and whether the tool may have run, and the next
//! call works as soon as the server does.

use serde_json::{Value, json};
use toolgate_testkit::reserved_address;

use crate::agent::{Agent, initialize, opening, post_head};
use crate::api::Api;
use crate::gate::{Gate, Home, eventually, is_gone};
use crate::peer::{Peer, gate_with_peer};
use crate::upstream::Upstream;
use crate::wire::{Connection, get};

/// Checks a tool result that reports a failure; its text.
#[track_caller]
fn failed(result: &Value, code: &str, effect: &str) -> String {
    assert_eq!(result["isError"], true, "{result}");
    let meta = &result["_meta"];
    assert_eq!((&meta["error_code"], &meta["effect"]), (&code.into(), &effect.into()), "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[UPSTREAM] "), "{text}");
    text.to_owned()
}

/// The error of an `initialize` whose server cannot be reached.
#[track_caller]
fn not_opened(gate: &Gate, server: &str) -> String {
    let reply = initialize(gate, server, "2025-11-25");
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None), "{reply:?}");
    let answer = reply.json();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&1.into(), &(-32603).into()),
        "{answer}"
    );
    let data = &answer["error"]["data"];
    assert_eq!(data["error_code"], "upstream_unavailable", "{answer}");
    assert_eq!(data["effect"], "not_started", "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn servers_that_do_not_start() {
    let home = Home::new();
    let (good, bad) = (Peer::new(&home, "good"), Peer::new(&home, "bad"));
    let config = format!(
        "servers:\n{}{}  missing: {{ command: no-such-program }}\n  \
         nowhere: {{ command: sh, cwd: /no/such/folder }}\n",
        good.entry("", ""),
        bad.entry("exits", "")
    );
    let gate = Gate::start_in(home, &config);
    // A start that fails beside another one is tried again.
    bad.own_listing_ends();
    let agent = Agent::open(&gate, "good");

    let printed = not_opened(&gate, "missing");
    assert!(printed.contains("no command `no-such-program` in PATH"), "{printed}");
    assert!(printed.contains("install it or write its full path"), "{printed}");
    let printed = not_opened(&gate, "nowhere");
    assert!(printed.contains("`/no/such/folder` does not exist"), "{printed}");

    // It is not started again and again.
    let (mut starts, mut delayed) = (0, false);
    eventually("it is tried again after a pause, and then after another", || {
        let printed = not_opened(&gate, "bad");
        assert!(printed.contains("exited with code 3"), "the cause is known: {printed}");
        assert!(!printed.contains("my database is missing"), "{printed}");
        if printed.contains("the next attempt is delayed") {
            assert!(printed.contains("Try again in "), "{printed}");
            delayed = true;
        } else {
            starts += 1;
        }
        assert_eq!(bad.started().len(), starts);
        (starts == 2).then_some(())
    });
    assert!(delayed, "no attempt was delayed");
    gate.log.wait_for("my database is missing");
    assert!(agent.works(), "another server is not disturbed");
    gate.log.line_with(&["did not start", "server=\"missing\"", "no-such-program"]);
}

#[test]
fn a_child_that_dies_in_the_middle_of_a_call() {
    let (gate, peer) = gate_with_peer("", "", "");
    let (agent, other) = (Agent::open(&gate, "peer"), Agent::open(&gate, "peer"));
    let text = failed(&agent.call("crash", &json!({})), "outcome_unknown", "unknown");
    assert!(text.contains("exited with code 9"), "{text}");
    assert!(!text.contains("paper") && text.contains("check before you repeat it"), "{text}");
    gate.log.line_with(&["server connection lost", "server=\"peer\""]);
    assert!(other.works(), "the child of another agent is not disturbed");

    // Refused unsent as long as the pause lasts, and then with a new child.
    let result = eventually("the server is back", || {
        let result = agent.call("echo", &json!({"n": 1}));
        if result["isError"] != true {
            return Some(result);
        }
        let text = failed(&result, "upstream_unavailable", "not_started");
        assert!(text.contains("Nothing was sent. Try again in 1 s"), "{text}");
        assert_eq!(result["_meta"]["retry_after_s"], 1);
        None
    });
    assert_eq!(result["structuredContent"]["arguments"], json!({"n": 1}));
    assert_eq!(peer.started().len(), 3);
    let calls = |tool| {
        let received = peer.received();
        received.iter().filter(|message| message["params"]["name"] == tool).count()
    };
    assert_eq!((calls("crash"), calls("echo")), (1, 1), "nothing is sent twice");

    let metrics = get(&gate.admin(), "/metrics").body;
    let counted = r#"toolgate_upstream_requests_total{server="peer",result="unknown"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
}

#[test]
fn a_call_that_times_out_is_cancelled_upstream() {
    let tools = "timeout: 60s, tools: { slow: { timeout: 1s } }";
    let (gate, peer) = gate_with_peer("", "", tools);
    let agent = Agent::open(&gate, "peer");
    let text = failed(&agent.call("slow", &json!({})), "upstream_timeout", "unknown");
    assert!(text.contains("did not answer within 1s"), "{text}");

    let cancelled = peer.hears("notifications/cancelled");
    let received = peer.received();
    let call = received.iter().find(|message| message["params"]["name"] == "slow").unwrap();
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    assert_eq!(agent.says("pid"), peer.started()[0].to_string(), "the child is still of use");

    // An answer that comes too late is dropped.
    peer.go();
    eventually("the late answer is counted as dropped", || {
        let metrics = get(&gate.admin(), "/metrics").body;
        metrics.contains(r#"toolgate_dropped_messages_total{server="peer"} 1"#).then_some(())
    });
    assert!(agent.works());
}

#[test]
fn a_cancel_of_the_agent_reaches_the_server() {
    let (gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let mut call = agent.begin_call("slow", &json!({}));
    peer.is_called("slow");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"bored"}}"#;
    assert_eq!(agent.send(cancel).status, 202);
    let cancelled = peer.hears("notifications/cancelled");
    let received = peer.received();
    let sent = received.iter().find(|message| message["params"]["name"] == "slow").unwrap();
    assert_eq!(cancelled["params"], json!({"requestId": sent["id"], "reason": "bored"}));
    peer.go();
    assert!(call.reply().body.contains("at last"));
}

#[test]
fn a_silent_child_is_ended() {
    let (gate, peer) = gate_with_peer("", "silent", "start_timeout: 300ms");
    let printed = not_opened(&gate, "peer");
    assert!(printed.contains("no handshake within 300ms"), "{printed}");
    let child = peer.started()[0];
    eventually("the child is killed", || is_gone(child).then_some(()));
}

#[test]
fn an_agent_that_hangs_up_while_its_server_starts_leaves_no_child() {
    let (gate, peer) = gate_with_peer("", "silent", "start_timeout: 1h");
    let body = opening("2025-11-25");
    let head = post_head(&gate.mcp(), "/mcp/peer", "Content-Type: application/json\r\n");
    let mut connection = Connection::open(&gate.mcp());
    connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    let child = eventually("the child is started", || peer.started().first().copied());
    drop(connection);
    eventually("the child is killed", || is_gone(child).then_some(()));
}

#[test]
fn an_http_server_that_is_not_there() {
    let address = reserved_address().unwrap();
    let gate =
        Gate::start(&format!("servers: {{ dead: {{ url: 'http://{address}/mcp?k=s3cret' }} }}"));
    let printed = not_opened(&gate, "dead");
    assert!(printed.contains(&format!("connection refused at http://{address}")), "{printed}");
    assert!(printed.contains("is the server running?"), "{printed}");
    assert!(!printed.contains("s3cret") && !gate.log.text().contains("s3cret"));
}

#[test]
fn an_http_server_that_goes_away_and_comes_back() {
    let address = reserved_address().unwrap().to_string();
    let upstream = Upstream::start_at(&address);
    let gate = Gate::start(&format!("servers: {{ web: {{ url: 'http://{address}/mcp' }} }}"));
    let agent = Agent::open(&gate, "web");
    assert!(agent.works());
    upstream.stop();
    let text = failed(&agent.call("any", &json!({})), "upstream_unavailable", "not_started");
    assert!(text.contains("connection refused"), "{text}");
    let upstream = Upstream::start_at(&address);
    assert_eq!(agent.call("any", &json!({"n": 1}))["structuredContent"]["arguments"]["n"], 1);
    assert!(!upstream.requests().is_empty());
}

#[test]
fn a_server_that_starts_slowly_is_seen_by_an_agent_that_lists_once() {
    let home = Home::new();
    let slow = Peer::new(&home, "slow");
    let [script, folder] = slow.arguments();
    // Longer than the answer to `initialize` waits.
    let line = format!("sleep 2.5; exec sh '{script}' '{folder}' listing");
    let config = format!("servers:\n  slow: {{ command: sh, args: [-c, \"{line}\"] }}\n");
    let listed = |gate: &Gate| {
        let agent = Agent::open_at(gate, "/mcp", "2025-11-25").unwrap();
        let tools = agent.request("tools/list", &json!({}))["result"]["tools"].clone();
        let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone());
        names.filter(|name| name == "slow__echo").count()
    };
    let mut gate = Gate::start_in(home, &config);
    assert_eq!(listed(&gate), 1);
    let servers = Api::admin(&gate).get("servers");
    let server = &servers["items"][0];
    assert_eq!(server["tools"], 2, "{server}");
    assert!(server["command"].as_str().unwrap().starts_with("sh -c 'sleep 2.5;"), "{server}");
    assert_eq!(gate.stop().0, Some(0));

    // After a restart the list is there before the server is.
    let gate = Gate::start_in(gate.into_home(), &config);
    assert_eq!(listed(&gate), 1);
}
