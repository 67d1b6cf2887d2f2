//! Servers of protocol 2026-07-28 behind the gateway, in front of them agents of either era.

use std::time::Duration;

use toolgate_audit::Outcome;
use toolgate_gateway::Endpoint;
use toolgate_gateway::channel::SendError;
use toolgate_mcp::{peek, text};

use crate::bed::{Agent, Bed, Seen, settings};
use crate::client::{Client, ask, ask_as};
use crate::player::Player;
use crate::script::{Kind, Line, Peer, Sent, settle};

/// What a server says of itself.
pub(crate) const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"instructions":"be kind","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"2"}}}"#;
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CALL: &str = r#""name":"t","arguments":{"n":1.0}"#;
const OLDER: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"roots":{"listChanged":true},"tasks":{}},"clientInfo":{"name":"a","version":"0"}}}"#;

fn modern(kind: Kind) -> (Bed, Peer) {
    Bed::of(settings("files"), Peer::modern(kind, DISCOVERED))
}

/// An agent of an older protocol and the line that was made for it.
async fn older(bed: &Bed, peer: &mut Peer) -> (Agent, Line) {
    (bed.open("files", OLDER).await.unwrap(), peer.line().await)
}

fn older_call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{CALL},"_meta":{{"progressToken":"p"}}}}}}"#
    )
}

/// The call of an older agent; over HTTP the tools are asked for before it.
async fn called(line: &mut Line) -> Sent {
    let sent = line.next().await;
    if sent.method() != "tools/list" {
        return sent;
    }
    sent.answer(r#"{"tools":[]}"#);
    line.next().await
}

fn meta<'a>(sent: &'a Sent, key: &str) -> Option<&'a str> {
    sent.part(&["params", "_meta", key])
}

#[tokio::test(start_paused = true)]
async fn everything_passes_between_equals() {
    for kind in [Kind::Child, Kind::Http] {
        let (bed, mut peer) = modern(kind);
        let client = Client { parameters: &[("mcp-param-x", "1")], ..Client::of_files(&bed) };
        let raw = ask_as("\"a\"", "tools/call", r#""name":"t", "z":1e5"#);
        let reply = client.ask(&raw);
        let mut line = peer.line().await;
        let sent = line.next().await;
        assert_eq!(sent.body, raw.replace("\"a\"", sent.id()), "its own words");
        assert_eq!(line.log().len(), 2, "no handshake but the probe");
        assert_eq!(
            (sent.head("mcp-method"), sent.head("mcp-name")),
            (Some("tools/call"), Some("t"))
        );
        assert_eq!(sent.head("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(sent.head("mcp-param-x"), Some("1"));
        // No `resultType`: that is the server's affair.
        sent.answer(r#"{"content":[],"x":1.0}"#);
        let answer = reply.answer().await;
        assert_eq!(answer, r#"{"jsonrpc":"2.0","id":"a","result":{"content":[],"x":1.0}}"#);
        let reply = client.ask(&ask("x/y", ""));
        let sent = line.next().await;
        sent.answer(r#"{"resultType":"strange","ttlMs":7}"#);
        assert!(reply.answer().await.ends_with(r#""result":{"resultType":"strange","ttlMs":7}}"#));
        let reply = client.ask(&ask("server/discover", ""));
        let sent = line.next().await;
        assert_eq!(sent.method(), "server/discover");
        sent.answer(DISCOVERED);
        assert!(reply.answer().await.ends_with(&format!("{DISCOVERED}}}")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_of_both_eras_is_spoken_to_in_that_of_the_agent() {
    let welcome = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
    let mut peer = Peer::modern(Kind::Child, DISCOVERED);
    peer.set_welcome(Some(welcome));
    let bed = Bed::new();
    bed.apply([bed.server(settings("files"), &peer)]);
    let (_agent, older_line) = bed.agent_on(&mut peer).await;
    assert!(older_line.log()[0].contains("initialize"), "{:?}", older_line.log());
    let reply = Client::of_files(&bed).ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    let sent = line.next().await;
    assert!(line.log()[0].contains("server/discover") && meta(&sent, VERSION).is_some());
    sent.answer("{}");
    reply.answer().await;
}

#[tokio::test(start_paused = true)]
async fn an_older_agent_does_not_notice_what_the_server_speaks() {
    for kind in [Kind::Child, Kind::Http] {
        let (bed, mut peer) = modern(kind);
        let (agent, mut line) = older(&bed, &mut peer).await;
        assert_eq!(
            agent.welcome,
            r#"{"jsonrpc":"2.0","id":"hello","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"n","version":"2"},"instructions":"be kind"}}"#
        );
        agent.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        agent.tell(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
        let local = [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}"#,
        ];
        for raw in local {
            assert_eq!(agent.ask(raw).answer().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        }
        let mut reply = agent.ask(&older_call("7"));
        let sent = called(&mut line).await;
        let asked = usize::from(kind == Kind::Http);
        assert_eq!(line.log().len(), 3 + asked, "no word too many: {:?}", line.log());
        assert_eq!(meta(&sent, VERSION), Some("\"2026-07-28\""));
        let able = r#"{"elicitation":{},"roots":{"listChanged":true}}"#;
        assert_eq!(meta(&sent, "io.modelcontextprotocol/clientCapabilities"), Some(able));
        assert_eq!(meta(&sent, "io.modelcontextprotocol/logLevel"), Some("\"info\""));
        assert_eq!(sent.head("mcp-name"), Some("t"));
        let token = meta(&sent, "progressToken").unwrap();
        sent.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        ));
        assert!(reply.message().await.contains(r#""progressToken":"p""#));
        sent.answer(r#"{"resultType":"complete","content":[1.0],"_meta":{"k":1}}"#);
        assert_eq!(
            reply.message().await,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[1.0],"_meta":{"k":1}}}"#
        );
        let read = agent
            .ask(r#"{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"a:b"}}"#);
        let sent = line.next().await;
        sent.say_error(-32602, "not found");
        assert!(read.answer().await.contains("-32002"));
        let forged = agent.ask(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t","requestState":"s"}}"#);
        assert!(forged.answer().await.contains("-32602"));
        assert!(line.rest().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_agent_is_asked_in_mid_call() {
    for kind in [Kind::Child, Kind::Http] {
        let (bed, mut peer) = modern(kind);
        bed.office.enforce(
            "version: \"1\"\ndefault: allow\ntools:\n  t:\n    limits: [{ counter: once, window: hour, max: 1, scope: grant }]\n",
        );
        let (agent, mut line) = older(&bed, &mut peer).await;
        let mut reply = agent.ask(&older_call("7"));
        let sent = called(&mut line).await;
        let first = sent.id().to_owned();
        sent.answer(r#"{"resultType":"input_required","inputRequests":{"one":{"method":"elicitation/create","params":{"message":"m"}},"two":{"method":"roots/list"}},"requestState":"s1"}"#);
        let (one, two) = (reply.message().await, reply.message().await);
        assert!(one.contains(r#""method":"elicitation/create","params":{"message":"m"}"#), "{one}");
        assert!(two.contains("roots/list"), "{two}");
        let id = |raw: &str| peek(raw, &["id"]).unwrap().unwrap().to_owned();
        // A person takes longer than a call may.
        tokio::time::sleep(Duration::from_mins(5)).await;
        agent
            .tell(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, id(&two)))
            .await;
        assert!(line.rest().await.is_empty(), "not before everything is answered");
        agent
            .tell(&format!(
                r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"no"}}}}"#,
                id(&one)
            ))
            .await;
        let sent = line.next().await;
        assert_ne!(sent.id(), first);
        assert_eq!(sent.part(&["params", "requestState"]), Some("\"s1\""));
        assert_eq!(
            sent.part(&["params", "inputResponses"]),
            Some(r#"{"two":{"roots":[]},"one":{"action":"cancel"}}"#)
        );
        assert_eq!(meta(&sent, "progressToken"), Some(sent.id()));
        sent.answer(r#"{"resultType":"complete","content":[]}"#);
        assert_eq!(reply.message().await, r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#);
        let rows = bed.office.rows_by(2).await;
        let outcomes: Vec<_> = rows.iter().map(|row| row.draft.outcome).collect();
        assert_eq!(outcomes, [None, Some(Outcome::Ok)], "one call");
    }
}

/// The answer that asks the client, and the state in it.
fn state_in(answer: &str) -> String {
    let state = peek(answer, &["result", "requestState"]).unwrap().unwrap();
    text(state).unwrap().into_owned()
}

#[tokio::test(start_paused = true)]
async fn a_question_passes_between_equals_under_a_state_of_ours() {
    for kind in [Kind::Child, Kind::Http] {
        let (bed, mut peer) = modern(kind);
        let client = Client::of_files(&bed);
        let mut reply = client.ask(&ask_as("1", "tools/call", CALL));
        let mut line = peer.line().await;
        let sent = line.next().await;
        sent.answer(r#"{"x":1.0,"resultType":"input_required","inputRequests":{"own":{"method":"any/thing"}},"requestState":"theirs"}"#);
        let answer = reply.message().await;
        let state = state_in(&answer);
        assert_eq!(
            answer.replace(&state, "theirs"),
            r#"{"jsonrpc":"2.0","id":1,"result":{"x":1.0,"resultType":"input_required","inputRequests":{"own":{"method":"any/thing"}},"requestState":"theirs"}}"#
        );
        assert_eq!(reply.next().await, None, "the request is over");
        let retry = |id: &str, state: &str| {
            let more = format!(
                r#"{CALL},"inputResponses":{{"own":7,"more":[]}},"requestState":"{state}""#
            );
            ask_as(id, "tools/call", &more)
        };
        let refusal = client.refusal(&retry("2", "theirs")).await;
        assert!(refusal.starts_with("-32602 "), "{refusal}");
        let reply = client.ask(&retry("\"r\"", &state));
        let again = line.next().await;
        assert_ne!(again.id(), sent.id());
        assert_eq!(again.body, retry(again.id(), "theirs"), "as the client wrote it");
        let replayed = client.refusal(&retry("3", &state)).await;
        assert!(replayed.contains("was used"), "{replayed}");
        again.answer(r#"{"resultType":"complete","content":[]}"#);
        assert_eq!(
            reply.answer().await,
            r#"{"jsonrpc":"2.0","id":"r","result":{"resultType":"complete","content":[]}}"#
        );
        let rows = bed.office.rows_by(3).await;
        let outcomes: Vec<_> = rows.iter().map(|row| row.draft.outcome).collect();
        assert_eq!(outcomes, [None, Some(Outcome::InputRequired), Some(Outcome::Ok)]);
        assert!(rows.iter().all(|row| row.draft.call_id == rows[0].draft.call_id));
    }
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_has_cancelled_whatever_either_speaks() {
    for kind in [Kind::Child, Kind::Http] {
        let (bed, mut peer) = modern(kind);
        let reply = Client::of_files(&bed).ask(&ask("tools/call", CALL));
        let mut line = peer.line().await;
        let sent = line.next().await;
        settle().await;
        drop(reply);
        settle().await;
        match kind {
            Kind::Http => assert!(sent.hung_up() && line.rest().await.is_empty()),
            Kind::Child => {
                let told = line.next().await;
                assert_eq!(told.part(&["params", "requestId"]), Some(sent.id()));
            }
        }
        let (agent, mut line) = older(&bed, &mut peer).await;
        let mut reply = agent.ask(&older_call("7"));
        let sent = called(&mut line).await;
        agent
            .tell(
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
            )
            .await;
        match kind {
            Kind::Http => {
                assert!(line.rest().await.is_empty() && sent.hung_up());
                assert_eq!(reply.next().await, None);
            }
            Kind::Child => {
                let told = line.next().await;
                assert_eq!(told.part(&["params", "requestId"]), Some(sent.id()));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_question_of_nobody_is_given_up() {
    let (bed, mut peer) = modern(Kind::Http);
    let client = Client::of_files(&bed);
    let mut reply = client.ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    line.next().await.answer(r#"{"resultType":"input_required","inputRequests":{}}"#);
    let state = state_in(&reply.message().await);
    tokio::time::sleep(Duration::from_secs(601)).await;
    let more = format!(r#"{CALL},"requestState":"{state}""#);
    let refusal = client.refusal(&ask("tools/call", &more)).await;
    assert!(refusal.starts_with("-32602 "), "{refusal}");
    assert!(line.rest().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn older_agents_hear_changes_over_one_stream() {
    for kind in [Kind::Child, Kind::Http] {
        let (bed, mut peer) = modern(kind);
        let (agent, mut line) = older(&bed, &mut peer).await;
        let mut heard = agent.listen();
        let sent = line.next().await;
        assert_eq!(sent.method(), "subscriptions/listen");
        assert_eq!(sent.part(&["params", "notifications"]), Some(r#"{"toolsListChanged":true}"#));
        let tagged = |sent: &Sent, what: &str, more: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/{what}","params":{{{more}"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}}}"#,
                sent.id()
            )
        };
        sent.say(&tagged(
            &sent,
            "subscriptions/acknowledged",
            r#""notifications":{"toolsListChanged":true},"#,
        ));
        sent.say(&tagged(&sent, "tools/list_changed", ""));
        assert_eq!(
            heard.so_far().await,
            [
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{}}}"#
            ]
        );
        let subscribe = |uri: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
            )
        };
        let reply = agent.ask(&subscribe("a:b"));
        let second = line.next().await;
        assert_eq!(
            second.part(&["params", "notifications", "resourceSubscriptions"]),
            Some(r#"["a:b"]"#)
        );
        second.say(&tagged(
            &second,
            "subscriptions/acknowledged",
            r#""notifications":{"resourceSubscriptions":["a:b"]},"#,
        ));
        assert_eq!(reply.answer().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        match kind {
            Kind::Child => {
                let told = line.next().await;
                assert_eq!(told.part(&["params", "requestId"]), Some(sent.id()));
            }
            Kind::Http => assert!(line.rest().await.is_empty() && sent.hung_up()),
        }
        second.say(&tagged(&second, "resources/updated", r#""uri":"a:b","#));
        let heard = heard.so_far().await;
        assert!(heard[0].contains(r#""uri":"a:b""#) && !heard[0].contains("subscriptionId"));
        let refused = agent.ask(&subscribe("a:c"));
        let third = line.next().await;
        third.say(&tagged(
            &third,
            "subscriptions/acknowledged",
            r#""notifications":{"resourceSubscriptions":["a:b"]},"#,
        ));
        assert!(refused.answer().await.contains("-32602"));
    }
}

#[tokio::test(start_paused = true)]
async fn headers_repeat_what_the_tool_says() {
    let list = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"string","x-mcp-header":"N"}}}},{"name":"bad","inputSchema":{"properties":{"n":{"type":"number","x-mcp-header":"N"}}}}],"ttlMs":0}"#;
    let (bed, mut peer) = modern(Kind::Http);
    let (agent, mut line) = older(&bed, &mut peer).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":"é"}}}"#;
    let reply = agent.ask(call);
    let asked = line.next().await;
    assert_eq!(asked.method(), "tools/list");
    asked.answer(list);
    let sent = line.next().await;
    assert_eq!(sent.head("mcp-param-n"), Some("=?base64?w6k=?="));
    // The server has changed its mind: its tools are asked for again.
    let mismatch = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"m"}}"#;
    sent.refuse(SendError::Refused { status: 400, body: mismatch.into() });
    line.next().await.answer(&list.replace("\"N\"", "\"M\""));
    let sent = line.next().await;
    assert_eq!(
        (sent.head("mcp-param-n"), sent.head("mcp-param-m")),
        (None, Some("=?base64?w6k=?="))
    );
    sent.answer("{}");
    reply.answer().await;
    let reply = agent.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    line.next().await.answer(list);
    let shown = reply.answer().await;
    assert!(
        shown.contains("\"t\"") && !shown.contains("bad") && !shown.contains("ttlMs"),
        "{shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_an_older_server_cannot_check_is_checked_here() {
    let player = Player::with_tools(&["t"]);
    player.set("tools/list", r#"{"tools":[{"name":"t","inputSchema":{"properties":{"n":{"type":"string","x-mcp-header":"N"}}}}]}"#);
    player.set("tools/call", r#"{"content":[]}"#);
    let bed = Bed::new();
    bed.apply([bed.played(settings("files"), &player)]);
    let call = ask("tools/call", r#""name":"t","arguments":{"n":"v"}"#);
    let client = Client::of_files(&bed);
    client.ask(&ask("tools/list", "")).answer().await;
    let refusal = client.refusal(&call).await;
    assert!(refusal.starts_with("-32020 "), "{refusal}");
    let wrong = Client { parameters: &[("mcp-param-n", "w")], ..client.clone() };
    assert!(wrong.refusal(&call).await.starts_with("-32020 "));
    let right = Client { parameters: &[("mcp-param-n", "v")], ..client };
    right.ask(&call).answer().await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_leaves_older_servers_usable() {
    // It dies of a question that it does not know.
    let (bed, mut peer) = Bed::of(settings("files"), Peer::silent(Kind::Child));
    let client = Client::of_files(&bed);
    let reply = client.ask(&ask("tools/call", CALL));
    let mut first = peer.line().await;
    assert_eq!(first.next().await.method(), "server/discover");
    peer.set_welcome(Some(crate::script::WELCOME));
    first.break_off("it died");
    let mut line = peer.line().await;
    let sent = line.next().await;
    assert_eq!(sent.method(), "tools/call");
    assert!(line.log()[0].contains("initialize"));
    sent.answer("{}");
    reply.answer().await;
    // It says nothing at all to it.
    let (bed, mut peer) = Bed::of(settings("files"), Peer::silent(Kind::Child));
    let client = Client::of_files(&bed);
    let reply = client.ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    assert_eq!(line.next().await.method(), "server/discover");
    let hello = line.next().await;
    assert_eq!(hello.method(), "initialize");
    hello.answer(crate::script::WELCOME);
    assert_eq!(line.next().await.method(), "notifications/initialized");
    line.next().await.answer("{}");
    reply.answer().await;
    // Remembered: the next one is not asked.
    let other = Client { session: Some("other"), ..client };
    let _reply = other.ask(&ask("tools/call", CALL));
    assert_eq!(peer.line().await.next().await.method(), "initialize");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_changed_its_protocol_is_found_out() {
    let (bed, mut peer) = modern(Kind::Http);
    let client = Client::of_files(&bed);
    let reply = client.ask(&ask("tools/call", CALL));
    let mut line = peer.line().await;
    line.next().await.answer("{}");
    reply.answer().await;
    peer.set_discover(None);
    peer.set_welcome(Some(crate::script::WELCOME));
    let reply = client.ask(&ask("tools/call", CALL));
    let refusal =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#;
    line.next().await.refuse(SendError::Refused { status: 400, body: refusal.into() });
    let mut line = peer.line().await;
    let sent = line.next().await;
    assert!(meta(&sent, VERSION).is_none());
    sent.answer(r#"{"content":[]}"#);
    assert!(reply.answer().await.contains(r#""resultType":"complete""#));
}

#[tokio::test(start_paused = true)]
async fn servers_of_both_eras_stand_side_by_side() {
    let modern = Player::modern(DISCOVERED, &["new"]);
    let legacy = Player::with_tools(&["old"]);
    for player in [&modern, &legacy] {
        player.set("tools/call", r#"{"content":[]}"#);
    }
    let bed = Bed::new();
    bed.apply([bed.played(settings("m"), &modern), bed.played(settings("l"), &legacy)]);
    let agent = bed.open_all(crate::bed::INITIALIZE).await;
    let client = Client::of(&bed, Endpoint::All);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for listed in
        [agent.ask(list).answer().await, client.ask(&ask("tools/list", "")).answer().await]
    {
        assert!(listed.contains("m__new") && listed.contains("l__old"), "{listed}");
    }
    for tool in ["m__new", "l__old"] {
        let params = format!(r#""name":"{tool}""#);
        let raw =
            format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{{params}}}}}"#);
        assert!(agent.ask(&raw).answer().await.ends_with(r#""result":{"content":[]}}"#));
        let answer = client.ask(&ask("tools/call", &params)).answer().await;
        assert!(answer.contains(r#""content":[]"#), "{answer}");
    }
    modern.unset("tools/call");
    let mut reply = client.ask(&ask("tools/call", r#""name":"m__new""#));
    let sent = modern.waiting("tools/call").await;
    assert_eq!(sent.part(&["params", "name"]), Some("\"new\""));
    sent.answer(r#"{"resultType":"input_required","inputRequests":{},"requestState":"s"}"#);
    let state = state_in(&reply.message().await);
    let more = format!(r#""name":"m__new","requestState":"{state}""#);
    let reply = client.ask(&ask("tools/call", &more));
    let sent = modern.waiting("tools/call").await;
    assert_eq!(sent.part(&["params", "name"]), Some("\"new\""));
    assert_eq!(
        (sent.part(&["params", "requestState"]), sent.head("mcp-name")),
        (Some("\"s\""), Some("new"))
    );
    sent.answer(r#"{"resultType":"complete"}"#);
    assert!(matches!(&reply.all().await[..], [Seen::Event(_) | Seen::Body(_, 200)]));
}
