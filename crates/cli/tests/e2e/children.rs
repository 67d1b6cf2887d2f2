//! Healthy stdio servers: which agent a child belongs to, its input and its output.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{Gate, Home, eventually, is_gone};
use crate::peer::{Peer, gate_with_peer};
use crate::wire::Events;

#[test]
fn one_child_for_each_agent_session() {
    let (gate, peer) = gate_with_peer("", "", "");
    let (one, two) = (Agent::open(&gate, "peer"), Agent::open(&gate, "peer"));
    let pids = [one.says("pid"), two.says("pid"), one.says("pid")];
    assert!(pids[0] != pids[1] && pids[0] == pids[2], "{pids:?}");
    assert_eq!(peer.started().len(), 2);

    one.delete();
    let gone: u32 = pids[0].parse().unwrap();
    eventually("its child ends", || is_gone(gone).then_some(()));
    assert_eq!(two.says("pid"), pids[1], "the other one stays");
}

#[test]
fn one_child_for_all() {
    let (gate, peer) = gate_with_peer("", "", "instances: shared");
    let (one, two) = (Agent::open(&gate, "peer"), Agent::open_as(&gate, "peer", "2025-03-26"));
    assert_eq!(two.welcome["result"]["protocolVersion"], "2025-03-26");
    let pid = one.says("pid");
    assert_eq!(two.says("pid"), pid);
    one.delete();
    assert_eq!(two.says("pid"), pid, "the child is not the agent's that has gone");
    assert_eq!(peer.started().len(), 1);
    let opened = peer.received().iter().filter(|m| m["method"] == "initialize").count();
    assert_eq!(opened, 1);
}

#[test]
fn what_an_idle_agent_leaves_behind_is_ended() {
    let (gate, peer) = gate_with_peer("agent_sessions: { idle: 1s }", "", "");
    let agent = Agent::open(&gate, "peer");
    let child = peer.started()[0];
    eventually("the child of an idle agent session ends", || is_gone(child).then_some(()));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(agent.send(body).status, 404);
}

#[test]
fn what_a_child_sees_of_the_environment() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let listed = "env: { LISTED: plain, GIVEN: 'env:GIVEN_TOKEN', LANG: xx }";
    let config = format!("servers:\n{}", peer.entry("", listed));
    let gate = Gate::start_as(home, &config, |command| {
        command
            .env("GIVEN_TOKEN", "given-value")
            .env("AWS_SECRET_ACCESS_KEY", "not-for-children")
            .env("LD_LIBRARY_PATH", "/not/for/children")
            .env("TOOLGATE_LOG", "debug")
            .env("LC_TIME", "C")
            .env("LANG", "C");
    });
    let seen = Agent::open(&gate, "peer").says("env");
    let mut names: Vec<&str> =
        seen.split_whitespace().filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", "LANG", "LC_TIME", "LISTED", "PATH"], "{seen}");
    for pair in ["GIVEN=given-value", "LISTED=plain", "LANG=xx"] {
        assert!(seen.contains(pair), "{seen}");
    }
    assert!(!gate.log.text().contains("given-value"), "a secret is in the log");
}

#[test]
fn stderr_of_a_child_is_logged_under_its_name() {
    let (gate, _) = gate_with_peer("", "chatty", "");
    let agent = Agent::open(&gate, "peer");
    assert_eq!(agent.says("mutter"), "said");
    gate.log.line_with(&["a word to the people", "stderr", "server=peer"]);
    gate.log.line_with(&["not MCP messages", "server=peer"]);
    gate.log.line_with(&["server sent an invalid message", "server=\"peer\""]);
    assert!(agent.works());
}

#[test]
fn progress_and_questions_reach_the_agent_that_answers() {
    let (gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let mut events =
        Events::of(agent.begin_call("progress", &json!({"progressToken": "my-token"})));
    let (_, progress) = events.message().unwrap();
    assert_eq!(progress["params"], json!({"progressToken": "my-token", "progress": 1}));
    let (_, answer) = events.message().unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&7.into(), &"done".into())
    );
    assert!(events.next().is_none());

    let mut events = Events::of(agent.begin_call("ask", &json!({})));
    let (_, question) = events.message().unwrap();
    assert_eq!(question["method"], "sampling/createMessage");
    assert_ne!(question["id"], "q-1", "ids towards the agent are the gateway's own");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"text": "forty-two"}});
    assert_eq!(agent.send(&answer.to_string()).status, 202);
    let (_, answer) = events.message().unwrap();
    let received = &answer["result"]["structuredContent"];
    assert_eq!(
        (&received["id"], &received["result"]["text"]),
        (&"q-1".into(), &"forty-two".into())
    );

    let ids: Vec<Value> = peer.received().iter().map(|message| message["id"].clone()).collect();
    assert!(!ids.contains(&json!(7)), "ids towards the server are the gateway's own: {ids:?}");
}

#[test]
fn bytes_pass_through_a_child() {
    let (gate, _) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let arguments =
        r#"{"n":1.0,"big":12345678901234567890123,"e":1E+2,"s":"é☃\u0041","x":{"":[]}}"#;
    let reply = agent.send(&format!(
        r#"{{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{{"name":"echo","arguments":{arguments},"unknown":true}}}}"#
    ));
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":"A","result":{{"content":[],"structuredContent":{{"name":"echo","arguments":{arguments},"unknown":true}}}}}}"#
    );
    assert_eq!(reply.body, expected);
}
