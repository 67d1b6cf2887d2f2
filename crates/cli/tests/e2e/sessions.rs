//! Programs that dial in, over real sockets: each file is one side of it.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{Gate, Home, eventually};

#[path = "sessions/bounded.rs"]
mod bounded;
#[path = "sessions/calls.rs"]
mod calls;
#[path = "sessions/classes.rs"]
mod classes;
#[path = "sessions/dropin.rs"]
mod dropin;
#[path = "sessions/flapping.rs"]
mod flapping;
#[path = "sessions/grants.rs"]
mod grants;
#[path = "sessions/hostile.rs"]
mod hostile;
#[path = "sessions/idle.rs"]
mod idle;
#[path = "sessions/lists.rs"]
mod lists;
#[path = "sessions/many.rs"]
mod many;
#[path = "sessions/modern.rs"]
mod modern;
#[path = "sessions/rebinding.rs"]
mod rebinding;
#[path = "sessions/registration.rs"]
mod registration;
#[path = "sessions/restart.rs"]
mod restart;
#[path = "sessions/rough.rs"]
mod rough;
#[path = "sessions/showcase.rs"]
mod showcase;
#[path = "sessions/storms.rs"]
mod storms;

/// The error code of a result that is one.
pub(crate) fn code(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result["_meta"]["call_id"].is_string(), "it does not name its rows: {result}");
    result["_meta"]["error_code"].as_str().unwrap_or_default()
}

/// The only text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// The tools that an agent sees, by name.
pub(crate) fn tools(agent: &Agent) -> Vec<Value> {
    let answer = agent.request("tools/list", &json!({}));
    answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

pub(crate) fn tool(agent: &Agent, name: &str) -> Option<Value> {
    tools(agent).into_iter().find(|tool| tool["name"] == name)
}

pub(crate) fn open(gate: &Gate) -> Agent {
    Agent::open(gate, "sessions")
}

/// Audit rows of sessions, as `what` and the session's id.
pub(crate) fn session_rows(home: &Home) -> Vec<(String, Value)> {
    rows_in(home, DATA)
}

const DATA: &str = ".local/share/toolgate";

fn rows_in(home: &Home, data: &str) -> Vec<(String, Value)> {
    let output = home.run(&["audit", "list", "--after", "0", "-o", "jsonl", "--data", data]);
    let rows = String::from_utf8(output.stdout).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_sessions = rows.filter(|row| row["kind"] == "session");
    of_sessions
        .map(|row| {
            let message = row["message"].as_str().unwrap_or_default();
            (message.split(':').next().unwrap_or_default().to_owned(), row["session_id"].clone())
        })
        .collect()
}

/// Waits until the audit has this row.
pub(crate) fn audited(home: &Home, what: &str) {
    audited_in(home, DATA, what);
}

pub(crate) fn audited_in(home: &Home, data: &str, what: &str) {
    eventually(&format!("the audit tells of `{what}`"), || {
        rows_in(home, data).iter().any(|(found, _)| found == what).then_some(())
    });
}
