//! Tasks on `/mcp`: their ids name the server and belong to the grant that created them.

use std::sync::Arc;

use toolgate_gateway::{Endpoint, Grant};
use toolgate_json::{peek, text};

use crate::auto_server::AutoServer;
use crate::client::{Client, ask};
use crate::harness::{Harness, INITIALIZE, settings};
use crate::reply::Seen;
use crate::sessionless_servers::DISCOVERED;
use crate::test_admission::policy;

const KEEPS: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{}}},"serverInfo":{"name":"s","version":"1"}}"#;

fn part(answer: &str, path: &[&str]) -> String {
    let raw = peek(answer, path).unwrap().unwrap_or_else(|| panic!("{path:?} in {answer}"));
    text(raw).unwrap().into_owned()
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_extension_is_found_where_it_was_made() {
    let (one, two) =
        (AutoServer::modern(DISCOVERED, &["t"]), AutoServer::modern(DISCOVERED, &["t"]));
    let made = r#"{"resultType":"task","taskId":"t1","status":"working","x":1.0}"#;
    for auto_server in [&one, &two] {
        auto_server.set("tools/call", made);
    }
    let harness = Harness::new();
    harness.apply([harness.played(settings("one"), &one), harness.played(settings("two"), &two)]);
    let client = Client::of(&harness, Endpoint::All);
    let call = |tool: &str| ask("tools/call", &format!(r#""name":"{tool}""#));
    let answer = client.ask(&call("two__t")).answer().await;
    let shown = part(&answer, &["result", "taskId"]);
    assert_ne!(shown, "t1");
    assert!(answer.ends_with(&format!("{}}}", made.replace("t1", &shown))), "{answer}");
    let other = client.ask(&call("one__t")).answer().await;
    assert_ne!(part(&other, &["result", "taskId"]), shown, "it says its server");

    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let raw = ask(method, &format!(r#""taskId":"{shown}""#));
        let reply = client.ask(&raw);
        let sent = two.waiting(method).await;
        let named = (sent.part(&["params", "taskId"]), sent.head("mcp-name"));
        assert_eq!(named, (Some("\"t1\""), Some("t1")), "{method}");
        sent.answer(
            r#"{"resultType":"complete","taskId":"t1","status":"completed","result":{"content":[{"type":"resource_link","uri":"a:b"}]}}"#,
        );
        let answer = reply.answer().await;
        assert_eq!(part(&answer, &["result", "taskId"]), shown, "the same id each time");
        assert!(answer.contains("\"two+a:b\""), "{answer}");
        let stranger = Grant {
            label: "other".into(),
            policy: Some(policy("version: \"1\"\ndefault: allow\n")),
            ..Grant::default()
        };
        let stranger = Client { grant: Arc::new(stranger), ..client.clone() };
        let forged = raw.replace(&shown, "t1");
        for (client, raw) in [(&stranger, &raw), (&client, &forged)] {
            let undeclared = client.ask(raw).all().await;
            let lacks =
                |seen: &Seen| matches!(seen, Seen::Body(body, 400) if body.contains("-32021"));
            assert!(matches!(undeclared.as_slice(), [seen] if lacks(seen)), "{undeclared:?}");
            let capabilities = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
            let declaring = Client { capabilities, ..client.clone() };
            let refused = declaring.ask(raw).answer().await;
            assert!(refused.contains("-32602") && refused.contains("no such task"), "{refused}");
        }
    }
    let alone = Client::of(&harness, Endpoint::Server("two".to_owned()));
    let there = part(&alone.ask(&call("t")).answer().await, &["result", "taskId"]);
    assert_eq!(there, shown, "the same id on every endpoint");
}

#[tokio::test(start_paused = true)]
async fn tasks_of_older_servers_are_listed_together() {
    let (one, two) = (AutoServer::welcoming(KEEPS, &["t"]), AutoServer::welcoming(KEEPS, &["t"]));
    let listed = r#"{"tasks":[{"taskId":"t1","status":"working"}]}"#;
    for auto_server in [&one, &two] {
        auto_server.set("tools/call", r#"{"task":{"taskId":"t1","status":"working"}}"#);
        auto_server.set("tasks/list", listed);
        let related =
            r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#;
        auto_server.set("tasks/result", related);
    }
    let harness = Harness::new();
    harness.apply([harness.played(settings("one"), &one), harness.played(settings("two"), &two)]);
    let agent = harness.open_all(INITIALIZE).await;
    assert!(agent.welcome.contains(r#""tasks":{"list":{}}"#), "{}", agent.welcome);
    let ask = |method: &str, params: &str| {
        let raw =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
        agent.ask(&raw)
    };
    let mut ids = Vec::new();
    for server in ["one", "two"] {
        let made = ask("tools/call", &format!(r#""name":"{server}__t","task":{{}}"#));
        ids.push(part(&made.answer().await, &["result", "task", "taskId"]));
    }
    let all = ask("tasks/list", "").answer().await;
    let entry = |id: &String| format!(r#"{{"taskId":"{id}","status":"working"}}"#);
    let expected: Vec<_> = ids.iter().map(entry).collect();
    assert!(all.ends_with(&format!(r#""result":{{"tasks":[{}]}}}}"#, expected.join(","))), "{all}");
    let result = ask("tasks/result", &format!(r#""taskId":"{}""#, ids[1])).answer().await;
    assert!(result.contains(&format!(r#"related-task":{{"taskId":"{}"}}"#, ids[1])), "{result}");
}

#[tokio::test(start_paused = true)]
async fn task_updates_use_the_shown_id() {
    let (one, two) = (AutoServer::welcoming(KEEPS, &["t"]), AutoServer::welcoming(KEEPS, &["t"]));
    for auto_server in [&one, &two] {
        auto_server.set("tools/call", r#"{"task":{"taskId":"t1","status":"working"}}"#);
    }
    let harness = Harness::new();
    harness.apply([harness.played(settings("one"), &one), harness.played(settings("two"), &two)]);
    let agent = harness.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    let call = |server: &str| {
        let params = format!(r#"{{"name":"{server}__t","task":{{}}}}"#);
        agent.ask(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
    };
    let told = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{"taskId":"{id}","status":"completed","x":1.0}}}}"#
        )
    };
    for (server, auto_server) in [("two", &two), ("one", &one)] {
        let made = call(server).answer().await;
        let shown = part(&made, &["result", "task", "taskId"]);
        assert_ne!(shown, "t1");
        auto_server.say(&told("t1"));
        assert_eq!(general.message().await, told(&shown), "of {server}");
    }
    // What names no task is nobody's.
    one.say(r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"x":1}}"#);
    assert!(general.so_far().await.is_empty());
}
