//! Tasks of an HTTP server that keeps them for whoever asks: each grant has its own.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{Gate, Home};
use crate::upstream::read;

const TOKENS: [(&str, &str); 2] = [
    ("MINE", "token-of-the-grant-mine-0123456789"),
    ("OTHER", "token-of-the-grant-other-012345678"),
];

/// A server whose tasks outlive sessions; what it was asked.
struct Keeper {
    address: String,
    heard: Arc<Mutex<Vec<Value>>>,
}

impl Keeper {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, heard) = (stream.unwrap(), Arc::clone(&all));
                thread::spawn(move || serve(&stream, &heard));
            }
        });
        Self { address, heard }
    }

    fn heard(&self, method: &str) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|message| message["method"] == method).cloned().collect()
    }
}

fn serve(stream: &TcpStream, heard: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read(&mut reader) {
        let answer = answer(&head, &body, heard);
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(head: &str, body: &str, record: &Mutex<Vec<Value>>) -> String {
    let empty = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    if !head.starts_with("POST") {
        return empty("405 Method Not Allowed");
    }
    let message: Value = serde_json::from_str(body).unwrap();
    if message.get("id").is_none() {
        return empty("202 Accepted");
    }
    let task = |id: &Value| json!({"taskId": id, "status": "working", "ttl": null});
    let calls = {
        let mut record = record.lock().unwrap();
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
        "tools/call" => json!({"task": task(&json!(format!("task-{calls}")))}),
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

fn gate(keeper: &Keeper) -> Gate {
    let config = format!(
        "policies:\n  one: {{ version: '1', default: allow, tools: {{ work: {{ concurrency: {{ max: 1 }} }} }} }}\n\
         grants:\n  - {{ label: mine, token: env:MINE, policy: one }}\n  \
         - {{ label: other, token: env:OTHER, policy: one }}\n\
         servers:\n  keeper: {{ url: 'http://{}/mcp' }}\n",
        keeper.address
    );
    Gate::start_as(Home::new(), &config, |command| {
        command.envs(TOKENS);
    })
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
        assert!(keeper.heard(method).is_empty(), "{method} reached the server");
    }
    // In flight until its task ends, whatever agent session asks.
    assert!(create(&mine).is_none(), "one at a time");
    let again = Agent::open_with(&gate, "keeper", TOKENS[0].1);
    assert!(create(&again).is_none(), "also in another agent session");
    let got = again.request("tasks/get", &json!({"taskId": shown}));
    assert_eq!(got["result"]["taskId"], *shown, "{got}");
    let ended = again.request("tasks/cancel", &json!({"taskId": shown}));
    assert_eq!(ended["result"]["status"], "cancelled", "{ended}");
    assert_eq!(keeper.heard("tasks/cancel")[0]["params"]["taskId"], "task-1");
    crate::gate::eventually("the place is free again", || create(&mine));
    assert!(create(&other).is_none(), "the other's task still runs");
}
