//! Agents of one server are notified when a policy, a grant or a class hides or shows something.
//!
//! The server itself sends no notification here; only toolgate knows of the change.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use toolgate_gateway::{Access, Endpoint, Grant, ServerSettings};
use toolgate_policy::Class;

use crate::auto_server::AutoServer;
use crate::client::{self, Client};
use crate::harness::{Harness, INITIALIZE, settings};
use crate::reply::Reply;
use crate::test_admission::policy;

const ALLOW: &str = "version: \"1\"\ndefault: allow\n";
const LISTS: [&str; 3] = ["tools", "prompts", "resources"];

fn harness() -> (Harness, AutoServer) {
    let auto_server = AutoServer::with_tools(&["read_a", "note_a"]);
    auto_server.set("prompts/list", r#"{"prompts":[{"name":"p"}]}"#);
    auto_server.set("resources/list", r#"{"resources":[{"uri":"file:///a","name":"a"}]}"#);
    let harness = Harness::new();
    harness.test_admission.enforce(ALLOW);
    harness.apply([harness.played(settings("files"), &auto_server)]);
    (harness, auto_server)
}

/// What is told on the stream by the time that nothing moves any more, without the acknowledgement.
async fn told(stream: &mut Reply) -> Vec<&'static str> {
    tokio::time::sleep(Duration::from_secs(5)).await;
    let seen = stream.so_far().await;
    let is_told = |list: &&str| {
        let method = format!("notifications/{list}/list_changed");
        seen.iter().filter(|body| body.contains(&method)).count() == 1
    };
    LISTS.into_iter().filter(is_told).collect()
}

/// The general stream of an agent session, or a stream of changes without one.
async fn stream(harness: &Harness, newer: bool, has_listed: bool) -> Reply {
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    if has_listed {
        for list in LISTS {
            let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{list}/list"}}"#);
            agent.ask(&list).answer().await;
        }
    }
    if !newer {
        return agent.listen();
    }
    let client = Client::of(harness, Endpoint::Server("files".to_owned()));
    let all = r#""notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#;
    let mut stream = client.ask(&client::ask("subscriptions/listen", all));
    let acknowledged = stream.message().await;
    assert!(acknowledged.contains("acknowledged"), "{acknowledged}");
    for list in LISTS {
        assert!(acknowledged.contains(&format!("{list}ListChanged")), "{acknowledged}");
    }
    stream
}

#[tokio::test(start_paused = true)]
async fn agents_of_one_server_are_notified_of_a_policy_that_hides_or_shows() {
    for (newer, has_listed) in [(false, false), (false, true), (true, false), (true, true)] {
        let (harness, _player) = harness();
        let mut stream = stream(&harness, newer, has_listed).await;
        assert!(told(&mut stream).await.is_empty());
        let tools = format!("{ALLOW}hide: [note_a]\n");
        let prompts = format!("{tools}prompts: {{ default: allow, hide: [p] }}\n");
        let resources =
            format!("{prompts}resources: {{ default: allow, hide: [\"file:///a\"] }}\n");
        let steps = [
            (tools.as_str(), "tools"),
            (&prompts, "prompts"),
            (&resources, "resources"),
            (&tools, "prompts"),
            (ALLOW, "tools"),
        ];
        for (document, changed) in steps {
            harness.test_admission.enforce(document);
            harness.gateway.access_changed();
            let told = told(&mut stream).await;
            assert!(told.contains(&changed), "{newer} {has_listed} {document} {told:?}");
        }
        // The same policy again, or one that only limits, changes nothing that agents see.
        for document in
            [ALLOW.to_owned(), format!("{ALLOW}tools: {{ note_a: {{ action: deny }} }}\n")]
        {
            harness.test_admission.enforce(&document);
            harness.gateway.access_changed();
            assert!(told(&mut stream).await.is_empty(), "{newer} {has_listed} {document}");
        }
    }
}

/// On `/mcp` a policy that hides a tool says nothing about prompts and resources.
#[tokio::test(start_paused = true)]
async fn on_all_servers_only_changed_lists_are_reported() {
    let (harness, _player) = harness();
    let agent = harness.open_all(INITIALIZE).await;
    for list in LISTS {
        let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{list}/list"}}"#);
        agent.ask(&list).answer().await;
    }
    let mut stream = agent.listen();
    told(&mut stream).await;
    let tools = format!("{ALLOW}hide: [note_a]\n");
    let prompts = format!("{tools}prompts: {{ default: allow, hide: [p] }}\n");
    let steps = [(tools.as_str(), "tools", "prompts"), (&prompts, "prompts", "resources")];
    for (document, changed, kept) in steps {
        harness.test_admission.enforce(document);
        harness.gateway.access_changed();
        let told = told(&mut stream).await;
        assert!(told.contains(&changed) && !told.contains(&kept), "{document} {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_its_class_hides_is_reported_on_every_endpoint() {
    for endpoint in [Endpoint::Server("files".to_owned()), Endpoint::All] {
        let (harness, auto_server) = harness();
        harness
            .test_admission
            .enforce(&format!("{ALLOW}classes: {{ destructive: {{ action: hide }} }}\n"));
        harness.gateway.access_changed();
        let client = Client::of(&harness, endpoint.clone());
        client.ask(&client::ask("tools/list", "")).answer().await;
        let listen = r#""notifications":{"toolsListChanged":true}"#;
        let mut stream = client.ask(&client::ask("subscriptions/listen", listen));
        assert!(told(&mut stream).await.is_empty(), "{endpoint}");
        for class in [Class::Destructive, Class::Read] {
            let tool_classes = HashMap::from([("note_a".to_owned(), class)]);
            let classed = ServerSettings { tool_classes, ..settings("files") };
            harness.apply([harness.played(classed, &auto_server)]);
            assert_eq!(told(&mut stream).await.first(), Some(&"tools"), "{endpoint} {class:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_loses_a_server_receives_nothing_more_of_it() {
    let (harness, auto_server) = harness();
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    let mut stream = agent.listen();
    let say = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    auto_server.say(say);
    assert_eq!(stream.message().await, say);
    let none = Some(std::collections::HashSet::new());
    let grant = Grant {
        label: "local".into(),
        policy: Some(policy(ALLOW)),
        servers: none,
        ..Grant::default()
    };
    harness.test_admission.admission.set_access(Access::new(Some(Arc::new(grant)), []));
    harness.gateway.access_changed();
    auto_server.say(say);
    assert_eq!(stream.next().await, None);
}
