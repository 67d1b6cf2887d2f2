//! `toolgate run`: an MCP client starts it in place of a server.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::api::Api;
use crate::gate::{Gate, Home, eventually, is_gone};
use crate::peer::Peer;
use crate::recorder::{Era, Recorder};

/// An MCP client with its `toolgate run`.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    pub(crate) fn start(home: &Home, words: &[&str]) -> Self {
        Self::start_as(home, words, |_| {})
    }

    pub(crate) fn start_as(home: &Home, words: &[&str], adapt: impl FnOnce(&mut Command)) -> Self {
        let mut command = home.command(&[&["run"], words].concat());
        command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::inherit());
        adapt(&mut command);
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line:?}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        let answer = self.hear();
        assert_eq!(answer["id"], 7, "{answer}");
        answer
    }

    pub(crate) fn open(&mut self) -> Value {
        let info = json!({"name": "desk", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let welcome = self.ask("initialize", &hello);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        welcome
    }

    pub(crate) fn call(&mut self, tool: &str) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": {"text": "hi"}}))["result"].take()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes the input and waits; the exit code.
    fn end(&mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.wait()
    }

    fn wait(&mut self) -> Option<i32> {
        eventually("`run` ends", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn rows(home: &Home) -> Vec<Value> {
    let output = home.run(&["audit", "list", "-o", "jsonl", "--limit", "1000"]);
    let text = String::from_utf8(output.stdout).unwrap();
    // The newest is printed first.
    text.lines().rev().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// `-- sh peer.sh FOLDER MODE`
fn command<'a>(arguments: &'a [String; 2], mode: &'a str) -> Vec<&'a str> {
    vec!["--name", "peer", "--", "sh", &arguments[0], &arguments[1], mode]
}

#[test]
fn a_call_over_stdio_is_decided_counted_and_audited() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let arguments = peer.arguments();
    let mut client = Client::start(&home, &command(&arguments, "listing"));
    assert_eq!(client.open()["result"]["serverInfo"]["name"], "peer");
    let tools = client.ask("tools/list", &json!({}));
    assert_eq!(tools["result"]["tools"][0]["name"], "echo", "{tools}");
    let result = client.call("echo");
    assert_eq!(result["structuredContent"]["arguments"]["text"], "hi", "{result}");
    let [pid] = peer.started()[..] else { panic!("one process: {:?}", peer.started()) };
    assert_eq!(client.end(), Some(0));
    assert!(is_gone(pid), "the server ends with it");
    let rows = rows(&home);
    let kinds: Vec<&str> = rows.iter().filter_map(|row| row["kind"].as_str()).collect();
    assert_eq!(kinds, ["intent", "outcome"], "{rows:?}");
    for (key, expected) in [
        ("grant", "stdio"),
        ("via", "stdio"),
        ("server", "peer"),
        ("tool", "echo"),
        ("client", "desk"),
    ] {
        assert_eq!(rows[0][key], expected, "{}", rows[0]);
    }
    assert_eq!(home.run(&["audit", "verify"]).status.code(), Some(0));
}

#[test]
fn a_sessionless_client_and_piped_input_work_too() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let arguments = peer.arguments();
    let mut client = Client::start(&home, &command(&arguments, "listing"));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "echo", "arguments": {"text": "hi"}, "_meta": meta});
    client.say(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
    // Answers are written after the end of the input.
    drop(client.stdin.take());
    let answer = client.hear();
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(client.wait(), Some(0));
    let other = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let mut client = Client::start(&home, &command(&arguments, "listing"));
    let answer = client.ask("tools/list", &other);
    assert_eq!(answer["error"]["data"]["supported"], json!(["2026-07-28"]), "{answer}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn what_is_not_a_message_is_answered_and_the_next_line_is_read() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let arguments = peer.arguments();
    let mut client = Client::start(&home, &command(&arguments, ""));
    client.say(&json!("not a message"));
    assert!(client.hear()["error"]["code"].is_i64());
    let early = client.ask("tools/list", &json!({}));
    assert!(early["error"]["message"].as_str().unwrap().contains("initialize"), "{early}");
    let long = "x".repeat(5 * 1024 * 1024);
    client.say(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"long": long}}));
    assert!(client.hear()["error"]["message"].as_str().unwrap().contains("limits.body"));
    client.open();
    assert!(client.ask("ping", &json!({}))["result"].is_object());
    assert_eq!(client.end(), Some(0));
}

/// A server that handles SIGTERM.
const TRAPS: &str = r#"trap 'exit 9' TERM
read -r line
id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"t","version":"1"}}}'
while :; do sleep 0.05; done
"#;

#[test]
fn it_ends_as_its_server_ends() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let arguments = peer.arguments();
    let mut client = Client::start(&home, &command(&arguments, "exits"));
    assert!(client.open()["error"]["message"].is_string());
    assert_eq!(client.wait(), Some(3), "it died before the handshake");

    let mut client = Client::start(&home, &["--", "no-such-program-here"]);
    assert!(client.open()["error"]["message"].as_str().unwrap().contains("no-such-program"));
    assert_eq!(client.wait(), Some(127));

    let mut client = Client::start(&home, &command(&arguments, ""));
    client.open();
    client.signal(Signal::TERM);
    assert_eq!(client.wait(), Some(128 + 15), "the signal is passed on");

    let traps = home.path("traps.sh");
    fs::write(&traps, TRAPS).unwrap();
    let mut client = Client::start(&home, &["--", "sh", traps.to_str().unwrap()]);
    assert!(client.open()["result"].is_object());
    client.signal(Signal::TERM);
    assert_eq!(client.wait(), Some(9), "the server handles the signal");
}

#[test]
fn a_server_that_dies_before_it_is_asked_ends_it_too() {
    let home = Home::new();
    for (words, code) in [(&["sh", "-c", "exit 7"][..], 7), (&["no-such-program-here"][..], 127)] {
        let words = [&["--"], words].concat();
        let mut silent = Client::start(&home, &words);
        assert_eq!(silent.wait(), Some(code), "the client has said nothing");
        let mut closed = Client::start(&home, &words);
        assert_eq!(closed.end(), Some(code), "the client has closed the input");
    }
    let mut unused = Client::start(&home, &["--", "sh", "-c", "cat; exit 4"]);
    assert_eq!(unused.end(), Some(4), "it ends with the input");
}

#[test]
fn a_client_that_does_not_read_cannot_keep_it_alive() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let arguments = peer.arguments();
    let mut client = Client::start(&home, &command(&arguments, ""));
    client.open();
    let text = "x".repeat(64 * 1024);
    let call = json!({"name": "echo", "arguments": {"text": text}});
    for id in 0..40 {
        let method = "tools/call";
        client.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": call}));
    }
    client.signal(Signal::TERM);
    assert_eq!(client.wait(), Some(128 + 15));
}

#[test]
fn a_server_that_dies_later_is_restarted() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let arguments = peer.arguments();
    let mut client = Client::start(&home, &command(&arguments, ""));
    client.open();
    let first = client.call("pid")["content"][0]["text"].as_str().unwrap().to_owned();
    let pid = Pid::from_raw(first.parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let second = eventually("another process answers", || {
        let result = client.call("pid");
        let text = result["content"][0]["text"].as_str()?.to_owned();
        text.parse::<u32>().is_ok().then_some(text)
    });
    assert_ne!(first, second);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_policy_decides_and_is_required_once_a_grant_exists() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let arguments = peer.arguments();
    let policy = home.path("policy.yaml");
    fs::write(&policy, "version: '1'\ndefault: deny\ntools: { echo: { action: allow } }\n")
        .unwrap();
    let words = ["-c", policy.to_str().unwrap()];
    let mut client = Client::start(&home, &[&words[..], &command(&arguments, "")].concat());
    client.open();
    assert_eq!(client.call("echo")["isError"], Value::Null);
    let denied = client.call("pid");
    assert_eq!(denied["_meta"]["error_code"], "policy_denied", "{denied}");
    assert_eq!(rows(&home).last().unwrap()["grant"], "stdio");
    assert_eq!(client.end(), Some(0));

    home.configure("version: 1\ngrants: [{ label: g, token: env:G }]\n");
    let refused = home.run(&[&["run"], &command(&arguments, "")[..]].concat());
    assert_eq!(refused.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--policy"));
    let mut client = Client::start(&home, &[&words[..], &command(&arguments, "")].concat());
    client.open();
    assert_eq!(client.call("echo")["isError"], Value::Null);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn it_shares_the_data_folder_with_a_running_gateway() {
    let gate = Gate::start("");
    let peer = Peer::new(&gate.home, "peer");
    let arguments = peer.arguments();
    let mut client = Client::start(&gate.home, &command(&arguments, ""));
    client.open();
    assert_eq!(client.call("echo")["isError"], Value::Null);
    let api = Api::admin(&gate);
    let rows = api.get("audit?grant=stdio");
    assert_eq!(rows["items"][0]["via"], "stdio", "{rows}");
    let freeze =
        |words: &[&str]| assert_eq!(gate.home.run(words).status.code(), Some(0), "{words:?}");
    freeze(&["freeze", "--grant", "stdio"]);
    let frozen = client.call("echo");
    assert_eq!(frozen["_meta"]["error_code"], "frozen", "{frozen}");
    freeze(&["unfreeze", "--grant", "stdio"]);
    eventually("calls pass again", || client.call("echo")["isError"].is_null().then_some(()));
    // The first grant ends local mode, here too.
    freeze(&["grant", "create", "g"]);
    let denied = client.call("echo");
    assert_eq!(denied["_meta"]["rule"], "(no policy)", "{denied}");
    let taken = gate.home.run(&["grant", "create", "stdio"]);
    assert_ne!(taken.status.code(), Some(0));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_client_that_only_speaks_stdio_reaches_a_gateway() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let token = "a-token-of-a-grant-0123456";
    let config = format!(
        "policies: {{ open: {{ version: '1', default: allow }} }}\n\
         grants: [{{ label: desk, token: env:DESK, policy: open }}]\nservers:\n{}",
        peer.entry("listing", "")
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.env("DESK", token);
    });
    let url = format!("http://{}", gate.mcp());
    let words = ["--gateway", &url, "--token", "env:DESK"];
    let mut client = Client::start_as(&gate.home, &words, |command| {
        command.env("DESK", token);
    });
    client.open();
    let result = client.call("peer__echo");
    assert_eq!(result["structuredContent"]["arguments"]["text"], "hi", "{result}");
    assert_eq!(client.end(), Some(0));
    let api = Api::admin(&gate);
    let rows = api.get("audit?grant=desk");
    assert_eq!(rows["items"][0]["via"], "/mcp", "{rows}");

    let mut stranger = Client::start(&gate.home, &["--gateway", &url]);
    let refused = stranger.open();
    assert!(refused["error"]["message"].as_str().unwrap().contains("--token"), "{refused}");
    assert_eq!(stranger.end(), Some(0));
    let literal = gate.home.run(&["run", "--gateway", &url, "--token", "literal"]);
    assert_eq!(literal.status.code(), Some(64));
    assert!(!String::from_utf8_lossy(&literal.stderr).contains("literal\n"));
}

#[test]
fn a_server_over_http_gets_the_headers_and_the_variables_stay_here() {
    let home = Home::new();
    let server = Recorder::start(Era::Sessionful);
    let url = format!("http://{}/mcp", server.address);
    let words = ["--upstream", &url, "--header", "X-Api-Key: env:API_KEY"];
    let mut client = Client::start_as(&home, &words, |command| {
        command.env("API_KEY", "the-key-of-the-api");
    });
    client.open();
    let opened = server.of("initialize");
    assert_eq!(opened[0].header("x-api-key"), Some("the-key-of-the-api"));
    assert_eq!(client.end(), Some(0));
}
