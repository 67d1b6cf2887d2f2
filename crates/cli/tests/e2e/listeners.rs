//! The listeners: what is served where, who may come in, and how much a connection may cost.

use std::fs;
use std::process::Command;

use toolgate_testkit::reserved_address;

use crate::gate::{Gate, Home, LISTEN, eventually};
use crate::peer::gate_with_peer;
use crate::wire::{Connection, ask, get};

#[test]
fn each_path_on_its_own_listener() {
    let metrics = reserved_address().unwrap().to_string();
    let listen = LISTEN.replace(" }", &format!(", metrics: {metrics} }}"));
    let (gate, _) = gate_with_peer(&listen, "", "");
    let (mcp, admin, sessions) = (gate.mcp(), gate.admin(), gate.address("sessions"));
    let cases = [
        (&mcp, "/healthz", 200, "ok\n"),
        (&mcp, "/readyz", 200, "ready\n"),
        (&mcp, "/metrics", 404, "/mcp/<server>"),
        (&mcp, "/api/v1/status", 404, "/mcp/<server>"),
        (&mcp, "/sessions", 404, "/mcp/<server>"),
        (&mcp, "/", 404, "/mcp/<server>"),
        (&mcp, "/mcp/peer/", 404, "/mcp/<server>"),
        (&mcp, "/mcp/%70eer", 404, "/mcp/<server>"),
        (&mcp, "/register", 404, "Authorization: Bearer"),
        (&mcp, "/.well-known/oauth-protected-resource/mcp", 404, r#""error":"access_denied""#),
        (&mcp, "/.well-known/oauth-authorization-server", 404, "toolgate does not use OAuth"),
        (&admin, "/healthz", 200, "ok\n"),
        (&admin, "/readyz", 200, "ready\n"),
        (&admin, "/metrics", 200, "# EOF\n"),
        (&admin, "/mcp/peer", 404, "not found"),
        // The page of the console; programs dial in elsewhere.
        (&admin, "/sessions", 303, ""),
        (&metrics, "/metrics", 200, "toolgate_agent_sessions 0"),
        (&metrics, "/healthz", 404, "not found"),
        (&metrics, "/mcp/peer", 404, "not found"),
        (&sessions, "/sessions", 426, "WebSocket"),
        (&sessions, "/mcp/peer", 404, "not found"),
        (&sessions, "/metrics", 404, "not found"),
    ];
    for (address, path, status, words) in cases {
        let reply = get(address, path);
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        assert!(reply.body.contains(words), "{path}: {reply:?}");
    }
    let kind = get(&admin, "/metrics");
    let kind = kind.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
}

#[test]
fn listeners_accept_only_allowed_clients() {
    let gate = Gate::start("hosts: [gate.example.com]\norigins: ['https://app.example.com']");
    let (mcp, admin) = (gate.mcp(), gate.admin());
    let own = format!("Host: {admin}\r\nOrigin: http://{admin}");
    let both = [
        ("/healthz", "Host: localhost", 200),
        ("/healthz", "Host: LOCALHOST:4001", 200),
        ("/healthz", "host: 127.0.0.1", 200),
        ("/healthz", "Host: [::1]:80", 200),
        ("/healthz", "Host: Gate.example.com", 200),
        ("http://localhost/healthz", "Host: localhost", 200),
        ("/healthz", "Host: localhost.", 403),
        ("/healthz", "Host: evil.example.com", 403),
        ("/healthz", "Host: localhost.evil.example.com", 403),
        ("/healthz", "Host: 0.0.0.0", 403),
        ("/healthz", "Host: 192.168.0.7", 403),
        ("/healthz", "Host:", 403),
        ("/healthz", "X-Host: localhost", 403),
        ("/healthz", "Host: localhost\r\nHost: localhost", 403),
        ("/healthz", "Host: localhost\r\nhost: evil.example.com", 403),
        ("http://evil.example.com/healthz", "Host: localhost", 403),
        ("http://localhost/healthz", "Host: evil.example.com", 403),
        ("http://evil.example.com/healthz", "Host: evil.example.com", 403),
        ("/no/such/path", "Host: evil.example.com", 403),
        ("/healthz", "Host: localhost\r\nOrigin: null", 403),
        ("/healthz", "Host: localhost\r\nOrigin: https://evil.example.com", 403),
        ("/healthz", "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: null", 403),
    ];
    let agents = [
        ("/healthz", "Host: localhost\r\nOrigin: http://localhost:6274", 200),
        ("/healthz", "Host: localhost\r\nOrigin: https://app.example.com", 200),
    ];
    let people = [
        ("/healthz", own.as_str(), 200),
        ("/healthz", "Host: localhost\r\nOrigin: http://localhost:6274", 403),
        ("/healthz", "Host: localhost\r\nOrigin: https://app.example.com", 403),
    ];
    let agents = both.iter().chain(&agents).map(|case| (&mcp, case));
    let people = both.iter().chain(&people).map(|case| (&admin, case));
    for (address, (target, headers, status)) in agents.chain(people) {
        let reply = ask(address, &format!("GET {target} HTTP/1.1\r\n{headers}\r\n\r\n"));
        assert_eq!(reply.status, *status, "{target} {headers}: {reply:?}");
        let helps = reply.body.contains("header") || reply.body.contains("host");
        assert!(*status == 200 || helps || reply.body.contains("origins"), "{reply:?}");
    }
}

#[test]
fn invalid_heads_end_only_their_connection() {
    let gate = Gate::start("");
    let mut kept = Connection::open(&gate.mcp());
    let long = "x".repeat(40_000);
    let many = "X-One: more\r\n".repeat(101);
    let cases = [
        ("no http at all\r\n\r\n".to_owned(), 400),
        ("GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned(), 400),
        ("GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n".to_owned(), 400),
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n".to_owned(), 400),
        ("POST /mcp/x HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(), 400),
        (format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {long}\r\n\r\n"), 431),
        (format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), 431),
    ];
    for (request, status) in cases {
        let shown: String = request.chars().take(80).collect();
        let mut connection = Connection::open(&gate.mcp());
        // It may hang up before it has read everything, and then the answer may be lost.
        if connection.try_send(request.as_bytes()).is_ok()
            && let Some(head) = connection.try_head()
        {
            assert_eq!(head.status, status, "{shown}");
        }
    }
    kept.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(kept.reply().status, 200, "another connection is not disturbed");
}

#[test]
fn one_body_cannot_be_read_as_two_requests() {
    let gate = Gate::start("");
    let mut connection = Connection::open(&gate.mcp());
    let hidden = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let request = format!(
        "POST /mcp/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\
         Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
        hidden.len() + 5
    );
    connection.send(request.as_bytes());
    let answers = String::from_utf8(connection.rest()).unwrap();
    assert!(!answers.contains("ready\n"), "{answers}");
}

#[test]
fn a_head_that_does_not_end_is_not_waited_for() {
    let gate = Gate::start("limits: { header_read: 300ms }");
    for address in [gate.mcp(), gate.admin(), gate.address("sessions")] {
        for begun in ["", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "] {
            let mut connection = Connection::open(&address);
            connection.send(begun.as_bytes());
            let printed = String::from_utf8(connection.rest()).unwrap();
            assert!(!printed.contains("200 OK"), "{begun}: {printed}");
        }
        assert!(get(&address, "/healthz").status < 502);
    }
}

#[test]
fn a_connection_too_many_is_refused() {
    let gate = Gate::start("limits: { connections: 2 }");
    let open = || {
        let mut connection = Connection::open(&gate.mcp());
        connection.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(connection.reply().status, 200);
        connection
    };
    let (first, _second) = (open(), open());
    let reply = Connection::open(&gate.mcp()).reply();
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert!(reply.body.contains("too many connections"), "{reply:?}");
    drop(first);
    eventually("a connection is free", || {
        let mut connection = Connection::open(&gate.mcp());
        let sent = connection.try_send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        sent.ok().and_then(|()| connection.try_head()).filter(|head| head.status == 200)
    });
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let home = Home::new();
    home.configure(&format!("version: 1\n{LISTEN}\n"));
    let inner = home.command(&[]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -S -n 64 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_toolgate")])
        .args(["serve", "--ready-json"])
        .current_dir(inner.get_current_dir().unwrap())
        .env("HOME", inner.get_current_dir().unwrap())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let gate = Gate::run(home, command).map_err(|(_, printed)| printed).unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", gate.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().filter(|w| !w.contains(' ')).collect();
    let [_, _, _, soft, hard, _] = numbers.as_slice() else { panic!("{line}") };
    assert_eq!(soft, hard);
    assert_ne!(*soft, "64");
}
