//! Against a minimal server that accepts sockets and sends what the test provides.

use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::{ClientOptions, ClientProfile, SimulatedClient, tools};

struct Gate(TcpListener);

struct Peer(WebSocketStream<TcpStream>);

impl Gate {
    async fn open() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/sessions/secret", listener.local_addr().unwrap());
        (Self(listener), url)
    }

    async fn accept(&self) -> Peer {
        let (stream, _) = soon(self.0.accept()).await.unwrap();
        Peer(soon(accept_async(stream)).await.unwrap())
    }
}

impl Peer {
    /// The next frame with text.
    async fn hears(&mut self) -> Value {
        loop {
            if let Message::Text(text) = soon(self.0.next()).await.unwrap().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    async fn says(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn calls(&mut self, id: &str, name: &str, arguments: Value) {
        let params = json!({"name": name, "arguments": arguments});
        self.says(json!({"jsonrpc": "2.0", "id": id, "method": "tool.call", "params": params}))
            .await;
    }
}

/// Fails a test that would hang.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), what).await.expect("in time")
}

fn quick(url: &str, profile: ClientProfile) -> ClientOptions {
    let backoff = (Duration::from_millis(5), Duration::from_millis(20));
    ClientOptions { backoff, ..ClientOptions::new(url, "u1", profile, "trade") }
}

#[tokio::test]
async fn it_registers_and_answers() {
    let (gate, url) = Gate::open().await;
    let client = SimulatedClient::start(quick(&url, ClientProfile::Test));
    let mut peer = gate.accept().await;
    let register = peer.hears().await;
    assert_eq!(register["method"], "session.register");
    assert_eq!(register["params"]["client_uid"], "u1");
    assert_eq!(register["params"]["tools"].as_array().unwrap().len(), 14);
    peer.calls("mgr-1-a", "ui_input", json!({"Поле": "Ёлка"})).await;
    peer.calls("mgr-2-b", "ui_click", json!({})).await;
    let first = peer.hears().await;
    assert_eq!(first["id"], "mgr-1-a");
    let text = first["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, r#"{"ok":true,"tool":"ui_input","arguments":{"Поле":"Ёлка"}}"#);
    assert!(peer.hears().await.to_string().contains("Не указана кнопка"));
    peer.says(json!({"jsonrpc": "2.0", "id": "register-1", "error": {"code": -32010}})).await;
    while client.seen().errors.is_empty() {
        tokio::task::yield_now().await;
    }
    client.bye(false);
    assert_eq!(peer.hears().await["method"], "session.bye");
    drop(peer);
    let seen = soon(client.ended()).await;
    assert_eq!(seen.calls, ["ui_input", "ui_click"]);
    assert_eq!(seen.errors, [json!({"code": -32010})]);
}

#[tokio::test]
async fn calls_that_1c_cannot_read_are_lost() {
    let (gate, url) = Gate::open().await;
    let client = SimulatedClient::start(ClientOptions {
        lose_every: Some(2),
        ..quick(&url, ClientProfile::Thin)
    });
    let mut peer = gate.accept().await;
    peer.hears().await;
    let lost = [
        json!({"jsonrpc": "2.0", "id": 7, "method": "tool.call", "params": {"name": "timer", "arguments": {}}}),
        json!({"jsonrpc": "2.0", "id": "a", "method": "tool.call", "params": {"name": "timer", "arguments": {"x": [{"foo-bar": 1}]}}}),
    ];
    for frame in lost {
        peer.says(frame).await;
    }
    peer.calls("one", "timer", json!({})).await;
    peer.calls("two", "timer", json!({})).await;
    peer.calls("three", "timer", json!({})).await;
    assert_eq!(peer.hears().await["id"], "one");
    assert_eq!(peer.hears().await["id"], "three");
    let seen = client.seen();
    assert_eq!((seen.unreadable, seen.lost), (2, 1));
}

#[tokio::test]
async fn a_thin_client_comes_back_without_a_name() {
    let (gate, url) = Gate::open().await;
    let work = Duration::from_millis(50);
    let client = SimulatedClient::start(ClientOptions { work, ..quick(&url, ClientProfile::Thin) });
    let mut peer = gate.accept().await;
    assert_eq!(peer.hears().await["method"], "session.register");
    peer.calls("late", "infobase_info", json!({})).await;
    while client.seen().calls.is_empty() {
        tokio::task::yield_now().await;
    }
    drop(peer);
    let mut peer = gate.accept().await;
    let late = peer.hears().await;
    assert_eq!(late["id"], "late", "no register, but the answer: {late}");
    client.restart();
    let mut peer = gate.accept().await;
    let register = peer.hears().await;
    assert_eq!(register["method"], "session.register", "a new process registers");
    assert_eq!(register["params"]["pid"], 2);
    // It exits on request.
    peer.says(json!({"jsonrpc": "2.0", "id": "s", "method": "session.shutdown", "params": {}}))
        .await;
    assert!(soon(client.ended()).await.shutdown);
}

#[tokio::test]
async fn a_server_channel_comes_back_again_and_again() {
    let (gate, url) = Gate::open().await;
    let reconnect_every = Some(Duration::from_millis(30));
    let client = SimulatedClient::start(ClientOptions {
        reconnect_every,
        ..quick(&url, ClientProfile::Server)
    });
    for _ in 0..3 {
        let mut peer = gate.accept().await;
        let register = peer.hears().await.to_string();
        assert!(register.contains("session.register") && register.contains("execute_query"));
        // It closes properly, so the peer must receive the close.
        tokio::spawn(async move { while let Some(Ok(_)) = peer.0.next().await {} });
    }
    // Then one that sends nothing, and the next one that does.
    let mut probe = gate.accept().await;
    assert_eq!(gate.accept().await.hears().await["params"]["client_uid"], "u1");
    assert!(probe.0.next().now_or_never().is_none());
    assert_eq!(client.seen().registers, 4);
}

#[tokio::test]
async fn it_never_gives_up() {
    let (gate, url) = Gate::open().await;
    let client = SimulatedClient::start(quick(&url, ClientProfile::Thin));
    for _ in 0..5 {
        // Sockets that are closed before the handshake.
        drop(soon(gate.0.accept()).await.unwrap());
    }
    let mut peer = gate.accept().await;
    assert_eq!(peer.hears().await["method"], "session.register");
    client.change_tools(tools::definitions(ClientProfile::Server));
    assert_eq!(peer.hears().await["method"], "session.tools_changed");
    client.say("not json");
    let frame = soon(peer.0.next()).await.unwrap().unwrap();
    assert_eq!(frame, Message::text("not json"));
}
