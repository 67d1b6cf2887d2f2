//! The same over stdio: a child of each era, before agents of each era.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{Gate, Home, eventually};
use crate::recorder::{ERAS, Era};
use crate::sessionless::{Sessionless, last};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/executes.sh");

/// How a child can end a call that it has executed, by the names of its tools: every error code of
/// servers, an error about sessions, half a message, no message, the end of its output, its own end.
fn endings() -> Vec<String> {
    let codes = (32_000..=32_022).map(|code| format!("code{code}"));
    let rest = ["code32600", "code32601", "session", "half", "words", "eof", "crash", "leave"];
    codes.chain(rest.map(str::to_owned)).collect()
}

enum Caller {
    Sessionful(Agent),
    Sessionless(Sessionless),
}

impl Caller {
    fn open(gate: &Gate, era: Era) -> Self {
        match era {
            Era::Sessionful => Self::Sessionful(Agent::open(gate, "child")),
            Era::Sessionless => Self::Sessionless(Sessionless::new(gate, "/mcp/child")),
        }
    }

    /// The answer to a call.
    fn call(&self, tool: &str) -> Value {
        let tool = format!("x_{tool}");
        match self {
            Self::Sessionful(agent) => {
                agent.request("tools/call", &json!({"name": tool, "arguments": {}}))
            }
            Self::Sessionless(client) => last(&client.call(&tool, "", json!({"arguments": {}}))),
        }
    }
}

fn executions(folder: &Path, tool: &str) -> usize {
    let executed = fs::read_to_string(folder.join("executed")).unwrap_or_default();
    executed.lines().filter(|line| *line == tool).count()
}

fn each_is_executed_once(server: Era, agent: Era) {
    let home = Home::new();
    let (folder, file) = (home.path("child"), home.path("policy.yaml"));
    fs::create_dir(&folder).unwrap();
    let mut policy = "version: '1'\ndefault: deny\ntools:\n  x_ok: { action: allow }\n".to_owned();
    for tool in endings() {
        writeln!(
            policy,
            "  x_{tool}: {{ action: allow, limits: [{{ counter: {tool}, max: 1, window: hour, scope: grant }}] }}"
        )
        .unwrap();
    }
    fs::write(&file, policy).unwrap();
    let era = format!("{server:?}").to_lowercase();
    let config = format!(
        "servers:\n  child: {{ command: sh, args: ['{SCRIPT}', '{}', {era}], timeout: 3s }}\n",
        folder.display()
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.arg("--policy").arg(file);
    });
    let caller = Caller::open(&gate, agent);
    let is_up = || {
        eventually("the server answers", || {
            caller.call("ok")["result"]["content"].as_array()?.is_empty().then_some(())
        });
    };
    for tool in endings() {
        let row = format!("{server:?} server, {agent:?} agent, {tool}");
        is_up();
        let first = caller.call(&tool).to_string();
        assert!(!first.contains("Nothing was sent"), "{row}: {first}");
        assert!(!first.contains("not_started"), "{row}: {first}");
        let second = caller.call(&tool);
        assert_eq!(second["result"]["_meta"]["error_code"], "rate_limited", "{row}: {second}");
        assert_eq!(executions(&folder, &tool), 1, "{row}");
    }
    is_up();
    for tool in endings() {
        assert_eq!(executions(&folder, &tool), 1, "{server:?} {agent:?} {tool}: written again");
    }
}

#[test]
fn what_a_child_has_executed_is_counted_and_never_written_again() {
    thread::scope(|scope| {
        for server in ERAS {
            for agent in ERAS {
                scope.spawn(move || each_is_executed_once(server, agent));
            }
        }
    });
}
