//! Approvals of several processes on one data folder.

use std::process::Command;
use std::thread;

use super::code;
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::Peer;
use crate::run::Client;

const POLICY: &str = "version: '1'\ndefault: allow\ntools:\n  pid: { approve: { wait: 0s } }\n  \
                      echo: { approve: { wait: 60s } }\n";

/// `toolgate run` with a policy that holds `echo` and `pid`.
fn client(home: &Home, peer: &Peer) -> Client {
    client_as(home, peer, POLICY, |_| {})
}

fn client_as(home: &Home, peer: &Peer, text: &str, adapt: impl FnOnce(&mut Command)) -> Client {
    let [script, folder] = peer.arguments();
    let policy = home.path("policy.yaml");
    std::fs::write(&policy, text).unwrap();
    let policy = policy.to_str().unwrap();
    let words = ["-c", policy, "--name", "peer", "--", "sh", &script, &folder, "listing"];
    let mut client = Client::start_as(home, &words, adapt);
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

/// A client starts `run` in a folder of its own. People of the configuration of the gateway answer all
/// the same.
#[test]
fn people_of_the_configuration_answer_a_run_that_was_started_elsewhere() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let token = "a-token-of-a-person-0123456";
    let config = "people: [{ name: duty, token: env:DUTY, roles: [approver] }]";
    let gate = Gate::start_as(home, config, |command| {
        command.env("DUTY", token);
    });
    let elsewhere = gate.home.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut client = client_as(&gate.home, &peer, POLICY, |command| {
        command.current_dir(elsewhere);
    });
    let held = client.call("pid");
    let id = held["_meta"]["approval_id"].as_str().unwrap_or_else(|| panic!("{held}"));
    let duty = Api::with(&gate, token);
    duty.expect(200, "POST", &format!("approvals/{id}/approve"), "");
    assert_eq!(code(&client.call("pid")), "sent");
    assert_eq!(received(&peer, "pid"), 1);
}

/// Two `run` and the grant that they share: a limit of N admits N calls.
#[test]
fn a_limit_is_exact_across_processes() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let policy = "version: '1'\ndefault: deny\ntools:\n  pid: { limits: [{ counter: pids, max: 7, \
                  window: 30d, scope: grant }] }\n";
    let mut clients = [(); 2].map(|()| client_as(&home, &peer, policy, |_| {}));
    let admitted: usize = thread::scope(|scope| {
        let calls = clients.each_mut().map(|client| {
            scope.spawn(|| (0..10).filter(|_| code(&client.call("pid")) == "sent").count())
        });
        calls.map(|calls| calls.join().unwrap()).into_iter().sum()
    });
    assert_eq!((admitted, received(&peer, "pid")), (7, 7));
}
