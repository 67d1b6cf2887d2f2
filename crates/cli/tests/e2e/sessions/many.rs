//! Many sessions with many tools and many agents: every call ends where it belongs.

use std::thread;

use serde_json::json;
use toolgate_testkit::fleet::{self, FleetOptions};

use super::{code, open, text, tools};
use crate::gate::Gate;

const SESSIONS: usize = 200;
const TOOLS: usize = 50;
/// Tools of toolgate itself.
const BUILT_INS: usize = 3;
const AGENTS: usize = 64;
/// Calls of each agent.
const CALLS: usize = 25;
/// Bases that the sessions are spread over.
const BASES: usize = 20;

#[test]
fn every_call_of_every_agent_is_answered_by_the_session_it_named() {
    let gate = Gate::start("");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let url = gate.ready()["sessions"].as_str().unwrap().to_owned();
    let options = FleetOptions { url, sessions: SESSIONS, tools: TOOLS, bases: BASES };
    let mut fleet = runtime.block_on(fleet::start_fleet(&options)).unwrap();
    let before = gate.resident_kib();
    thread::scope(|scope| {
        for agent in 0..AGENTS {
            let gate = &gate;
            scope.spawn(move || calls_of(gate, agent));
        }
    });
    // What is under way is small; what stays afterwards is not a multiple of it.
    let grown = gate.resident_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more after {} calls", AGENTS * CALLS);
    let list = open(&gate).call("session_list", &json!({}));
    let sessions = list["structuredContent"]["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), SESSIONS);
    for session in sessions {
        let busy = (&session["inflight"], &session["queued"], &session["state"]);
        assert_eq!(busy, (&json!(0), &json!(0), &json!("active")), "{session}");
    }
    // No socket was lost.
    assert!(
        runtime.block_on(async { futures_util::poll!(std::pin::pin!(fleet.ended())) }).is_pending()
    );
}

fn calls_of(gate: &Gate, agent: usize) {
    let number = agent;
    let agent = open(gate);
    let list = tools(&agent);
    assert_eq!(list.len(), TOOLS + BUILT_INS);
    let schema = &list.iter().find(|tool| tool["name"] == "tool_7").unwrap()["inputSchema"];
    assert!(schema["required"].as_array().unwrap().contains(&json!("session_id")), "{schema}");
    assert!(schema["properties"]["session_id"].get("enum").is_none(), "too many to be named");
    for call in 0..CALLS {
        let mark = number * CALLS + call;
        let (session, tool) =
            (fleet::uid(mark * 7 % SESSIONS), fleet::tool(1 + mark % (TOOLS - 1)));
        let words = format!("Ёлка {mark}");
        let result = agent.call(&tool, &json!({"session_id": session, "text": words}));
        let expected = fleet::signed(&session, &tool, &json!({"text": words}).to_string());
        assert_eq!(text(&result), expected, "{result}");
    }
    let unclear = agent.call("echo", &json!({"infobase_name": "base-3"}));
    assert_eq!(code(&unclear), "session_id_required");
    let candidates = unclear["_meta"]["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), SESSIONS / BASES, "{unclear}");
}
