//! Approvals of several processes on one data folder.

use std::thread;

use super::code;
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::Peer;
use crate::run::Client;

/// `toolgate run` with a policy that holds `echo` and `pid`.
fn client(home: &Home, peer: &Peer) -> Client {
    let [script, folder] = peer.arguments();
    let policy = home.path("policy.yaml");
    let text = "version: '1'\ndefault: allow\ntools:\n  pid: { approve: { wait: 0s } }\n  \
                echo: { approve: { wait: 60s } }\n";
    std::fs::write(&policy, text).unwrap();
    let policy = policy.to_str().unwrap();
    let words = ["-c", policy, "--name", "peer", "--", "sh", &script, &folder, "listing"];
    let mut client = Client::start(home, &words);
    client.open();
    client
}

fn received(peer: &Peer, tool: &str) -> usize {
    peer.received().iter().filter(|message| message["params"]["name"] == tool).count()
}

/// The approval of a call in one process is answered in another; of two processes that ask for it,
/// one gets it.
#[test]
fn an_approval_admits_one_call_of_all_processes() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let gate = Gate::start_in(home, "");
    let api = Api::admin(&gate);
    let (mut one, mut two) = (client(&gate.home, &peer), client(&gate.home, &peer));
    for round in 1..=5 {
        let first = one.call("pid");
        assert_eq!(code(&first), "approval_required", "{first}");
        let id = first["_meta"]["approval_id"].as_str().unwrap();
        assert_eq!(two.call("pid")["_meta"]["approval_id"], id);
        api.expect(200, "POST", &format!("approvals/{id}/approve"), "");
        let mut ends = thread::scope(|scope| {
            let calls = [scope.spawn(|| one.call("pid")), scope.spawn(|| two.call("pid"))];
            calls.map(|call| code(&call.join().unwrap()).to_owned())
        });
        ends.sort_unstable();
        assert_eq!(ends, ["approval_required", "sent"], "{round}");
        assert_eq!(received(&peer, "pid"), round);
        // The other one was held anew; the next round finds that approval.
    }
}

/// A call that waits in one process is sent when a person answers in another.
#[test]
fn a_call_waits_for_an_answer_in_another_process() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let gate = Gate::start_in(home, "");
    let api = Api::admin(&gate);
    let mut one = client(&gate.home, &peer);
    let call = thread::spawn(move || one.call("echo"));
    let id = eventually("an approval is pending", || {
        let first = api.get("approvals?state=pending")["items"][0]["id"].clone();
        first.as_str().map(str::to_owned)
    });
    assert_eq!(received(&peer, "echo"), 0);
    api.expect(200, "POST", &format!("approvals/{id}/approve"), "");
    assert_eq!(code(&call.join().unwrap()), "sent");
    assert_eq!(received(&peer, "echo"), 1);
}
