//! What concerns one grant on a shared server, and headers that repeat arguments. The records of
//! the servers decide.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{Gate, Home};
use crate::isolation::{TOKENS, two_grants};
use crate::recorder::{ERAS, Era, Recorder};
use crate::sessionless::Sessionless;
use crate::wire::Events;

const EXECUTES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/executes.sh");

/// One agent of each grant at each endpoint.
fn agents(gate: &Gate) -> Vec<Agent> {
    let paths = ["/mcp/peer", "/mcp"];
    let all = TOKENS.iter().flat_map(|(_, token)| paths.map(|path| (path, token)));
    all.map(|(path, token)| Agent::open_at_with(gate, path, token)).collect()
}

fn listen(agent: &Agent) -> Events {
    let headers = format!("Accept: text/event-stream\r\n{}", agent.authorization());
    Events::of(agent.get(&headers))
}

#[test]
fn a_message_of_a_shared_server_about_one_call_reaches_no_other_grant() {
    let (gate, _peer) = two_grants("instances: shared");
    let agents = agents(&gate);
    for agent in &agents {
        let uri = if agent.path == "/mcp" { "peer+demo://a" } else { "demo://a" };
        let answer = agent.request("resources/subscribe", &json!({"uri": uri}));
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    let mut streams: Vec<Events> = agents.iter().map(listen).collect();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "gossip", "arguments": {}}});
    let reply = agents[0].send(&call.to_string());
    assert!(reply.body.contains("done"), "{reply:?}");
    assert!(!reply.body.contains("one call"), "{reply:?}");
    // The first notification that any of them receives is the one it subscribed to.
    agents[0].call("update", &json!({}));
    for (agent, events) in agents.iter().zip(&mut streams) {
        let (_, first) = events.message().unwrap();
        let method = &first["method"];
        assert_eq!(method, "notifications/resources/updated", "{}: {first}", agent.path);
    }
    gate.log
        .line_with(&["notification of a shared server matches no agent", "notifications/message"]);
}

#[test]
fn no_grant_ends_what_another_follows_on_a_shared_server() {
    let (gate, peer) = two_grants("instances: shared");
    let [mine, other] = TOKENS.map(|(_, token)| Agent::open_with(&gate, "peer", token));
    let ask = |agent: &Agent, what: &str, uri: &str| {
        let answer = agent.request(&format!("resources/{what}"), &json!({"uri": uri}));
        assert_eq!(answer["result"], json!({}), "{what} {uri}: {answer}");
    };
    let ended = || -> Vec<Value> {
        let received = peer.received().into_iter();
        received.filter(|message| message["method"] == "resources/unsubscribe").collect()
    };
    ask(&mine, "subscribe", "file:///tmp/a");
    let spellings = [
        "file:///tmp/a",
        "FILE:///tmp/a",
        "file:///tmp/%61",
        "file:/tmp//a",
        "file://localhost/tmp/./a",
        "file:///tmp/x/../a",
        "file:///other",
    ];
    for uri in spellings {
        ask(&other, "unsubscribe", uri);
        ask(&other, "subscribe", uri);
        if uri != "file:///other" {
            ask(&other, "unsubscribe", uri);
        }
        // Whatever was passed on before this has arrived.
        assert!(other.works());
        assert_eq!(ended(), Vec::<Value>::new(), "{uri}");
    }
    let mut events = listen(&mine);
    other.call("update", &json!({}));
    let (_, reported) = events.message().unwrap();
    assert_eq!(reported["params"]["uri"], "file:///tmp/a", "{reported}");
    // What it alone follows it may end.
    ask(&other, "unsubscribe", "file:///other");
    assert_eq!(ended().len(), 1);
    ask(&mine, "unsubscribe", "file:///tmp/a");
    assert_eq!(ended()[1]["params"]["uri"], "file:///tmp/a");
}

/// A server with one tool whose argument `n` has a header.
enum Server {
    Web(Recorder),
    /// Its folder.
    Child(PathBuf),
}

impl Server {
    fn web(era: Era) -> Self {
        Self::Web(Recorder::answering(era, |message| {
            (message["method"] == "tools/list").then(|| {
                let n = json!({"type": "string", "x-mcp-header": "N"});
                let schema = json!({"type": "object", "properties": {"n": n}});
                json!({"tools": [{"name": "x_n", "inputSchema": schema}], "resultType": "complete"})
            })
        }))
    }

    fn child(folder: &Path) -> Self {
        fs::create_dir(folder).unwrap();
        Self::Child(folder.to_owned())
    }

    fn entry(&self, name: &str, era: Era) -> String {
        match self {
            Self::Web(recorder) => recorder.entry(name, ""),
            Self::Child(folder) => {
                let (folder, era) = (folder.display(), format!("{era:?}").to_lowercase());
                format!("  {name}: {{ command: sh, args: ['{EXECUTES}', '{folder}', {era}] }}\n")
            }
        }
    }

    fn calls(&self) -> usize {
        match self {
            Self::Web(recorder) => recorder.of("tools/call").len(),
            Self::Child(folder) => {
                fs::read_to_string(folder.join("executed")).unwrap_or_default().lines().count()
            }
        }
    }
}

/// Headers, arguments, and whether they agree.
const HEADERS: [(&str, &str, bool); 13] = [
    ("", r#"{"n":"v"}"#, false),
    ("Mcp-Param-N: v\r\n", r#"{"n":"v"}"#, true),
    ("MCP-PARAM-N: v\r\n", r#"{"n":"v"}"#, true),
    ("Mcp-Param-N: =?base64?dg==?=\r\n", r#"{"n":"v"}"#, true),
    ("Mcp-Param-N: v\r\nMcp-Param-Other: x\r\n", r#"{"n":"v","other":"y"}"#, true),
    ("Mcp-Param-N: w\r\n", r#"{"n":"v"}"#, false),
    ("Mcp-Param-N: V\r\n", r#"{"n":"v"}"#, false),
    ("mcp-param-n: w\r\n", r#"{"n":"v"}"#, false),
    ("Mcp-Param-N: v\r\nMcp-Param-N: w\r\n", r#"{"n":"v"}"#, false),
    ("Mcp-Param-N: =?base64?dw==?=\r\n", r#"{"n":"v"}"#, false),
    ("Mcp-Param-N: =?base64?d?=\r\n", r#"{"n":"v"}"#, false),
    ("Mcp-Param-N: v\r\n", "{}", false),
    ("Mcp-Param-N: v\r\n", r#"{"n":null}"#, false),
];

#[test]
fn headers_that_contradict_the_arguments_are_not_executed() {
    for era in ERAS {
        let home = Home::new();
        let servers = [("web", Server::web(era)), ("child", Server::child(&home.path("child")))];
        let entries = servers.iter().map(|(name, server)| server.entry(name, era));
        let gate = Gate::start_in(home, &format!("servers:\n{}", entries.collect::<String>()));
        for (name, server) in &servers {
            for all in [false, true] {
                let (path, tool) = if all {
                    ("/mcp".to_owned(), format!("{name}__x_n"))
                } else {
                    (format!("/mcp/{name}"), "x_n".to_owned())
                };
                let client = Sessionless::new(&gate, &path);
                // The contradictions come first, while no list of the tools is known.
                for (headers, arguments, agrees) in HEADERS.iter().rev() {
                    let row = format!("{era:?} {name} {path} {headers:?} {arguments}");
                    let before = server.calls();
                    let arguments: Value = serde_json::from_str(arguments).unwrap();
                    let reply = client.call(&tool, headers, json!({"arguments": arguments}));
                    let refused = reply.body.contains("-32020");
                    assert_eq!(refused, !agrees, "{row}: {reply:?}");
                    assert_eq!(server.calls() - before, usize::from(*agrees), "{row}: {reply:?}");
                }
            }
            if let Server::Web(recorder) = server {
                for call in recorder.of("tools/call") {
                    let own = (era == Era::Sessionless).then_some("v");
                    assert_eq!(call.header("mcp-param-n"), own, "{}", call.head);
                    assert_eq!(call.header("mcp-param-other"), None, "{}", call.head);
                }
            }
        }
    }
}
