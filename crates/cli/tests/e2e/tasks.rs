//! Tasks of an HTTP server that shows them to every caller: each grant has its own.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{Gate, Home, eventually};
use crate::upstream::read;

const TOKENS: [(&str, &str); 2] = [
    ("MINE", "token-of-the-grant-mine-0123456789"),
    ("OTHER", "token-of-the-grant-other-012345678"),
];

/// A server whose tasks outlive sessions; what it was asked.
struct Keeper {
    address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    received: Mutex<Vec<Value>>,
    /// The status of every task.
    status: Mutex<Option<&'static str>>,
    /// Whether calls of `slow` are answered.
    goes: (Mutex<bool>, Condvar),
}

impl Keeper {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::<State>::default();
        let all = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), Arc::clone(&all));
                thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { address, state }
    }

    fn received(&self, method: &str) -> Vec<Value> {
        let received = self.state.received.lock().unwrap();
        received.iter().filter(|message| message["method"] == method).cloned().collect()
    }

    /// How often a tool ran.
    fn ran(&self, tool: &str) -> usize {
        let calls = self.received("tools/call");
        calls.iter().filter(|message| message["params"]["name"] == tool).count()
    }

    fn set_status(&self, status: &'static str) {
        *self.state.status.lock().unwrap() = Some(status);
    }

    fn go(&self) {
        *self.state.goes.0.lock().unwrap() = true;
        self.state.goes.1.notify_all();
    }
}

fn serve(stream: &TcpStream, state: &State) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read(&mut reader) {
        let answer = answer(&head, &body, state);
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(head: &str, body: &str, state: &State) -> String {
    let empty = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    if !head.starts_with("POST") {
        return empty("405 Method Not Allowed");
    }
    let message: Value = serde_json::from_str(body).unwrap();
    if message.get("id").is_none() {
        return empty("202 Accepted");
    }
    let status = state.status.lock().unwrap().unwrap_or("working");
    let task = |id: &Value| json!({"taskId": id, "status": status, "ttl": null});
    let calls = {
        let mut record = state.received.lock().unwrap();
        record.push(message.clone());
        record.iter().filter(|message| message["method"] == "tools/call").count()
    };
    let named = &message["params"]["taskId"];
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "tasks": {"list": {}, "cancel": {}}},
            "serverInfo": {"name": "keeper", "version": "1"},
        }),
        "tools/call" => match message["params"]["name"].as_str().unwrap() {
            "numbered" => json!({"task": task(&json!(calls))}),
            "nameless" => json!({"task": {"status": "working"}}),
            "twofold" => json!({"task": task(&json!("a")), "taskId": "b", "status": "working"}),
            "flat" => json!({"resultType": "task", "status": "working"}),
            "slow" => {
                let going = state.goes.0.lock().unwrap();
                drop(state.goes.1.wait_while(going, |goes| !*goes).unwrap());
                json!({"task": task(&json!(format!("task-{calls}")))})
            }
            _ => json!({"task": task(&json!(format!("task-{calls}")))}),
        },
        "tasks/list" => {
            let all = (1..=calls).map(|number| task(&json!(format!("task-{number}"))));
            json!({"tasks": all.collect::<Vec<_>>()})
        }
        "tasks/get" => task(named),
        "tasks/cancel" => json!({"taskId": named, "status": "cancelled"}),
        _ => Value::Null,
    };
    let mut answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    if result.is_null() {
        answer = json!({"jsonrpc": "2.0", "id": message["id"],
            "error": {"code": -32601, "message": "no such method"}});
    }
    let answer = answer.to_string();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    )
}

/// Tools of which a grant may have one call in flight.
const SINGLE: [&str; 6] = ["work", "numbered", "nameless", "twofold", "flat", "slow"];

fn gate(keeper: &Keeper) -> Gate {
    gate_in(Home::new(), keeper)
}

fn gate_in(home: Home, keeper: &Keeper) -> Gate {
    let single = SINGLE.map(|tool| format!("{tool}: {{ concurrency: {{ max: 1 }} }}")).join(", ");
    let config = format!(
        "policies:\n  one: {{ version: '1', default: allow, tools: {{ {single} }} }}\n\
         grants:\n  - {{ label: mine, token: env:MINE, policy: one }}\n  \
         - {{ label: other, token: env:OTHER, policy: one }}\n\
         servers:\n  keeper: {{ url: 'http://{}/mcp' }}\n",
        keeper.address
    );
    Gate::start_as(home, &config, |command| {
        command.envs(TOKENS);
    })
}

fn open(gate: &Gate) -> Agent {
    Agent::open_with(gate, "keeper", TOKENS[0].1)
}

/// Whether a call was refused because another one is in flight.
fn is_in_flight(agent: &Agent, tool: &str) -> bool {
    agent.call(tool, &json!({}))["_meta"]["rule"] == format!("/tools/{tool}/concurrency")
}

/// However many tasks a grant starts, none of them makes room for a call that its limit forbids.
#[test]
fn no_number_of_tasks_frees_a_place() {
    let keeper = Keeper::start();
    let gate = gate(&keeper);
    let agent = open(&gate);
    agent.call("work", &json!({}));
    let refused = (0..10_001).find_map(|_| {
        let answer = agent.call("side", &json!({}));
        (answer["isError"] == true).then_some(answer)
    });
    let refused = refused.expect("open tasks of a grant are bounded");
    assert_eq!(refused["_meta"]["error_code"], "upstream_unavailable", "{refused}");
    assert_eq!(refused["_meta"]["effect"], "not_started", "{refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("tasks/cancel"));
    let other = Agent::open_with(&gate, "keeper", TOKENS[1].1);
    assert!(other.call("side", &json!({}))["task"].is_object(), "others have their own share");
    agent.call("work", &json!({}));
    assert_eq!(keeper.ran("work"), 1);
}

#[test]
fn a_task_without_a_usable_id_keeps_its_place() {
    let keeper = Keeper::start();
    let gate = gate(&keeper);
    let agent = open(&gate);
    for tool in ["numbered", "nameless", "twofold", "flat"] {
        let call = json!({"name": tool, "arguments": {}, "task": {}});
        let answer = agent.request("tools/call", &call);
        let text = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(text.contains("without an id") && text.contains("was sent"), "{text}");
        assert!(is_in_flight(&agent, tool), "{tool}");
        assert_eq!(keeper.ran(tool), 1, "{tool}");
    }
}

/// An agent session that ends while the server works on its call frees nothing, neither before the
/// server has created the task nor after.
#[test]
fn a_call_whose_agent_has_left_keeps_its_place() {
    let keeper = Keeper::start();
    let gate = gate(&keeper);
    let agent = open(&gate);
    let left = agent.begin_call("slow", &json!({}));
    eventually("the call is at the server", || (keeper.ran("slow") == 1).then_some(()));
    assert_eq!(agent.delete_with(agent.authorization()).status, 200);
    drop(left);
    let again = open(&gate);
    assert!(is_in_flight(&again, "slow"), "the server works on it");
    keeper.go();
    let answered = r#"toolgate_upstream_requests_total{server="keeper",result="answered"} 1"#;
    eventually("the answer has arrived", || {
        let metrics = crate::wire::get(&gate.admin(), "/metrics").body;
        metrics.contains(answered).then_some(())
    });
    again.call("side", &json!({}));
    assert!(is_in_flight(&again, "slow"), "its task works");
    assert_eq!(keeper.ran("slow"), 1);
}

/// A task that its server continues stays in flight after toolgate was stopped or killed.
#[test]
fn a_task_is_in_flight_over_restarts() {
    for signal in [Signal::TERM, Signal::KILL] {
        let keeper = Keeper::start();
        let mut gate = gate(&keeper);
        let agent = open(&gate);
        let made = agent.call("work", &json!({}));
        let task = made["task"]["taskId"].as_str().unwrap().to_owned();
        // The task is recorded after the agent has its answer; a kill in between would lose it.
        let database = gate.home.path(".local/share/toolgate").join("toolgate.db");
        let database =
            Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        eventually("the task is recorded", || {
            let tasks = database.query_row("SELECT count(*) FROM task", [], |row| row.get(0));
            (tasks == Ok(1)).then_some(())
        });
        drop(database);
        gate.signal(signal);
        gate.wait();
        let gate = gate_in(gate.into_home(), &keeper);
        let agent = open(&gate);
        assert!(is_in_flight(&agent, "work"), "{signal:?}");
        let about = json!({"taskId": task});
        agent.request("tasks/get", &about);
        assert!(is_in_flight(&agent, "work"), "it still works");
        assert_eq!(keeper.ran("work"), 1);
        keeper.set_status("completed");
        agent.request("tasks/get", &about);
        eventually("the place is free again", || {
            agent.call("work", &json!({}))["task"].is_object().then_some(())
        });
        assert_eq!(keeper.ran("work"), 2);
        let rows = gate.into_home();
        let printed = rows.run(&["audit", "verify"]);
        assert!(printed.status.success(), "{printed:?}");
    }
}

#[test]
fn a_grant_has_its_own_tasks_and_no_others() {
    let keeper = Keeper::start();
    let gate = gate(&keeper);
    let [mine, other] = TOKENS.map(|(_, token)| Agent::open_with(&gate, "keeper", token));
    let create = |agent: &Agent| {
        let made = agent.call("work", &json!({}));
        made["task"]["taskId"].as_str().map(str::to_owned)
    };
    let shown = create(&mine).unwrap();
    let others = create(&other).unwrap();
    assert!(!shown.contains("task") && shown != others);
    let list = |agent: &Agent| {
        let answer = agent.request("tasks/list", &json!({}));
        let tasks = answer["result"]["tasks"].as_array().unwrap().clone();
        tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(&mine), std::slice::from_ref(&shown));
    assert_eq!(list(&other), std::slice::from_ref(&others));
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        for id in [&*shown, "task-1", "task-2"] {
            let refused = other.request(method, &json!({"taskId": id}));
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
        assert!(keeper.received(method).is_empty(), "{method} reached the server");
    }
    // In flight until its task ends, whatever agent session asks.
    assert!(create(&mine).is_none(), "one at a time");
    let again = Agent::open_with(&gate, "keeper", TOKENS[0].1);
    assert!(create(&again).is_none(), "also in another agent session");
    let got = again.request("tasks/get", &json!({"taskId": shown}));
    assert_eq!(got["result"]["taskId"], *shown, "{got}");
    let ended = again.request("tasks/cancel", &json!({"taskId": shown}));
    assert_eq!(ended["result"]["status"], "cancelled", "{ended}");
    assert_eq!(keeper.received("tasks/cancel")[0]["params"]["taskId"], "task-1");
    eventually("the place is free again", || create(&mine));
    assert!(create(&other).is_none(), "the other's task still runs");
}
