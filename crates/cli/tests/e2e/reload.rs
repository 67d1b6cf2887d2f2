//! A changed configuration becomes active without a restart, an invalid one never does.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::agent::{Agent, initialize};
use crate::gate::{Gate, Home, LISTEN, eventually, is_gone};
use crate::peer::{Peer, gate_with_peer};
use crate::wire::{Events, ask, get};

/// Waits until a server is there, or is not there any more.
fn until(gate: &Gate, server: &str, is_there: bool) {
    eventually(&format!("`{server}` is there: {is_there}"), || {
        let status = get(&gate.mcp(), &format!("/mcp/{server}")).status;
        // Without an Accept header a GET of the server's path is refused, but the path exists.
        ((status != 404) == is_there).then_some(())
    });
}

#[test]
fn servers_come_go_and_change() {
    let home = Home::new();
    let (kept, changed) = (Peer::new(&home, "kept"), Peer::new(&home, "changed"));
    let (gone, new) = (Peer::new(&home, "gone"), Peer::new(&home, "new"));
    let before = [kept.entry("", ""), changed.entry("before", ""), gone.entry("", "")].concat();
    let gate = Gate::start_in(home, &format!("servers:\n{before}"));
    let agents = ["kept", "changed", "gone"].map(|server| Agent::open(&gate, server));
    let [keeps, moves, loses] = &agents;
    let pid = keeps.says("pid");
    assert_eq!(moves.says("mode"), "before");

    let mut streams = agents.each_ref().map(|agent| {
        let stream = agent.get("Accept: text/event-stream\r\n");
        Events::of(stream)
    });

    let after = [kept.entry("", ""), changed.entry("after", ""), new.entry("", "")].concat();
    gate.configure(&format!("servers:\n{after}"));
    until(&gate, "new", true);
    until(&gate, "gone", false);
    assert!(Agent::open(&gate, "new").works());
    assert_eq!(loses.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).status, 404);
    assert_eq!(keeps.says("pid"), pid, "an unchanged server keeps its child");
    assert_eq!(moves.says("mode"), "after", "the agent session goes on with a new child");
    for peer in [&changed, &gone] {
        eventually("the old child ends", || is_gone(peer.started()[0]).then_some(()));
    }
    assert_eq!(kept.started().len(), 1);
    assert!(streams[2].next().is_none(), "the stream of a server that is gone ends");
    moves.call("notify", &json!({}));
    assert_eq!(streams[1].message().unwrap().1["method"], "notifications/tools/list_changed");
}

#[test]
fn the_child_that_agents_shared_ends_with_its_entry() {
    let home = Home::new();
    let (changed, gone) = (Peer::new(&home, "changed"), Peer::new(&home, "gone"));
    let shared = "instances: shared";
    let before = [changed.entry("before", shared), gone.entry("", shared)].concat();
    let gate = Gate::start_in(home, &format!("servers:\n{before}"));
    let agents = [Agent::open(&gate, "changed"), Agent::open(&gate, "changed")];
    assert!(Agent::open(&gate, "gone").works());
    gate.configure(&format!("servers:\n{}", changed.entry("after", shared)));
    until(&gate, "gone", false);
    for agent in &agents {
        assert_eq!(agent.says("mode"), "after");
    }
    assert_eq!(changed.started().len(), 2);
    for peer in [&changed, &gone] {
        eventually("the old child ends", || is_gone(peer.started()[0]).then_some(()));
    }
}

#[test]
fn a_running_call_ends_where_it_began() {
    let (gate, peer) = gate_with_peer("", "before", "");
    let agent = Agent::open(&gate, "peer");
    let mut call = Events::of(agent.begin_call("slow", &json!({})));
    peer.is_called("slow");
    gate.configure(&format!("servers:\n{}", peer.entry("after", "")));
    gate.log.wait_for("configuration reloaded");
    assert_eq!(agent.says("mode"), "after");
    peer.go();
    assert_eq!(call.message().unwrap().1["result"]["content"][0]["text"], "at last");
    eventually("the old child ends with its last call", || {
        is_gone(peer.started()[0]).then_some(())
    });
}

#[test]
fn an_invalid_file_never_becomes_active() {
    let (gate, peer) = gate_with_peer("", "before", "");
    let agent = Agent::open(&gate, "peer");
    let invalid = format!("servers:\n{}  other: {{ comand: x }}\n", peer.entry("after", ""));
    gate.configure(&invalid);
    gate.log.wait_for("the previous one stays active");
    let place = format!("{}:5:12", gate.home.file().display());
    gate.log.line_with(&[&place, "`comand`"]);
    assert_eq!(agent.says("mode"), "before");
    assert_eq!(get(&gate.mcp(), "/mcp/other").status, 404);

    // What would not be started with is not gone on with.
    let open = "listen: { mcp: 0.0.0.0:0, sessions: 127.0.0.1:0, admin: 127.0.0.1:0 }";
    gate.configure(&format!("{open}\nservers:\n{}", peer.entry("after", "")));
    gate.log.wait_for("and there is no grant");
    assert_eq!(agent.says("mode"), "before");

    // A file that is gone for good changes nothing either.
    fs::remove_file(gate.home.file()).unwrap();
    gate.signal(Signal::HUP);
    gate.log.wait_for("no such file");
    assert_eq!(agent.says("mode"), "before");

    gate.configure(&format!("servers:\n{}", peer.entry("after", "")));
    eventually("the repaired file is active", || (agent.says("mode") == "after").then_some(()));
}

#[test]
fn a_file_that_is_written_in_place_is_noticed() {
    let (gate, peer) = gate_with_peer("", "before", "");
    let agent = Agent::open(&gate, "peer");
    let text = format!("version: 1\n{LISTEN}\nservers:\n{}", peer.entry("after", ""));
    fs::write(gate.home.file(), text).unwrap();
    eventually("the new text is active", || (agent.says("mode") == "after").then_some(()));
}

#[test]
fn an_edit_right_after_the_start_is_noticed() {
    for _ in 0..5 {
        let (gate, peer) = gate_with_peer("", "before", "");
        gate.configure(&format!("servers:\n{}", peer.entry("after", "")));
        gate.log.wait_for("configuration reloaded");
        assert_eq!(Agent::open(&gate, "peer").says("mode"), "after");
    }
}

#[test]
fn what_the_file_refers_to_is_read_again_on_sighup() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    fs::write(home.path("secret"), "before").unwrap();
    let config = format!("servers:\n{}", peer.entry("", "env: { WORD: 'file:secret' }"));
    let gate = Gate::start_in(home, &config);
    let agent = Agent::open(&gate, "peer");
    assert!(agent.says("env").contains("WORD=before"));
    fs::write(gate.home.path("secret"), "after").unwrap();
    gate.signal(Signal::HUP);
    gate.log.wait_for("configuration reloaded");
    assert!(agent.says("env").contains("WORD=after"));
}

#[test]
fn limits_change_at_once() {
    let (gate, peer) = gate_with_peer("limits: { result: 1KiB, body: 1KiB }", "", "");
    let agent = Agent::open(&gate, "peer");
    let big = json!({"text": "x".repeat(2000)});
    let params = json!({"name": "echo", "arguments": big});
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    assert_eq!(agent.send(&call).status, 413);
    let result = agent.call("big", &json!({}));
    assert_eq!(result["_meta"]["error_code"], "outcome_unknown", "{result}");

    let servers = format!("servers:\n{}", peer.entry("", ""));
    gate.configure(&format!("limits: {{ result: 1MiB, body: 1MiB, depth: 8 }}\n{servers}"));
    gate.log.wait_for("configuration reloaded");
    assert_eq!(agent.call("echo", &big)["structuredContent"]["arguments"], big);
    assert_eq!(agent.says("big").len(), 3000);
    let deep = json!({"name": "echo", "arguments": [[[[[[[[[[]]]]]]]]]]});
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{deep}}}"#);
    assert_eq!(agent.send(&call).status, 400);
}

#[test]
fn changed_listener_rules_apply_at_once() {
    let gate = Gate::start("hosts: [old.example.com]\norigins: ['https://old.example.com']");
    let status = |listener: &str, headers: &str| {
        let request = format!("GET /healthz HTTP/1.1\r\n{headers}\r\n\r\n");
        ask(&gate.address(listener), &request).status
    };
    let hosts = ["old", "new"].map(|name| format!("Host: {name}.example.com"));
    let origins =
        ["old", "new"].map(|name| format!("Host: localhost\r\nOrigin: https://{name}.example.com"));
    for (config, expected) in [
        ("", [200, 403]),
        ("hosts: [new.example.com]\norigins: ['https://new.example.com']", [403, 200]),
    ] {
        if !config.is_empty() {
            gate.configure(config);
            gate.log.wait_for("configuration reloaded");
        }
        assert_eq!(hosts.each_ref().map(|host| status("mcp", host)), expected);
        assert_eq!(hosts.each_ref().map(|host| status("admin", host)), expected);
        assert_eq!(origins.each_ref().map(|origin| status("mcp", origin)), expected);
    }
}

#[test]
fn changes_that_need_a_restart_are_logged() {
    let (gate, peer) = gate_with_peer("", "", "");
    let (address, agent) = (gate.mcp(), Agent::open(&gate, "peer"));
    let cases = [
        ("listen: { mcp: 127.0.0.1:0, sessions: off, admin: 127.0.0.1:0 }", "`listen` has changed"),
        ("data: ./elsewhere", "`data` has changed"),
        ("limits: { connections: 7 }", "`limits of connections` has changed"),
        ("shutdown_grace: 7s", "`shutdown_grace` has changed"),
    ];
    for (change, words) in cases {
        gate.configure(&format!("{change}\nservers:\n{}", peer.entry("", "")));
        gate.log.wait_for(words);
    }
    assert_eq!(
        gate.log.text().matches("restart toolgate to apply it").count(),
        7,
        "{}",
        gate.log.text()
    );
    assert_eq!(get(&address, "/readyz").status, 200);
    assert!(agent.works());
    assert_eq!(initialize(&gate, "peer", "2025-11-25").status, 200);
}
