//! Policies that change under load, every third of them invalid: no call fails, and each
//! is recorded under exactly one policy that was active.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use toolgate_policy::{Known, Policy};

use crate::agent::{Agent, Said};
use crate::audited::policy_hashes;
use crate::gate::{Gate, Home, LISTEN};
use crate::number;
use crate::upstream::Upstream;

const CHANGES: u64 = 60;
const CLIENTS: usize = 4;

/// The document of one version; `probe` identifies it.
fn document(version: u64) -> String {
    format!(
        "version: '1'\ndefault: deny\ntools:\n  \
         work: {{ limits: [{{ counter: work, window: 3650d, max: {} }}] }}\n  \
         probe: {{ action: deny, reason: this is v{version}. }}\n",
        1_000_000_000 + version
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_is_under_exactly_one_policy_while_they_change() {
    let changes = number("TOOLGATE_RELOADS").unwrap_or(CHANGES);
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start(folder.path(), Box::new(|_| {})).await;
    let file = folder.path().join("policy.yaml");
    let write = |text: &str| {
        let new = folder.path().join("policy.new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &file).unwrap();
    };
    write(&document(0));
    let home = Home::new();
    let url = &upstream.url;
    home.configure(&format!("version: 1\n{LISTEN}\nservers:\n  work: {{ url: '{url}' }}\n"));
    let mut command = home.command(&["serve", "--ready-json", "--policy"]);
    command.arg(&file).arg("--data").arg(folder.path().join("data"));
    let mut gate =
        Gate::run(home, command).unwrap_or_else(|(status, log)| panic!("{status} {log}"));

    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (address, stop, done) = (gate.mcp(), Arc::clone(&stop), Arc::clone(&done));
        clients.spawn(async move {
            let mut agent = Agent::open(&address, "/mcp/work", None).await.unwrap();
            while !stop.load(Ordering::SeqCst) {
                let mark = format!("{client}");
                let printed = agent.call("work", &mark).await.unwrap();
                assert_eq!(printed, Said::Done(mark), "a call failed");
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    let mut probe = Agent::open(&gate.mcp(), "/mcp/work", None).await.unwrap();
    for version in 1..=changes {
        if version % 3 == 0 {
            write("version: '1'\ndefault: alow\n");
        }
        write(&document(version));
        until_in_force(&mut probe, version, &gate).await;
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert_eq!(gate.stop().0, Some(0));

    let known: HashSet<String> = (0..=changes)
        .map(|version| {
            let policy = Policy::load("policy", &document(version), &Known::default()).policy;
            policy.unwrap().hash().to_owned()
        })
        .collect();
    assert_eq!(known.len() as u64, changes + 1);
    let mut seen: HashMap<String, u64> = HashMap::new();
    for hash in policy_hashes(&folder.path().join("data")) {
        let hash = hash.expect("every call has the hash of its policy");
        assert!(known.contains(&hash), "{hash} was never a policy");
        *seen.entry(hash).or_default() += 1;
    }
    let calls = done.load(Ordering::SeqCst);
    assert_eq!(seen.values().sum::<u64>(), calls, "one intent for each call");
    println!("{changes} changes, {calls} calls, {} policies among them", seen.len());
    assert!(seen.len() as u64 > changes / 2, "most policies had calls: {}", seen.len());
}

async fn until_in_force(probe: &mut Agent, version: u64, gate: &Gate) {
    let deadline = tokio::time::Instant::now() + Duration::from_mins(2);
    loop {
        let Said::Refused(code, result) = probe.call("probe", "x").await.unwrap() else {
            panic!("what is denied was sent")
        };
        assert_eq!(code, "policy_denied");
        if result["content"][0]["text"].as_str().unwrap().contains(&format!("v{version}.")) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "v{version} never: {}", gate.log.text());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
