//! Lists on `/mcp`: one list of all servers, pages, and notifications of changes.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_gateway::{Endpoint, ServerSettings};

use crate::aggregate::{ask, call, harness, note, result, tools};
use crate::auto_server::AutoServer;
use crate::client::{self, Client};
use crate::harness::{Agent, Harness, INITIALIZE, settings, shared};
use crate::script::{Connect, settle};

#[tokio::test(start_paused = true)]
async fn lists_are_joined_in_the_configured_order_and_calls_find_their_server() {
    let (one, two) = (AutoServer::with_tools(&["read", "__x"]), AutoServer::with_tools(&["read"]));
    let harness = harness(&[("zed", &one), ("abc", &two)]);
    let agent = harness.open_all(INITIALIZE).await;
    assert_eq!(tools(&agent).await, "zed__read zed____x abc__read");
    for auto_server in [&one, &two] {
        auto_server.set("tools/call", r#"{"content":[{"type":"text","text":"1.0"}],"x":1e5}"#);
    }
    for (name, auto_server, own) in
        [("zed__read", &one, "read"), ("zed____x", &one, "__x"), ("abc__read", &two, "read")]
    {
        let expected = r#""result":{"content":[{"type":"text","text":"1.0"}],"x":1e5}"#;
        assert_eq!(result(&agent, &call(name)).await, expected);
        let received = auto_server.received();
        let sent = received.last().unwrap();
        assert!(
            sent.contains(&format!(r#""params":{{"name":"{own}","arguments":{{"n":1.0}}}}"#)),
            "{sent}"
        );
    }
    assert!(one.received().is_empty() && two.received().is_empty());
}

#[tokio::test(start_paused = true)]
async fn of_equal_bare_names_the_first_server_has_it() {
    let (one, two, three) = (
        AutoServer::with_tools(&["a", "c__x"]),
        AutoServer::with_tools(&["a", "b"]),
        AutoServer::with_tools(&["x"]),
    );
    let harness = Harness::new();
    let bare = |name: &str| ServerSettings { bare_names: true, ..settings(name) };
    harness.apply([
        harness.played(bare("one"), &one),
        harness.played(bare("two"), &two),
        harness.played(settings("c"), &three),
    ]);
    let agent = harness.open_all(INITIALIZE).await;
    assert_eq!(tools(&agent).await, "a b c__x");
    for auto_server in [&one, &two, &three] {
        auto_server.set("tools/call", "{}");
    }
    for (name, auto_server) in [("a", &one), ("c__x", &three), ("b", &two)] {
        result(&agent, &call(name)).await;
        assert_eq!(auto_server.received().len(), 1, "{name}");
    }
    // A name with a server's prefix is that server's, whichever comes first.
    harness.apply([harness.played(settings("c"), &three), harness.played(bare("one"), &one)]);
    let other = harness.open_all(INITIALIZE).await;
    assert_eq!(tools(&other).await, "c__x a");
    result(&other, &call("c__x")).await;
    assert_eq!(three.received().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_delays_lists_by_five_seconds_until_it_is_listed() {
    let (fast, slow) = (AutoServer::with_tools(&["a"]), AutoServer::with_tools(&["b"]));
    slow.unset("tools/list");
    let harness = harness(&[("slow", &slow), ("fast", &fast)]);
    let began = Instant::now();
    let agent = harness.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    assert_eq!(tools(&agent).await, "fast__a");
    // The answer to `initialize` waits for one and a half seconds, the list for five.
    assert_eq!(began.elapsed().as_millis() / 10, 650);
    // When it speaks at last, whoever has looked is told, and sees it.
    slow.waiting("tools/list").await.answer(r#"{"tools":[{"name":"b"}]}"#);
    assert_eq!(general.message().await, note("tools/list_changed"));
    let again = Instant::now();
    assert_eq!(tools(&agent).await, "slow__b fast__a");
    assert!(again.elapsed() < Duration::from_millis(10));
    assert_eq!(general.so_far().await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_delays_nothing() {
    let (fast, dead) = (AutoServer::with_tools(&["a"]), AutoServer::with_tools(&["b"]));
    for _ in 0..9 {
        let error = toolgate_gateway::channel::SendError::NotSent("refused".to_owned());
        dead.connector().plan(Connect::Refuse(error));
    }
    let harness = harness(&[("dead", &dead), ("fast", &fast)]);
    let began = Instant::now();
    let agent = harness.open_all(INITIALIZE).await;
    assert_eq!(tools(&agent).await, "fast__a");
    assert!(began.elapsed() < Duration::from_millis(100));
    let answer = result(&agent, &call("dead__b")).await;
    assert!(answer.contains(r#""error_code":"upstream_unavailable""#), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_died_keeps_its_tools_and_is_tried_again_on_use() {
    let auto_server = AutoServer::with_tools(&["a"]);
    auto_server.set("tools/call", "{}");
    let harness = harness(&[("files", &auto_server)]);
    let agent = harness.open_all(INITIALIZE).await;
    assert_eq!(tools(&agent).await, "files__a");
    auto_server.die(2);
    settle().await;
    for _ in 0..2 {
        assert_eq!(tools(&agent).await, "files__a");
        let answer = result(&agent, &call("files__a")).await;
        assert!(answer.contains(r#""error_code":"upstream_unavailable""#), "{answer}");
    }
    // A new agent sees them too, although nobody is there.
    let other = harness.open_all(INITIALIZE).await;
    assert_eq!(tools(&other).await, "files__a");
    assert_eq!(result(&agent, &call("files__a")).await, r#""result":{}"#);
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_notified_once_of_every_change_that_it_sees() {
    let auto_server = AutoServer::with_tools(&["a"]);
    let harness = harness(&[("files", &auto_server)]);
    let agent = harness.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    assert_eq!(tools(&agent).await, "files__a");
    let wait = || tokio::time::sleep(Duration::from_secs(5));
    // Nothing has changed.
    auto_server.say(&note("tools/list_changed"));
    wait().await;
    assert_eq!(general.so_far().await, [] as [&str; 0]);
    // It changes, and changes, and changes.
    for tools in [["b"], ["c"], ["d"]] {
        auto_server.set_tools(&tools);
        for _ in 0..100 {
            auto_server.say(&note("tools/list_changed"));
        }
        wait().await;
        assert_eq!(general.so_far().await, [note("tools/list_changed")]);
    }
    assert_eq!(tools(&agent).await, "files__d");
    auto_server.set_tools(&["e"]);
    auto_server.say(&note("tools/list_changed"));
    wait().await;
    assert_eq!(general.so_far().await, [note("tools/list_changed")]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_never_listed_is_notified_of_every_change() {
    for newer in [false, true] {
        let auto_server = AutoServer::with_tools(&["a"]);
        let harness = harness(&[("files", &auto_server)]);
        // What is known of the server comes from an agent that has listed.
        let other = harness.open_all(INITIALIZE).await;
        assert_eq!(tools(&other).await, "files__a");
        let client = Client::of(&harness, Endpoint::All);
        let agent = harness.open_all(INITIALIZE).await;
        if newer {
            // The client lists under other capabilities than it listens with.
            let other = Client { capabilities: r#"{"sampling":{}}"#, ..client.clone() };
            other.ask(&client::ask("tools/list", "")).answer().await;
        }
        let mut stream = if newer {
            let listen = r#""notifications":{"toolsListChanged":true}"#;
            client.ask(&client::ask("subscriptions/listen", listen))
        } else {
            agent.listen()
        };
        tokio::time::sleep(Duration::from_secs(5)).await;
        let at_first = stream.so_far().await;
        assert!(!at_first.iter().any(|told| told.contains("list_changed")), "{at_first:?}");
        for tool in ["b", "c"] {
            auto_server.set_tools(&[tool]);
            auto_server.say(&note("tools/list_changed"));
            tokio::time::sleep(Duration::from_mins(1)).await;
            let told = stream.so_far().await;
            let is_told = |told: &&String| told.contains("tools/list_changed");
            assert_eq!(told.iter().filter(is_told).count(), 1, "{newer} {tool} {told:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn servers_that_come_and_go_change_what_is_seen() {
    let (one, two) = (AutoServer::with_tools(&["a"]), AutoServer::with_tools(&["b"]));
    let harness = harness(&[("one", &one)]);
    let agent = harness.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    assert_eq!(tools(&agent).await, "one__a");
    harness.apply([harness.played(settings("one"), &one), harness.played(settings("two"), &two)]);
    assert_eq!(general.message().await, note("tools/list_changed"));
    assert_eq!(tools(&agent).await, "one__a two__b");
    harness.apply([harness.played(settings("two"), &two)]);
    assert_eq!(general.message().await, note("tools/list_changed"));
    assert_eq!(tools(&agent).await, "two__b");
    // The same servers again: nothing to tell.
    harness.apply([harness.played(settings("two"), &two)]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(general.so_far().await, [] as [&str; 0]);
    assert_eq!(tools(&agent).await, "two__b");
}

#[tokio::test(start_paused = true)]
async fn a_known_offer_starts_no_child_until_it_is_used() {
    let auto_server = AutoServer::with_tools(&["a"]);
    auto_server.set("tools/call", "{}");
    let harness = Harness::new();
    harness.apply([
        harness.played(ServerSettings { backs_off: true, ..settings("files") }, &auto_server)
    ]);
    let first = harness.open_all(INITIALIZE).await;
    assert_eq!(tools(&first).await, "files__a");
    assert_eq!(auto_server.connector().tried(), 1);
    let second = harness.open_all(INITIALIZE).await;
    assert_eq!(tools(&second).await, "files__a");
    assert_eq!(auto_server.connector().tried(), 1);
    result(&second, &call("files__a")).await;
    assert_eq!(auto_server.connector().tried(), 2);
    // Who can do something else may be offered something else.
    harness.open_all(&INITIALIZE.replace(r#"{"x":1.0}"#, "{}")).await;
    settle().await;
    assert_eq!(auto_server.connector().tried(), 3);
}

#[tokio::test(start_paused = true)]
async fn long_lists_come_in_pages() {
    let (one, two) = (AutoServer::with_tools(&[]), AutoServer::with_tools(&["last"]));
    let filler = "x".repeat(1 << 20);
    let many: Vec<_> = (0..40).map(|n| format!(r#"{{"name":"t{n}","d":"{filler}"}}"#)).collect();
    let (first, _) = many.split_at(20);
    // The server itself pages too, and says the same cursor for ever.
    one.set("tools/list", &format!(r#"{{"tools":[{}],"nextCursor":"c"}}"#, first.join(",")));
    let harness = harness(&[("one", &one), ("two", &two)]);
    let agent = harness.open_all(INITIALIZE).await;
    let (mut cursor, mut names, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let params =
            if cursor.is_empty() { "{}".to_owned() } else { format!(r#"{{"cursor":{cursor}}}"#) };
        let answer = agent.ask(&ask("tools/list", &params)).answer().await;
        let result = toolgate_json::peek(&answer, &["result"]).unwrap().unwrap();
        let [tools, next] = toolgate_json::members(result, ["tools", "nextCursor"]).unwrap();
        for tool in toolgate_json::items(tools.unwrap()).unwrap().unwrap() {
            names.push(toolgate_json::peek(tool, &["name"]).unwrap().unwrap().to_owned());
        }
        pages += 1;
        let Some(next) = next else { break };
        cursor = next.to_owned();
    }
    let mut expected = vec!["\"my_permissions\"".to_owned()];
    expected.extend((0..20).map(|n| format!("\"one__t{n}\"")));
    expected.push("\"two__last\"".to_owned());
    assert_eq!(names, expected);
    assert_eq!(pages, 2);
}

#[tokio::test(start_paused = true)]
async fn a_shared_server_is_surveyed_once_for_everybody() {
    let auto_server = AutoServer::with_tools(&["a"]);
    let harness = Harness::new();
    harness.apply([harness.played(shared("files"), &auto_server)]);
    let agents = [harness.open_all(INITIALIZE).await, harness.open_all(INITIALIZE).await];
    let mut streams = agents.each_ref().map(Agent::listen);
    for agent in &agents {
        assert_eq!(tools(agent).await, "files__a");
    }
    assert_eq!(auto_server.connector().tried(), 1);
    auto_server.set_tools(&["b"]);
    auto_server.say(&note("tools/list_changed"));
    for stream in &mut streams {
        assert_eq!(stream.message().await, note("tools/list_changed"));
    }
}
