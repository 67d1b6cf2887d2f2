//! Clients of protocol 2026-07-28 with sessionful servers.

use std::sync::Arc;
use std::time::Duration;

use toolgate_gateway::{AgentSessions, Endpoint, Grant};
use toolgate_json::peek;

use crate::auto_server::AutoServer;
use crate::client::{Client, ask, ask_as};
use crate::harness::{Harness, settings};
use crate::reply::Seen;
use crate::script::{Kind, Peer, settle};
use crate::test_admission::policy;

const CALL: &str = r#""name":"t","arguments":{"n":1.0}"#;

#[tokio::test(start_paused = true)]
async fn a_request_goes_out_in_the_older_protocol_and_its_answer_comes_back_in_the_newer() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let client = Client::of_files(&harness);
        let reply = client.ask(&ask("tools/call", CALL));
        let mut line = peer.line().await;
        let sent = line.next().await;
        let id = sent.id();
        assert_eq!(
            sent.body,
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"n":1.0}},"_meta":{{}}}}}}"#
            )
        );
        let handshake = line.log();
        assert!(handshake[0].contains(r#""protocolVersion":"2025-11-25","capabilities":{}"#));
        assert!(handshake[1].contains("notifications/initialized"));
        sent.answer(r#"{"content":[],"x":1e5}"#);
        assert_eq!(
            reply.answer().await,
            r#"{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","content":[],"x":1e5}}"#
        );
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_number_alike_never_meet() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let client = Client::of_files(&harness);
    let replies: Vec<_> =
        (0..9).map(|n| client.ask(&ask("tools/call", &format!(r#""name":"t{n}""#)))).collect();
    let mut line = peer.line().await;
    let mut sent = Vec::new();
    for _ in &replies {
        sent.push(line.next().await);
    }
    for request in sent.iter().rev() {
        request.answer(&format!(r#"{{"to":{}}}"#, request.part(&["params", "name"]).unwrap()));
    }
    for (n, reply) in replies.into_iter().enumerate() {
        let answer = reply.answer().await;
        assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":"a","#), "{answer}");
        assert_eq!(peek(&answer, &["result", "to"]).unwrap(), Some(&*format!(r#""t{n}""#)));
    }
    settle().await;
    assert_eq!(peer.tried(), 1);
}

#[tokio::test(start_paused = true)]
async fn clients_share_a_link_only_with_equal_grants_and_capabilities() {
    let auto_server = AutoServer::with_tools(&["t"]);
    auto_server.set("tools/call", r#"{"content":[]}"#);
    let harness = Harness::new();
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let client = Client::of_files(&harness);
    let other = Grant {
        label: "other".into(),
        policy: Some(policy("version: \"1\"\ndefault: allow\n")),
        ..Grant::default()
    };
    let steps = [
        (client.clone(), 1),
        (client.clone(), 1),
        (Client { session: Some("s"), ..client.clone() }, 2),
        (Client { capabilities: r#"{"experimental":{}}"#, ..client.clone() }, 3),
        (Client { session: Some("s"), ..client.clone() }, 3),
        (Client { grant: Arc::new(other), ..client.clone() }, 4),
        (client.clone(), 4),
    ];
    for (step, (client, conversations)) in steps.into_iter().enumerate() {
        client.ask(&ask("tools/call", CALL)).answer().await;
        assert_eq!(auto_server.connector().tried(), conversations, "step {step}");
    }
    // Nobody has used any of them for long.
    tokio::time::sleep(Duration::from_mins(31)).await;
    harness.gateway.sweep();
    settle().await;
    assert_eq!(harness.count("agent_sessions"), 0);
    client.ask(&ask("tools/call", CALL)).answer().await;
    assert_eq!(auto_server.connector().tried(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_sessions_holds_for_these_clients_too() {
    let harness =
        Harness::with_limits(AgentSessions { max: 1, per_grant: 9, idle: Duration::from_mins(30) });
    let peer = Peer::new(Kind::Child);
    let limits = AgentSessions { max: 1, per_grant: 9, idle: Duration::from_mins(30) };
    harness.gateway.apply(vec![harness.server(settings("files"), &peer)], limits);
    let client = Client::of_files(&harness);
    let _reply = client.ask(&ask("tools/list", ""));
    settle().await;
    let second = Client { session: Some("s"), ..client.clone() };
    assert_eq!(second.refusal(&ask("tools/list", "")).await, "TooMany(1)");
    let first = client.refusal(&ask("tools/list", "")).await;
    assert_eq!(first, "not refused", "the first one has its place");
}

#[tokio::test(start_paused = true)]
async fn hanging_up_cancels() {
    for kind in [Kind::Child, Kind::Http] {
        let (harness, mut peer) = Harness::one(kind);
        let client = Client::of_files(&harness);
        let (gone, stays) =
            (client.ask(&ask("tools/call", CALL)), client.ask(&ask("tools/call", CALL)));
        let mut line = peer.line().await;
        let (first, second) = (line.next().await, line.next().await);
        drop(gone);
        let told = line.rest().await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("notifications/cancelled"));
        assert_eq!(peek(&told[0], &["params", "requestId"]).unwrap(), Some(first.id()));
        second.answer("{}");
        stays.answer().await;
        assert!(line.rest().await.is_empty(), "what is answered is not cancelled");
        drop(first);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_comes_on_the_stream_and_log_messages_only_if_wanted() {
    for (level, wanted) in [(None, 0), (Some("warning"), 1), (Some("debug"), 2)] {
        let (harness, mut peer) = Harness::one(Kind::Http);
        let client = Client { level, ..Client::of_files(&harness) };
        let call =
            ask("tools/call", CALL).replace(r#""_meta":{"#, r#""_meta":{"progressToken":"p","#);
        let reply = client.ask(&call);
        let mut line = peer.line().await;
        let mut sent = line.next().await;
        if let Some(level) = level {
            assert_eq!(sent.method(), "logging/setLevel");
            assert_eq!(sent.part(&["params", "level"]), Some(&*format!("\"{level}\"")));
            sent.answer("{}");
            sent = line.next().await;
        }
        let token = sent.part(&["params", "_meta", "progressToken"]).unwrap();
        sent.say(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#));
        for level in ["info", "error"] {
            sent.say(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}"}}}}"#));
        }
        sent.answer("{}");
        let all = reply.all().await;
        assert_eq!(all.len(), 2 + wanted, "{all:?}");
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#;
        assert_eq!(all[0], Seen::Event(progress.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn questions_outside_of_a_call_are_rejected() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let client = Client::of_files(&harness);
    let reply = client.ask(&ask("tools/list", ""));
    let mut line = peer.line().await;
    line.next().await.answer("{}");
    reply.answer().await;
    for (method, answer) in [("ping", "result"), ("roots/list", "error"), ("x/y", "error")] {
        line.say(&format!(r#"{{"jsonrpc":"2.0","id":"q","method":"{method}"}}"#));
        let said = line.next().await;
        assert!(said.part(&[answer]).is_some(), "{}", said.body);
        assert_eq!(said.id(), "\"q\"");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_server_can_do_is_found_without_a_handshake() {
    let auto_server = AutoServer::welcoming(
        r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"tasks":{},"x":1.0},"serverInfo":{"name":"s","version":"1"},"instructions":"be kind"}"#,
        &["t"],
    );
    let harness = Harness::new();
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let discover = ask("server/discover", "");
    let answer = Client::of_files(&harness).ask(&discover).answer().await;
    assert_eq!(
        answer,
        r#"{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"x":1.0},"instructions":"be kind","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#
    );
    let all = Client::of(&harness, Endpoint::All).ask(&discover).answer().await;
    let part = |path: &[&str]| peek(&all, path).unwrap().unwrap_or_default().to_owned();
    assert_eq!(part(&["result", "supportedVersions"]), r#"["2026-07-28"]"#);
    assert_eq!(part(&["result", "capabilities", "tools"]), r#"{"listChanged":true}"#);
    assert!(part(&["result", "instructions"]).contains("be kind"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_server_is_reported() {
    let (harness, peer) = Harness::one(Kind::Http);
    for _ in 0..2 {
        let error = toolgate_gateway::channel::SendError::NotSent("refused".to_owned());
        peer.next_connect(crate::script::Connect::Refuse(error));
    }
    let client = Client::of_files(&harness);
    let answer = client.ask(&ask("server/discover", "")).answer().await;
    assert!(answer.contains("upstream_unavailable"), "{answer}");
    let answer = client.ask(&ask("tools/call", CALL)).answer().await;
    assert!(answer.contains(r#""resultType":"complete""#) && answer.contains("not_started"));
}

#[tokio::test(start_paused = true)]
async fn all_servers_are_seen_and_called_without_a_handshake() {
    let (one, two) = (AutoServer::with_tools(&["read"]), AutoServer::with_tools(&["read"]));
    for auto_server in [&one, &two] {
        auto_server.set("tools/call", r#"{"content":[]}"#);
    }
    let harness = Harness::new();
    harness.apply([harness.played(settings("zed"), &one), harness.played(settings("abc"), &two)]);
    let client = Client::of(&harness, Endpoint::All);
    let list = client.ask(&ask("tools/list", "")).answer().await;
    let head = r#"{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"my_permissions","#;
    let tail = r#"},{"name":"zed__read"},{"name":"abc__read"}]}}"#;
    assert!(list.starts_with(head) && list.ends_with(tail), "{list}");
    one.received();
    let answer = client.ask(&ask_as("7", "tools/call", r#""name":"abc__read""#)).answer().await;
    assert_eq!(
        answer,
        r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[]}}"#
    );
    assert!(one.received().is_empty());
    assert!(two.received().iter().any(|body| body.contains(r#""name":"read""#)));
    let unknown = client.ask(&ask("x/y", "")).all().await;
    assert!(matches!(&unknown[..], [Seen::Body(_, 404)]), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn policies_hold_for_these_clients_too() {
    let auto_server = AutoServer::with_tools(&["read", "delete"]);
    auto_server.set("tools/call", r#"{"content":[]}"#);
    let harness = Harness::new();
    harness
        .test_admission
        .enforce("version: \"1\"\ndefault: allow\ntools:\n  delete: { action: deny }\n");
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let client = Client::of_files(&harness);
    let denied = client.ask(&ask("tools/call", r#""name":"delete""#)).answer().await;
    assert!(denied.contains(r#""resultType":"complete""#) && denied.contains("policy_denied"));
    assert!(!auto_server.received().iter().any(|body| body.contains("tools/call")));
    let rows = harness.test_admission.rows_by(1).await;
    assert_eq!(rows[0].draft.via.as_deref(), Some("/mcp/files"));
}

#[tokio::test(start_paused = true)]
async fn what_an_older_server_cannot_check_is_checked_here() {
    let auto_server = AutoServer::with_tools(&["t"]);
    auto_server.set("tools/list", r#"{"tools":[{"name":"t","inputSchema":{"properties":{"n":{"type":"string","x-mcp-header":"N"}}}}]}"#);
    auto_server.set("tools/call", r#"{"content":[]}"#);
    let harness = Harness::new();
    harness.apply([harness.played(settings("files"), &auto_server)]);
    let call = ask("tools/call", r#""name":"t","arguments":{"n":"v"}"#);
    let client = Client::of_files(&harness);
    client.ask(&ask("tools/list", "")).answer().await;
    let refusal = client.refusal(&call).await;
    assert!(refusal.starts_with("-32020 "), "{refusal}");
    let wrong = Client { parameters: &[("mcp-param-n", "w")], ..client.clone() };
    assert!(wrong.refusal(&call).await.starts_with("-32020 "));
    let right = Client { parameters: &[("mcp-param-n", "v")], ..client };
    right.ask(&call).answer().await;
}
