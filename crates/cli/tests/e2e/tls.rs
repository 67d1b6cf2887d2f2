//! Listeners that other machines can reach: under TLS, or behind reverse proxies.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use tokio::net::TcpSocket;
use toolgate_testkit::reserved_address;

use crate::api::admin_token;
use crate::gate::{GUARD, Gate, Home, eventually};
use crate::peer::Peer;
use crate::wire::{Connection, Reply, get};

pub(crate) const NAME: &str = "gate.example.com";
/// The people's listener is open to other machines.
pub(crate) const OPEN: &str = "listen: { mcp: 127.0.0.1:0, sessions: 127.0.0.1:0, admin: 0.0.0.0:0 }\n\
                    hosts: [gate.example.com]\n\
                    policies: { open: { version: '1', default: allow } }";
pub(crate) const TLS: &str = "tls: { cert: cert.pem, key: key.pem }";

/// A certificate for [`NAME`] and its key, both PEM.
pub(crate) struct Pair {
    cert: String,
    key: String,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
        Self { cert: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    pub(crate) fn write(&self, home: &Home) {
        fs::write(home.path("cert.pem"), &self.cert).unwrap();
        fs::write(home.path("key.pem"), &self.key).unwrap();
    }

    /// Connects as a client that trusts this certificate and requests [`NAME`].
    pub(crate) fn connect(&self, gate: &Gate, listener: &str) -> io::Result<Connection> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.cert.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(NAME).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let tcp = TcpStream::connect(local(gate, listener))?;
        tcp.set_read_timeout(Some(GUARD))?;
        let mut stream = StreamOwned::new(connection, tcp);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Connection::over(stream))
    }

    fn get(&self, gate: &Gate, listener: &str, path: &str, headers: &str) -> Reply {
        let mut connection = self.connect(gate, listener).unwrap();
        connection.send(format!("GET {path} HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes());
        connection.reply()
    }
}

fn gate(pair: &Pair, config: &str) -> (Gate, Peer) {
    let home = Home::new();
    pair.write(&home);
    let peer = Peer::new(&home, "peer");
    let config = format!("{config}\n{TLS}\nservers:\n{}", peer.entry("listing", ""));
    (Gate::start_in(home, &config), peer)
}

/// Where a listener is reached from this machine.
fn local(gate: &Gate, listener: &str) -> String {
    gate.address(listener).replace("0.0.0.0", "127.0.0.1")
}

/// The output of a verb that must succeed.
fn ok(gate: &Gate, words: &[&str], token: &str) -> String {
    let output = gate.home.command(words).env("TOOLGATE_TOKEN", token).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn with_a_certificate_every_listener_speaks_tls_and_nothing_else() {
    let pair = Pair::new();
    let (gate, _peer) = gate(&pair, OPEN);
    for (listener, scheme) in [("mcp", "https://"), ("sessions", "wss://"), ("admin", "https://")] {
        let url = gate.ready()[listener].as_str().unwrap();
        assert!(url.starts_with(scheme), "{url}");
        let mut plain = Connection::open(&local(&gate, listener));
        plain.send(format!("GET /readyz HTTP/1.1\r\nHost: {NAME}\r\n\r\n").as_bytes());
        assert!(!plain.rest().starts_with(b"HTTP"), "{listener} speaks without TLS");
        assert!(Pair::new().connect(&gate, listener).is_err(), "{listener} shows another one");
    }
    let host = format!("Host: {NAME}");
    let cases = [
        ("mcp", "/readyz", host.clone(), 200),
        ("admin", "/readyz", host.clone(), 200),
        ("admin", "/readyz", format!("{host}\r\nOrigin: https://{NAME}"), 200),
        ("admin", "/readyz", format!("{host}\r\nOrigin: http://{NAME}"), 403),
        ("admin", "/readyz", format!("{host}\r\nOrigin: https://evil.example.com"), 403),
        ("admin", "/readyz", "Host: evil.example.com".to_owned(), 403),
        ("admin", "/metrics", host.clone(), 401),
        ("admin", "/metrics", format!("{host}\r\nAuthorization: Bearer guessed"), 401),
        (
            "admin",
            "/metrics",
            format!("{host}\r\nAuthorization: Bearer {}", admin_token(&gate.home)),
            200,
        ),
        ("admin", "/api/v1/status", host, 401),
    ];
    for (listener, path, headers, status) in cases {
        let reply = pair.get(&gate, listener, path, &headers);
        assert_eq!(reply.status, status, "{listener} {path} {headers}: {reply:?}");
    }
    // Verbs know the certificate of their own gateway, whatever name it is for.
    let made = ok(&gate, &["grant", "create", "-o", "json", "laptop", "--policy", "open"], "");
    let made: Value = serde_json::from_str(&made).unwrap();
    let tools = ok(&gate, &["tool", "list"], made["token"].as_str().unwrap());
    assert!(tools.contains("peer__echo"), "{tools}");
}

#[test]
fn sessions_dial_in_under_tls() {
    let pair = Pair::new();
    let (gate, _peer) = gate(&pair, OPEN);
    let mut socket = pair.connect(&gate, "sessions").unwrap();
    let upgrade = "GET /sessions HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
                   Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.send(upgrade.as_bytes());
    assert_eq!(socket.head().status, 101);
    let ping = [0x89, 0x82, 0, 0, 0, 0, b'h', b'i'];
    socket.send(&ping);
    assert_eq!(socket.exactly(4), [0x8a, 2, b'h', b'i']);
}

#[test]
fn another_certificate_is_shown_from_the_next_connection_on() {
    let (old, new) = (Pair::new(), Pair::new());
    let (gate, _peer) = gate(&old, OPEN);
    let mut kept = old.connect(&gate, "admin").unwrap();
    // Only half of it is there.
    fs::write(gate.home.path("cert.pem"), &new.cert).unwrap();
    gate.log.wait_for("the previous one stays active");
    assert!(old.connect(&gate, "admin").is_ok());
    new.write(&gate.home);
    eventually("the new certificate is shown", || new.connect(&gate, "admin").ok());
    assert!(old.connect(&gate, "mcp").is_err());
    kept.send(format!("GET /readyz HTTP/1.1\r\nHost: {NAME}\r\n\r\n").as_bytes());
    assert_eq!(kept.reply().status, 200, "who is connected stays so");
    eventually("verbs know the new one", || {
        gate.home.run(&["grant", "list"]).status.success().then_some(())
    });
}

#[test]
fn an_unusable_certificate_is_reported_with_its_position() {
    let (one, other) = (Pair::new(), Pair::new());
    let nothing = "no certificate, no key\n".to_owned();
    let broken = one.cert.replace("MII", "MI!");
    let cases = [
        (None, Some(&one.key), "2:14", "cannot read the file `cert.pem`: no such file"),
        (Some(&one.cert), None, "2:29", "cannot read the file `key.pem`: no such file"),
        (Some(&nothing), Some(&one.key), "2:14", "no usable certificate"),
        (Some(&broken), Some(&one.key), "2:14", "no usable certificate"),
        (Some(&one.cert), Some(&nothing), "2:29", "no usable private key"),
        (Some(&one.cert), Some(&other.key), "2:29", "the key does not belong to the certificate"),
    ];
    for (cert, key, place, words) in cases {
        let home = Home::new();
        for (name, text) in [("cert.pem", cert), ("key.pem", key)] {
            if let Some(text) = text {
                fs::write(home.path(name), text).unwrap();
            }
        }
        home.configure(&format!("version: 1\n{TLS}\n"));
        for (verb, code) in [(&["config", "check", "toolgate.yaml"][..], 1), (&["serve"], 2)] {
            let output = home.run(verb);
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(code), "{verb:?}: {printed}");
            assert!(printed.contains(&format!("toolgate.yaml:{place}")), "{words}: {printed}");
            assert!(printed.contains(words) && printed.contains("hint: "), "{words}: {printed}");
            assert!(!printed.contains("PRIVATE KEY"), "{printed}");
        }
    }
}

#[test]
fn a_handshake_that_does_not_end_is_not_waited_for() {
    let pair = Pair::new();
    let (gate, _peer) = gate(&pair, "limits: { header_read: 300ms }");
    for begun in [&b""[..], &[0x16, 3, 1]] {
        let mut connection = Connection::open(&local(&gate, "admin"));
        connection.send(begun);
        assert!(connection.rest().len() < 100);
    }
}

#[test]
fn a_handshake_counts_as_a_connection() {
    let pair = Pair::new();
    let (gate, _peer) = gate(&pair, "limits: { header_read: 5m, connections: 1 }");
    let first = Connection::open(&local(&gate, "admin"));
    assert!(pair.connect(&gate, "admin").is_err());
    drop(first);
    eventually("there is room again", || pair.connect(&gate, "admin").ok());
}

/// An answer over a connection that comes from `source`; none if it was closed instead.
fn from(source: &str, gate: &Gate, path: &str, headers: &str) -> Option<u16> {
    let mut connection = connect_from(source, gate);
    // A refusal may come before the request is sent.
    drop(connection.try_send(format!("GET {path} HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes()));
    connection.try_head().map(|head| head.status)
}

/// A connection to the admin listener that comes from `source`.
pub(crate) fn connect_from(source: &str, gate: &Gate) -> Connection {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let to = local(gate, "admin").parse().unwrap();
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
        socket.connect(to).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    Connection::over(stream)
}

#[test]
fn behind_a_proxy_only_the_proxy_may_connect() {
    let config = format!("{OPEN}\nbehind_proxy: [127.0.0.2, 10.0.0.0/8]");
    let gate = Gate::start(&config);
    let host = format!("Host: {NAME}");
    let own = format!("{host}\r\nOrigin: https://{NAME}");
    let token = format!("{host}\r\nAuthorization: Bearer {}", admin_token(&gate.home));
    let cases = [
        ("127.0.0.2", "/readyz", host.as_str(), 200),
        ("127.0.0.2", "/readyz", own.as_str(), 200),
        ("127.0.0.2", "/readyz", "Host: evil.example.com", 403),
        ("127.0.0.2", "/metrics", host.as_str(), 401),
        ("127.0.0.2", "/api/v1/status", token.as_str(), 200),
        ("127.0.0.1", "/readyz", host.as_str(), 403),
        ("127.0.0.1", "/api/v1/status", token.as_str(), 403),
        ("127.0.0.3", "/readyz", host.as_str(), 403),
    ];
    for (source, path, headers, status) in cases {
        let answered = from(source, &gate, path, headers).unwrap_or(403);
        assert_eq!(answered, status, "{source} {path} {headers}");
    }
    assert_eq!(get(&gate.mcp(), "/readyz").status, 200, "agents come as before");

    gate.configure(&config.replace("10.0.0.0/8", "10.0.0.0/9"));
    gate.log.wait_for("`behind_proxy` has changed; restart toolgate to apply it");
    gate.configure(OPEN);
    gate.log.wait_for("the previous one stays active");
    assert_eq!(from("127.0.0.1", &gate, "/readyz", &host).unwrap_or(403), 403);
}

#[test]
fn a_listener_on_loopback_ignores_behind_proxy() {
    let gate = Gate::start("behind_proxy: [10.0.0.0/8]");
    assert_eq!(get(&gate.admin(), "/metrics").status, 200);
}

#[test]
fn metrics_for_other_machines_need_a_viewer() {
    let address = reserved_address().unwrap().to_string();
    let everywhere = address.replace("127.0.0.1", "0.0.0.0");
    let listen = "listen: { mcp: 127.0.0.1:0, sessions: off, admin: 127.0.0.1:0, metrics: ";
    let gate = Gate::start(&format!("{listen}'{everywhere}' }}"));
    let asked = |headers: &str| {
        let mut connection = Connection::open(&address);
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
        connection.send(head.as_bytes());
        connection.reply()
    };
    let refused = asked("");
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    let token = format!("Authorization: Bearer {}\r\n", admin_token(&gate.home));
    assert_eq!(asked(&token).status, 200);
    assert_eq!(get(&gate.admin(), "/metrics").status, 200, "none is needed on loopback");
}

#[test]
fn health_is_answered_under_tls_while_every_other_thread_is_blocked() {
    let (home, pair) = (Home::new(), Pair::new());
    pair.write(&home);
    let peer = Peer::new(&home, "peer");
    let config = format!("hosts: [{NAME}]\n{TLS}\nservers:\n{}", peer.entry("", ""));
    let mut gate = Gate::start_as(home, &config, |command| {
        command.env("TOKIO_WORKER_THREADS", "2").env("TOOLGATE_FAILPOINT", "before-send:block");
    });
    let body = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"pid","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let call = format!(
        "POST /mcp/peer HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: pid\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut waiting = Vec::new();
    eventually("both workers are blocked", || {
        if gate.log.text().matches("thread blocked at failpoint").count() >= 2 {
            return Some(());
        }
        if waiting.len() < 8 {
            let mut connection = pair.connect(&gate, "mcp").unwrap();
            connection.send(call.as_bytes());
            waiting.push(connection);
        }
        None
    });
    // Neither do handshakes that do not end hold it up.
    let begun: Vec<_> = (0..50)
        .map(|_| {
            let mut connection = Connection::open(&local(&gate, "admin"));
            connection.send(&[0x16, 3, 1]);
            connection
        })
        .collect();
    for listener in ["mcp", "admin"] {
        for _ in 0..3 {
            let reply = pair.get(&gate, listener, "/healthz", &format!("Host: {NAME}"));
            assert_eq!((reply.status, reply.body.as_str()), (200, "ok\n"));
        }
    }
    drop(begun);
    gate.signal(rustix::process::Signal::KILL);
    gate.wait();
}

#[test]
fn pages_are_judged_by_the_tls_that_is_bound() {
    let pair = Pair::new();
    let gate = Gate::start(&format!("hosts: [{NAME}]"));
    let asks = || {
        let head = format!("GET /readyz HTTP/1.1\r\nHost: {NAME}\r\nOrigin: http://{NAME}\r\n\r\n");
        crate::wire::ask(&gate.admin(), &head).status
    };
    assert_eq!(asks(), 200);
    // The certificate is for the next start; until then the listeners speak as they do.
    pair.write(&gate.home);
    gate.configure(&format!("hosts: [{NAME}, other.example.com]\n{TLS}"));
    eventually("the file is in force", || {
        let head = "GET /readyz HTTP/1.1\r\nHost: other.example.com\r\n\r\n";
        (crate::wire::ask(&gate.admin(), head).status == 200).then_some(())
    });
    assert_eq!(asks(), 200);
}
