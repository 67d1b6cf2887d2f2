//! Cursors on `/mcp/<server>`: sealed, for the grant and the list that they were given for.

use std::sync::Arc;

use toolgate_gateway::{Endpoint, Grant};
use toolgate_json::{members, peek, text};

use crate::auto_server::AutoServer;
use crate::harness::{Agent, Harness, INITIALIZE, request, settings, shared};
use crate::script::Kind;
use crate::test_admission::policy;

const WELCOME: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}"#;
const METHODS: [&str; 4] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
const MEMBERS: [&str; 4] = ["tools", "prompts", "resources", "resourceTemplates"];

async fn open(harness: &Harness, label: &str) -> Agent {
    let policy = Some(policy("version: \"1\"\ndefault: allow\n"));
    let grant = Arc::new(Grant { label: label.into(), policy, ..Grant::default() });
    let endpoint = Endpoint::Server("files".to_owned());
    let (session, welcome) =
        harness.gateway.open(&endpoint, &request(INITIALIZE), &grant).await.unwrap();
    Agent { session, welcome: String::from_utf8(welcome.to_vec()).unwrap() }
}

/// The raw `nextCursor` of the answer, or the code of its error.
async fn page(agent: &Agent, method: &str, cursor: &str) -> String {
    let params = format!(r#"{{"cursor":{cursor}}}"#);
    let asked = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let answer = agent.ask(&asked).answer().await;
    let [result, error] = members(&answer, ["result", "error"]).unwrap();
    match (result, error) {
        (Some(result), None) => peek(result, &["nextCursor"]).unwrap().unwrap_or("-").to_owned(),
        (None, Some(error)) => peek(error, &["code"]).unwrap().unwrap().to_owned(),
        _ => panic!("{answer}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_cursor_continues_its_own_list_for_its_own_grant() {
    for settings in [shared("files"), settings("files")] {
        let (harness, server) = (Harness::new(), AutoServer::welcoming(WELCOME, &[]));
        for (method, member) in METHODS.iter().zip(MEMBERS) {
            server.set(method, &format!(r#"{{"{member}":[],"nextCursor":"p\u0032"}}"#));
        }
        harness.apply([harness.played(settings, &server)]);
        let (mine, other) = (open(&harness, "mine").await, open(&harness, "other").await);
        for method in METHODS {
            let shown = page(&mine, method, "null").await;
            assert!(text(&shown).is_some_and(|it| it.len() > 40 && !it.contains("p2")), "{shown}");
            // The same page has the same cursor, also in another agent session.
            assert_eq!(page(&mine, method, &shown).await, shown);
            assert_eq!(page(&open(&harness, "mine").await, method, &shown).await, shown);
            // The server would answer any of these.
            for invalid in [r#""p2""#, r#""p\u0032""#, r#""""#, "2", r#"["p2"]"#] {
                assert_eq!(page(&mine, method, invalid).await, "-32602", "{invalid}");
            }
            assert_eq!(page(&other, method, &shown).await, "-32602");
            let another = METHODS.iter().find(|it| **it != method).unwrap();
            assert_eq!(page(&mine, another, &shown).await, "-32602");
            assert_ne!(page(&other, method, "null").await, shown, "each grant has its own");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_receives_its_own_cursor() {
    let (harness, mut peer) = Harness::one(Kind::Child);
    let (agent, mut line) = harness.agent_on(&mut peer).await;
    let first = agent.ask(r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#);
    line.next().await.answer(r#"{"prompts":[],"nextCursor":"p\u0032","x":1.0}"#);
    let first = first.answer().await;
    let shown = peek(&first, &["result", "nextCursor"]).unwrap().unwrap();
    assert_eq!(
        first,
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"prompts":[],"nextCursor":{shown},"x":1.0}}}}"#
        )
    );
    let next = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"prompts/list","params":{{"cursor":{shown},"x":1.0}}}}"#
    );
    let next = agent.ask(&next);
    let sent = line.next().await;
    assert_eq!(sent.part(&["params"]), Some(r#"{"cursor":"p\u0032","x":1.0}"#));
    sent.answer(r#"{"prompts":[],"nextCursor":null}"#);
    assert!(next.answer().await.ends_with(r#""result":{"prompts":[],"nextCursor":null}}"#));
    // A list that could be read in two ways is not shown.
    let twice = agent.ask(r#"{"jsonrpc":"2.0","id":3,"method":"prompts/list"}"#);
    line.next().await.answer(r#"{"prompts":[],"nextCursor":null,"nextCursor":"p3"}"#);
    let twice = twice.answer().await;
    assert!(twice.contains("cannot be read") && !twice.contains("p3"), "{twice}");
}
