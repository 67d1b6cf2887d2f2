//! How `serve` ends: running calls finish, nothing is left behind, exit code 0.

use rustix::process::Signal;
use serde_json::json;

use crate::agent::Agent;
use crate::gate::{eventually, is_gone};
use crate::peer::gate_with_peer;
use crate::wire::{Connection, Events};

#[test]
fn children_and_grandchildren_end_with_it() {
    for (signal, instances) in
        [(Signal::TERM, "per-agent"), (Signal::INT, "per-agent"), (Signal::TERM, "shared")]
    {
        let (mut gate, peer) = gate_with_peer("", "", &format!("instances: {instances}"));
        let (one, two) = (Agent::open(&gate, "peer"), Agent::open(&gate, "peer"));
        let mut processes = peer.started();
        processes.extend([&one, &two].map(|agent| agent.says("family").parse::<u32>().unwrap()));
        assert!(processes.iter().all(|pid| !is_gone(*pid)));

        let idle = Events::of(one.get("Accept: text/event-stream\r\n"));
        gate.signal(signal);
        assert_eq!(gate.wait(), (Some(0), String::new()));
        for pid in processes {
            eventually(&format!("process {pid} ends"), || is_gone(pid).then_some(()));
        }
        assert!({ idle }.next().is_none(), "an idle stream is closed");
    }
}

#[test]
fn the_data_folder_is_left_tidy() {
    let (mut gate, _peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    for _ in 0..20 {
        agent.call("echo", &json!({}));
    }
    let data = gate.home.path(".local/share/toolgate");
    assert!(data.join("toolgate.db-wal").exists(), "what is looked for has this name");
    assert_eq!(gate.stop().0, Some(0));
    let left = std::fs::read_dir(&data).unwrap();
    let mut left: Vec<_> =
        left.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    left.retain(|name| name.starts_with("toolgate.db") || name == "serve.json");
    assert_eq!(left, ["toolgate.db"]);
}

#[test]
fn a_running_call_finishes() {
    let (mut gate, peer) = gate_with_peer("", "", "");
    let agent = Agent::open(&gate, "peer");
    let mut idle = Connection::open(&gate.mcp());
    let mut call = Events::of(agent.begin_call("slow", &json!({})));
    gate.signal(Signal::TERM);
    gate.log.wait_for("stopping");
    assert_eq!(idle.rest(), b"", "an idle connection is closed at once");
    eventually("nobody is let in any more", || {
        std::net::TcpStream::connect(agent.address.as_str()).is_err().then_some(())
    });
    peer.go();
    let (_, answer) = call.message().unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "at last");
    assert!(call.next().is_none());
    assert_eq!(gate.wait().0, Some(0));
}

#[test]
fn a_call_that_outlasts_the_grace_is_answered_all_the_same() {
    let (mut gate, peer) = gate_with_peer("shutdown_grace: 0s", "", "");
    let agent = Agent::open(&gate, "peer");
    let mut call = Events::of(agent.begin_call("slow", &json!({})));
    peer.is_called("slow");
    assert_eq!(gate.stop().0, Some(0));
    let (_, answer) = call.message().unwrap();
    assert_eq!(answer["result"]["_meta"]["error_code"], "outcome_unknown", "{answer}");
    assert_eq!(answer["result"]["_meta"]["effect"], "unknown", "{answer}");
    assert!(is_gone(peer.started()[0]));
}

#[test]
fn a_second_signal_stops_at_once() {
    let (mut gate, peer) = gate_with_peer("shutdown_grace: 1h", "", "");
    let agent = Agent::open(&gate, "peer");
    let call = Events::of(agent.begin_call("slow", &json!({})));
    peer.is_called("slow");
    gate.signal(Signal::TERM);
    gate.log.wait_for("stopping");
    gate.signal(Signal::TERM);
    assert_eq!(gate.wait().0, Some(0));
    let printed = gate.log.text();
    assert!(printed.contains("second stop signal"), "{printed}");
    assert!(!printed.contains("did not end in time"), "it has waited for somebody: {printed}");
    drop(call);
    eventually("its child ends", || is_gone(peer.started()[0]).then_some(()));
}

#[test]
fn a_child_that_does_not_want_to_end_is_killed() {
    let (mut gate, peer) = gate_with_peer("", "stubborn", "");
    let agent = Agent::open(&gate, "peer");
    // A grandchild that inherits the deafness and keeps the child's output open.
    let grandchild: u32 = agent.says("family").parse().unwrap();
    assert_eq!(gate.stop().0, Some(0));
    eventually("both are gone", || {
        (is_gone(peer.started()[0]) && is_gone(grandchild)).then_some(())
    });
}
