//! Side doors: messages that do not look like calls. What the servers received decides.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_testkit::legacy::LegacyServer;

use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home};
use crate::peer::Peer;
use crate::program::{Card, Program};
use crate::recorder::{Era, Recorder};
use crate::sessionless::Sessionless;
use crate::upstream::Upstream;

#[path = "side_doors/probes.rs"]
mod probes;

const DENY: &str = "version: '1'\ndefault: deny\n";
const ALLOW: &str = "version: '1'\ndefault: allow\n";
/// Allows one tool that no probe names, so that children are started.
const ALMOST: &str = "version: '1'\ndefault: deny\ntools: { spare: { action: allow } }\n";
const EXECUTES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/executes.sh");
/// One server of each transport and era, all servers, and the programs that dial in.
const PATHS: [&str; 7] =
    ["/mcp/files", "/mcp/web", "/mcp/old", "/mcp/newer", "/mcp/newborn", "/mcp", "/mcp/sessions"];

/// Whether a message may reach a server without a permit.
fn is_open(message: &Value) -> bool {
    match message["method"].as_str() {
        Some(method) if message.get("id").is_some() => probes::CLOSED.contains(&method),
        Some(method) => method.starts_with("notifications/"),
        // An answer would be one to a question, and no server here has asked any.
        None => false,
    }
}

struct Servers {
    gate: Gate,
    /// Over stdio: a sessionful one, and the folder of a sessionless one.
    peer: Peer,
    newborn: PathBuf,
    /// Over streamable HTTP: a sessionful and a sessionless one.
    web: Upstream,
    newer: Recorder,
    /// Over HTTP+SSE.
    old: LegacyServer,
}

fn servers(document: &str) -> Servers {
    let home = Home::new();
    let (peer, web) = (Peer::new(&home, "files"), Upstream::start());
    let (old, newer) = (LegacyServer::start().unwrap(), Recorder::start(Era::Sessionless));
    let (file, newborn) = (home.path("policy.yaml"), home.path("newborn"));
    fs::write(&file, document).unwrap();
    fs::create_dir(&newborn).unwrap();
    let config = format!(
        "sessions: {{ ws_ping_timeout_ms: 3600000 }}\nservers:\n{}{}  web: {{ url: 'http://{}' }}\n  old: {{ url: '{}', type: sse }}\n  \
         newborn: {{ command: sh, args: ['{EXECUTES}', '{}', sessionless] }}\n",
        peer.entry("listing", ""),
        newer.entry("newer", ""),
        web.address,
        old.url(),
        newborn.display()
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.arg("--policy").arg(file);
    });
    Servers { gate, peer, newborn, web, newer, old }
}

impl Servers {
    /// Every message that any server received. One that is not JSON is a string.
    fn received(&self) -> Vec<Value> {
        let read = |body: &str| serde_json::from_str(body).unwrap_or_else(|_| body.into());
        let children = fs::read_to_string(self.newborn.join("heard")).unwrap_or_default();
        let remote = self.web.requests().into_iter().chain(self.old.requests());
        let bodies = remote.map(|request| request.rsplit("\r\n").next().unwrap().to_owned());
        let bodies = bodies.filter(|body| !body.is_empty());
        let mut received: Vec<Value> = self.peer.received();
        received.extend(children.lines().map(read));
        received.extend(bodies.map(|body| read(&body)));
        received.extend(self.newer.received().into_iter().map(|received| received.message));
        received
    }

    #[track_caller]
    fn received_nothing_beyond_the_list(&self) {
        let beyond: Vec<_> = self.received().into_iter().filter(|one| !is_open(one)).collect();
        assert_eq!(beyond, Vec::<Value>::new());
    }
}

fn list(client: &Sessionless) {
    let params = json!({"_meta": client.meta()});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
    let reply = client.begin(&probes::headers("tools/list"), &body.to_string()).reply();
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// Tries every probe at every endpoint, in both eras; whether freeze-all comes before the probes.
fn no_probe_reaches_a_server(document: &str, is_frozen: bool) {
    let all = servers(document);
    let mut program = Program::register(&all.gate, &Card::new("u1", "pid"));
    let mut agents = Vec::new();
    for version in ["2025-03-26", "2025-11-25"] {
        for path in PATHS {
            agents.push(Agent::open_at(&all.gate, path, version).unwrap());
        }
    }
    let clients = PATHS.map(|path| Sessionless::new(&all.gate, path));
    for client in &clients {
        list(client);
    }
    if is_frozen {
        Api::admin(&all.gate).expect(201, "POST", "freeze", r#"{"all":true}"#);
    }
    let probes = probes::all("{}");
    assert!(probes.len() >= 254, "{} probes", probes.len());
    for agent in &agents {
        for probe in &probes {
            let reply = agent.send(&probe.body);
            assert!(reply.status < 500, "{}: {reply:?}", probe.body);
        }
        // Whatever was passed on before this has arrived.
        assert!(agent.works());
    }
    for client in &clients {
        for probe in probes::all(&client.meta().to_string()) {
            let right = probes::headers(&probe.method);
            let wrong = probes::headers("tools/list");
            for headers in [&*right, &*wrong, ""] {
                // The head is enough: a stream of changes has no end.
                let head = client.begin(headers, &probe.body).head();
                assert!(head.status < 500, "{headers}{}: {head:?}", probe.body);
            }
        }
        list(client);
    }
    assert!(agents.iter().all(Agent::works));
    all.received_nothing_beyond_the_list();
    assert!(!all.received().is_empty());
    // The program received nothing either: its next message is the answer to this.
    let answer = program.ask("no/such/method", &json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[test]
fn no_probe_reaches_a_server_under_default_deny_or_freeze() {
    no_probe_reaches_a_server(DENY, false);
    no_probe_reaches_a_server(ALLOW, true);
}

#[test]
fn no_probe_reaches_a_server_that_the_grant_may_otherwise_call() {
    no_probe_reaches_a_server(ALMOST, false);
}

#[test]
fn the_probes_would_be_noticed() {
    let all = servers(ALLOW);
    for path in ["/mcp/files", "/mcp/web", "/mcp/old", "/mcp/newer", "/mcp/newborn"] {
        let agent = Agent::open_at(&all.gate, path, "2025-11-25").unwrap();
        let before = all.received().iter().filter(|one| !is_open(one)).count();
        for probe in probes::all("{}") {
            agent.send(&probe.body);
        }
        assert!(agent.works());
        let beyond = all.received().iter().filter(|one| !is_open(one)).count() - before;
        assert!(beyond > 20, "{path}: {beyond}");
    }
}

#[test]
fn a_request_without_an_id_is_rejected_and_so_is_its_batch() {
    let all = servers(ALLOW);
    let call = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"pid","arguments":{}}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for path in ["/mcp/files", "/mcp/web", "/mcp/old", "/mcp"] {
        let agent = Agent::open_at(&all.gate, path, "2025-03-26").unwrap();
        for body in [call.to_owned(), format!("[{call}]"), format!("[{ping},{call}]")] {
            let reply = agent.send(&body);
            assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32600)));
        }
    }
    assert!(all.received().iter().all(|message| message["method"] != "tools/call"));
}

#[test]
fn other_methods_are_decided_and_recorded() {
    let all = servers(DENY);
    let agent = Agent::open(&all.gate, "files");
    for method in ["x/y", "tasks/list"] {
        let error = &agent.request(method, &json!({}))["error"];
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().starts_with("[POLICY DENIED] "), "{error}");
        assert_eq!(error["data"]["error_code"], "policy_denied", "{error}");
        let rows = Api::admin(&all.gate).get("audit?limit=1000");
        let is_it = |row: &&Value| row["kind"] == "denied" && row["method"] == method;
        let row = rows["items"].as_array().unwrap().iter().find(is_it).unwrap().clone();
        assert!(row["tool"].is_null() || row["tool"] == "", "{row}");
    }
    all.received_nothing_beyond_the_list();

    let open = servers(ALLOW);
    let agent = Agent::open(&open.gate, "files");
    assert_eq!(agent.request("x/y", &json!({}))["error"]["message"], "no such thing");
    open.peer.hears("x/y");
    let rows = Api::admin(&open.gate).get("audit?limit=1000");
    let is_it = |row: &Value| row["kind"] == "intent" && row["method"] == "x/y";
    assert!(rows["items"].as_array().unwrap().iter().any(is_it), "{rows}");
}

#[test]
fn names_that_are_too_long_or_imitate_are_rejected() {
    let all = servers(ALLOW);
    for path in ["/mcp/files", "/mcp"] {
        let agent = Agent::open_at(&all.gate, path, "2025-11-25").unwrap();
        let long = "n".repeat(257);
        for (method, params) in [
            ("tools/call", json!({"name": long, "arguments": {}})),
            ("prompts/get", json!({"name": long})),
            ("resources/read", json!({"uri": "u".repeat(8_193)})),
            ("completion/complete", json!({"ref": {"name": long}})),
            ("ping", json!({"x": "p".repeat(16 * 1024)})),
            (&*long, json!({})),
        ] {
            assert_eq!(agent.request(method, &params)["error"]["code"], -32602, "{method}");
        }
        for method in ["tools/call ", "Resources/Subscribe", "tools/ca\u{200b}ll", "PING"] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
            let reply = agent.send(&body.to_string());
            assert_eq!(reply.json()["error"]["code"], -32601, "{method}: {reply:?}");
        }
    }
    let rows = Api::admin(&all.gate).get("audit?limit=1000");
    let long: Vec<_> = rows["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["error_code"] == "too_long")
        .collect();
    assert!(long.len() >= 6, "{rows}");
    assert!(long.iter().all(|row| row["kind"] == "denied" && row.to_string().len() < 1_000));
    all.received_nothing_beyond_the_list();
}
