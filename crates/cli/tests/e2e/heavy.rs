//! One caller cannot stop another: heavy decisions, heavy tests of policies and storms of denials
//! hold up neither other grants nor a freeze.
//!
//! The bounds are far above what things take, and far below what they took when one could hold up
//! the other.

use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home};
use crate::peer::Peer;

const HEAVY: &str = "a-token-of-an-agent-with-large-calls";
const LIGHT: &str = "a-token-of-an-agent-with-small-calls";

/// What must answer within a second has this long on a machine that does much else.
const SOON: Duration = Duration::from_secs(5);

fn numbers(count: usize, from: usize) -> String {
    let mut list = String::new();
    for n in from..from + count {
        write!(list, "{}{n}", if n == from { "" } else { "," }).unwrap();
    }
    list
}

/// A gateway with a peer and two grants: `heavy` under this policy, `light` under one that allows.
fn gate(policy: &str) -> (Gate, Peer) {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    fs::write(home.path("heavy.yaml"), policy).unwrap();
    let config = format!(
        "policies:\n  heavy: {{ file: heavy.yaml }}\n  open: {{ version: '1', default: allow }}\n\
         grants:\n  - {{ label: heavy, token: 'env:HEAVY', policy: heavy }}\n  \
         - {{ label: light, token: 'env:LIGHT', policy: open }}\nservers:\n{}",
        peer.entry("", "")
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.env("HEAVY", HEAVY).env("LIGHT", LIGHT);
    });
    (gate, peer)
}

/// A body of 3.7 MB that asks for a list of numbers.
fn large_call() -> String {
    let ids = numbers(460_000, 10_000_000);
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"ids":[{ids}]}}}}}}"#
    )
}

fn froze_soon(gate: &Gate, what: &Value) {
    let begun = Instant::now();
    Api::admin(gate).expect(201, "POST", "freeze", &what.to_string());
    assert!(begun.elapsed() < SOON, "a freeze took {:?}", begun.elapsed());
}

#[test]
fn heavy_decisions_do_not_delay_others() {
    let wanted = numbers(1_500, 1);
    let policy = format!(
        "version: '1'\ndefault: deny\ntools:\n  echo:\n    deny_if:\n    - conditions: [{{ path: 'args.ids[any]', \
         op: in, value: [{wanted}] }}]\n"
    );
    let (gate, _peer) = gate(&policy);
    let (heavy, light) =
        (Agent::open_with(&gate, "peer", HEAVY), Agent::open_with(&gate, "peer", LIGHT));
    let body = large_call();
    thread::scope(|scope| {
        let large: Vec<_> = (0..4).map(|_| scope.spawn(|| heavy.send(&body))).collect();
        for _ in 0..20 {
            let begun = Instant::now();
            let printed = light.call("echo", &json!({}));
            assert_eq!(printed["_meta"]["error_code"], Value::Null, "{printed}");
            assert!(begun.elapsed() < SOON, "a call took {:?}", begun.elapsed());
        }
        froze_soon(&gate, &json!({"grant": "light"}));
        for answer in large {
            let reply = answer.join().unwrap();
            // 460,000 elements are more than a decision may compare.
            assert!(reply.body.contains("100,000 comparisons"), "{}", reply.body);
            assert!(reply.body.contains("/tools/echo/deny_if/0"), "{}", reply.body);
        }
    });
    let rows = Api::admin(&gate).get("audit?limit=1000&grant=light");
    let refused = rows["items"].as_array().unwrap().iter().filter(|row| row["kind"] == "denied");
    assert_eq!(refused.count(), 0);
}

#[test]
fn heavy_tests_of_a_policy_hold_up_no_revocation() {
    let (gate, _peer) = gate("version: '1'\ndefault: allow\n");
    let api = Api::admin(&gate);
    let made = api.expect(201, "POST", "grants", r#"{"label":"leaving","policy":"open"}"#);
    let entry = |n| format!("    - conditions: [{{ path: args.x, op: regex, value: 'a{n}+b' }}]\n");
    let entries = (0..300).map(entry).collect::<Vec<_>>().concat();
    let tests = "  - { call: { tool: t, args: { x: aaaa }, times: 90000 }, expect: allow }\n";
    let tests = tests.repeat(10);
    let document = format!(
        "version: '1'\ndefault: allow\ntools:\n  t:\n    deny_if:\n{entries}tests:\n{tests}"
    );
    thread::scope(|scope| {
        let puts: Vec<_> = (0..4)
            .map(|n| {
                let (gate, document) = (&gate, &document);
                let put =
                    move || Api::admin(gate).ask("PUT", &format!("policies/heavy-{n}"), document);
                scope.spawn(put)
            })
            .collect();
        let begun = Instant::now();
        let id = made["id"].as_str().unwrap();
        api.expect(204, "DELETE", &format!("grants/{id}"), "");
        assert!(begun.elapsed() < SOON, "a revocation took {:?}", begun.elapsed());
        froze_soon(&gate, &json!({"all": true}));
        for put in puts {
            let reply = put.join().unwrap();
            assert_eq!(reply.status, 422, "{reply:?}");
            assert!(reply.body.contains("test_failed"), "{}", reply.body);
            assert!(reply.body.contains("take too long"), "{}", reply.body);
        }
    });
}

/// One body of tens of thousands of calls takes a grant's own places before the store, no others.
#[test]
fn a_flood_of_one_grant_leaves_room_for_others() {
    let (gate, peer) = gate("version: '1'\ndefault: deny\n");
    let flood = Agent::open_at_as_with(&gate, "/mcp/peer", "2025-03-26", HEAVY);
    let light = Agent::open_with(&gate, "peer", LIGHT);
    let member = |n: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"t{n}","arguments":{{}}}}}}"#
        )
    };
    let members: Vec<String> = (0..25_000).map(member).collect();
    let body = format!("[{}]", members.join(","));
    thread::scope(|scope| {
        let answer = scope.spawn(|| flood.send(&body));
        for _ in 0..20 {
            let printed = light.call("echo", &json!({}));
            assert_eq!(printed["_meta"]["error_code"], Value::Null, "{printed}");
        }
        froze_soon(&gate, &json!({"grant": "light"}));
        let reply = answer.join().unwrap();
        assert!(!reply.body.contains("not_audited"), "calls of the flood itself were not audited");
    });
    let called = peer.received().iter().filter(|it| it["method"] == "tools/call").count();
    assert_eq!(called, 20);
}

/// The size of a data folder's database, with what waits beside it.
fn database(gate: &Gate) -> u64 {
    let folder = gate.home.path(".local/share/toolgate");
    let size = |name: &str| fs::metadata(folder.join(name)).map_or(0, |found| found.len());
    size("toolgate.db") + size("toolgate.db-wal")
}

#[test]
fn denied_calls_fill_neither_disk_nor_memory() {
    let (gate, peer) = gate("version: '1'\ndefault: deny\n");
    let heavy = Agent::open_with(&gate, "peer", HEAVY);
    let memory = || {
        let status = fs::read_to_string(format!("/proc/{}/status", gate.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
    };
    let (disk, resident) = (database(&gate), memory());
    let name = "n".repeat(3_900_000);
    for _ in 0..40 {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{}}}}}}"#
        );
        let reply = heavy.send(&body);
        assert!(reply.body.contains("error"), "{}", reply.body.get(..200).unwrap_or(&reply.body));
    }
    let grown = database(&gate) - disk;
    assert!(grown < 4 << 20, "the database grew by {grown} bytes");
    let grown = memory().saturating_sub(resident);
    assert!(grown < 100, "the process grew by {grown} MiB");

    // Made-up names: at most a thousand rows, and the sum is exact.
    let mut denied = 0;
    for n in 0..1_400 {
        let refused = heavy.call(&format!("made_up_{n}"), &json!({}));
        assert_eq!(refused["_meta"]["error_code"], "policy_denied");
        denied += 1;
    }
    froze_soon(&gate, &json!({"all": true}));
    let data = gate.home.path(".local/share/toolgate");
    let mut gate = gate;
    assert_eq!(gate.stop().0, Some(0));
    let listed = gate.home.run(&[
        "audit", "list", "--after", "0", "-o", "jsonl", "--limit", "1000", "--grant", "heavy",
    ]);
    let first = String::from_utf8(listed.stdout).unwrap();
    let last = first.lines().last().unwrap();
    let after = serde_json::from_str::<Value>(last).unwrap()["seq"].to_string();
    let listed = gate.home.run(&[
        "audit", "list", "-o", "jsonl", "--limit", "1000", "--grant", "heavy", "--after", &after,
    ]);
    let rest = String::from_utf8(listed.stdout).unwrap();
    let rows: Vec<Value> =
        first.lines().chain(rest.lines()).map(|line| serde_json::from_str(line).unwrap()).collect();
    let made_up: Vec<&Value> = rows
        .iter()
        .filter(|row| row["kind"] == "denied" && row["rule"] == "(default deny)")
        .filter(|row| row["tool"].as_str().is_some_and(|tool| tool.starts_with("made_up")))
        .collect();
    let counted: u64 = rows.iter().filter_map(|row| row["count"].as_u64()).sum();
    assert!(made_up.len() <= 2_000, "{} rows", made_up.len());
    assert!(made_up.len() as u64 + counted >= denied, "{} and {counted}", made_up.len());
    assert!(rows.iter().all(|row| row.to_string().len() < 8_192), "a row is long");
    let verified = gate.home.run(&["audit", "verify", "--data", data.to_str().unwrap()]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    assert!(peer.received().iter().all(|message| message["method"] != "tools/call"));
}
