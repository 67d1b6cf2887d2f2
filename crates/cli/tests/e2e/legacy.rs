//! Servers that still speak HTTP+SSE of 2024-11-05.

use serde_json::{Value, json};
use toolgate_testkit::legacy::LegacyServer;
use toolgate_testkit::reserved_address;

use crate::agent::{Agent, initialize};
use crate::gate::{Gate, Home, eventually};

fn gate_with(url: &str, keys: &str) -> Gate {
    Gate::start_as(
        Home::new(),
        &format!("servers: {{ old: {{ url: '{url}', {keys} }} }}"),
        |gate| {
            gate.env("OLD_KEY", "the-key");
        },
    )
}

fn echoes(agent: &Agent, text: &str) {
    let result = agent.call("echo", &json!({"text": text}));
    assert_eq!(result["content"][0]["text"], text, "{result}");
}

/// The request lines so far, without version.
fn lines(server: &LegacyServer) -> Vec<String> {
    let line = |request: String| request.split(" HTTP/").next().unwrap().to_owned();
    server.requests().into_iter().map(line).collect()
}

/// Waits until toolgate itself has listed the server, over a stream of its own.
fn listed(server: &LegacyServer) {
    eventually("toolgate has listed it and let go of it", || {
        let asked = server.requests().iter().any(|request| request.contains("tools/list"));
        (asked && server.sessions() == 0).then_some(())
    });
}

#[track_caller]
fn failed(result: &Value, code: &str, effect: &str) -> String {
    let meta = &result["_meta"];
    assert_eq!((&meta["error_code"], &meta["effect"]), (&code.into(), &effect.into()), "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn it_is_found_by_falling_back_and_remembered() {
    let server = LegacyServer::start().unwrap();
    let gate =
        gate_with(&format!("{}?tenant=a", server.url()), "headers: { X-Key: 'env:OLD_KEY' }");
    listed(&server);
    let agent = Agent::open(&gate, "old");
    assert_eq!(agent.welcome["result"]["serverInfo"]["name"], "healthy");
    echoes(&agent, "through the older door");
    // toolgate asks for either protocol before it falls back.
    let is_probe = |line: &String| line == "POST /sse?tenant=a";
    let lines_after: Vec<String> = lines(&server).into_iter().skip_while(is_probe).collect();
    assert!(lines_after.len() < lines(&server).len(), "it was probed");
    assert_eq!(lines_after[..2], ["GET /sse?tenant=a", "POST /messages?session=1"]);
    assert!(!lines_after.iter().any(is_probe), "{lines_after:?}");
    gate.log.line_with(&["speaks HTTP+SSE of 2024-11-05", "old"]);

    let before = server.requests().len();
    let second = Agent::open(&gate, "old");
    assert_eq!(lines(&server)[before], "GET /sse?tenant=a", "what worked is tried first");
    echoes(&second, "mine");
    for request in server.requests() {
        let head = request.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
        assert!(head.contains(&format!("host: {}\r\n", server.address())), "{head}");
        assert!(head.contains("x-key: the-key"), "{head}");
        for foreign in ["origin:", "mcp-session-id:", "cookie:"] {
            assert!(!head.contains(foreign), "{head}");
        }
    }
}

#[test]
fn a_declared_legacy_transport_is_not_probed() {
    let server = LegacyServer::start().unwrap();
    let gate = gate_with(&server.url(), "type: sse");
    echoes(&Agent::open(&gate, "old"), "hello");
    // toolgate's own listing comes in between.
    let lines = lines(&server);
    let expected =
        |line: &String| line == "GET /sse" || line.starts_with("POST /messages?session=");
    assert!(lines.len() >= 4 && lines.iter().all(expected), "{lines:?}");
}

#[test]
fn every_agent_has_a_stream_that_ends_with_it() {
    let server = LegacyServer::start().unwrap();
    let gate = gate_with(&server.url(), "");
    listed(&server);
    let (one, two) = (Agent::open(&gate, "old"), Agent::open(&gate, "old"));
    echoes(&one, "one");
    echoes(&two, "two");
    assert_eq!(server.sessions(), 2);
    one.delete();
    eventually("its stream is let go", || (server.sessions() == 1).then_some(()));
    echoes(&two, "two again");
}

#[test]
fn with_the_stream_the_answers_are_lost_and_the_next_call_opens_another() {
    let server = LegacyServer::start().unwrap();
    let gate = gate_with(&server.url(), "");
    listed(&server);
    let streams = || lines(&server).iter().filter(|line| line.starts_with("GET")).count();
    let before = streams();
    let agent = Agent::open(&gate, "old");
    let text = failed(&agent.call("hang_up", &json!({})), "outcome_unknown", "unknown");
    assert!(text.contains("`old` ended its stream"), "{text}");
    gate.log.line_with(&["server connection lost", "server=\"old\""]);
    echoes(&agent, "again");

    // One that does not know the session any more may have done what it was asked.
    agent.request("tools/call", &json!({"name": "forget"}));
    let text = failed(&agent.call("echo", &json!({})), "upstream_unavailable", "unknown");
    assert!(text.contains("lost the session") && text.contains("Repeat"), "{text}");
    echoes(&agent, "and again");
    assert_eq!(streams() - before, 3);
}

#[test]
fn a_server_that_goes_away_and_comes_back() {
    let address = reserved_address().unwrap().to_string();
    let server = LegacyServer::start_at(&address).unwrap();
    let gate = gate_with(&server.url(), "");
    let agent = Agent::open(&gate, "old");
    drop(server);
    gate.log.line_with(&["server connection lost", "server=\"old\""]);
    let text = failed(&agent.call("echo", &json!({})), "upstream_unavailable", "not_started");
    assert!(text.contains("connection refused"), "{text}");
    let server = LegacyServer::start_at(&address).unwrap();
    echoes(&agent, "back");
    assert_eq!(server.sessions(), 1);
}

#[test]
fn an_endpoint_elsewhere_is_refused() {
    let server = LegacyServer::start_pointing_to("http://127.0.0.2:9").unwrap();
    for keys in ["type: sse", ""] {
        let gate = gate_with(&server.url(), keys);
        let answer = initialize(&gate, "old", "2025-11-25").json();
        assert_eq!(answer["error"]["data"]["error_code"], "upstream_unavailable", "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        if keys.is_empty() {
            assert!(message.contains("answered HTTP 405"), "the first refusal stands: {message}");
        } else {
            assert!(message.contains("`http://127.0.0.2:9`"), "{message}");
            assert!(message.contains("not sent to another origin"), "{message}");
        }
    }
}
