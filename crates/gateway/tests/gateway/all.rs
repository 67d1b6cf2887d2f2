//! All servers on one endpoint: one list, every call at its own server, and nobody waits for another.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_gateway::{Endpoint, ServerSettings};

use crate::bed::{Agent, Bed, INITIALIZE, settings, shared};
use crate::client::{self, Client};
use crate::player::Player;
use crate::script::{Connect, settle};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn call(name: &str) -> String {
    ask("tools/call", &format!(r#"{{"name":"{name}","arguments":{{"n":1.0}}}}"#))
}

fn ask(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{params}}}"#)
}

fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}"}}"#)
}

/// A gateway with these servers, in this order.
fn bed(servers: &[(&str, &Player)]) -> Bed {
    let bed = Bed::new();
    bed.apply(servers.iter().map(|(name, player)| bed.played(settings(name), player)));
    bed
}

/// The names of servers' tools; toolgate's own one stands before them.
async fn tools(agent: &Agent) -> String {
    let answer = agent.ask(LIST).answer().await;
    let result = answer.strip_prefix(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":["#).unwrap();
    let tools = format!("[{}]", result.strip_suffix("]}}").unwrap());
    let tools = toolgate_json::items(&tools).unwrap().unwrap();
    let name = |tool: &&str| {
        toolgate_json::text(toolgate_json::peek(tool, &["name"]).unwrap().unwrap())
            .unwrap()
            .into_owned()
    };
    let names: Vec<String> = tools.iter().map(name).collect();
    let (own, others) = names.split_first().unwrap();
    assert_eq!(own, "my_permissions");
    others.join(" ")
}

/// The answer without its envelope.
async fn result(agent: &Agent, request: &str) -> String {
    let answer = agent.ask(request).answer().await;
    let rest = answer.strip_prefix(r#"{"jsonrpc":"2.0","id":"q","#).unwrap();
    rest.strip_suffix('}').unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn lists_are_joined_in_the_configured_order_and_calls_find_their_server() {
    let (one, two) = (Player::with_tools(&["read", "__x"]), Player::with_tools(&["read"]));
    let bed = bed(&[("zed", &one), ("abc", &two)]);
    let agent = bed.open_all(INITIALIZE).await;
    assert_eq!(tools(&agent).await, "zed__read zed____x abc__read");
    for player in [&one, &two] {
        player.set("tools/call", r#"{"content":[{"type":"text","text":"1.0"}],"x":1e5}"#);
    }
    for (name, player, own) in
        [("zed__read", &one, "read"), ("zed____x", &one, "__x"), ("abc__read", &two, "read")]
    {
        let expected = r#""result":{"content":[{"type":"text","text":"1.0"}],"x":1e5}"#;
        assert_eq!(result(&agent, &call(name)).await, expected);
        let heard = player.heard();
        let sent = heard.last().unwrap();
        assert!(
            sent.contains(&format!(r#""params":{{"name":"{own}","arguments":{{"n":1.0}}}}"#)),
            "{sent}"
        );
    }
    assert!(one.heard().is_empty() && two.heard().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_has_is_refused_and_nothing_is_sent() {
    let player = Player::with_tools(&["read"]);
    let bed = bed(&[("files", &player)]);
    let agent = bed.open_all(INITIALIZE).await;
    tools(&agent).await;
    for name in ["files__write", "other__read", "read", "", "files_read"] {
        let answer = result(&agent, &call(name)).await;
        assert!(answer.contains(r#""error_code":"unknown_tool""#), "{answer}");
        assert!(answer.contains(r#""isError":true"#));
    }
    let cases = [
        ("prompts/get", r#"{"name":"files__p"}"#, "-32602"),
        ("prompts/get", "{}", "-32602"),
        ("tools/call", r#"{"name":7}"#, "-32602"),
        ("resources/read", r#"{"uri":"demo://a"}"#, "-32002"),
        ("resources/read", r#"{"uri":"other+demo://a"}"#, "-32002"),
        ("resources/read", "{}", "-32602"),
        ("completion/complete", "{}", "-32602"),
        ("completion/complete", r#"{"ref":{}}"#, "-32602"),
        ("tools/list", r#"{"cursor":"x"}"#, "-32602"),
        ("tools/list", r#"{"cursor":7}"#, "-32602"),
        ("tasks/get", r#"{"taskId":"t1"}"#, "-32602"),
    ];
    for (method, params, code) in cases {
        let answer = result(&agent, &ask(method, params)).await;
        assert!(answer.starts_with(&format!(r#""error":{{"code":{code},"#)), "{method} {answer}");
    }
    assert_eq!(player.heard(), [] as [&str; 0]);
    assert_eq!(result(&agent, &ask("ping", "{}")).await, r#""result":{}"#);
}

#[tokio::test(start_paused = true)]
async fn resources_are_read_and_watched_under_their_shown_names() {
    let player = Player::with_tools(&["t"]);
    player.set("resources/list", r#"{"resources":[{"uri":"demo://a","name":"a"}]}"#);
    player.set("resources/read", r#"{"contents":[{"uri":"demo://a","text":"demo://a"}]}"#);
    player.set("resources/subscribe", "{}");
    player
        .set("tools/call", r#"{"content":[{"type":"resource_link","uri":"demo://a","name":"a"}]}"#);
    let bed = bed(&[("files", &player)]);
    let agent = bed.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    let listed = result(&agent, &ask("resources/list", "{}")).await;
    assert_eq!(listed, r#""result":{"resources":[{"uri":"files+demo://a","name":"a"}]}"#);
    let read = result(&agent, &ask("resources/read", r#"{"uri":"files+demo://a"}"#)).await;
    assert_eq!(read, r#""result":{"contents":[{"uri":"files+demo://a","text":"demo://a"}]}"#);
    assert!(player.heard().pop().unwrap().contains(r#""params":{"uri":"demo://a"}"#));
    let linked = result(&agent, &call("files__t")).await;
    assert!(linked.contains(r#""uri":"files+demo://a""#), "{linked}");
    result(&agent, &ask("resources/subscribe", r#"{"uri":"files+demo://a"}"#)).await;
    player.say(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"demo://a","k":1.0}}"#);
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"files+demo://a","k":1.0}}"#;
    assert_eq!(general.message().await, updated);
    // A server that comes back is asked again.
    player.heard();
    player.die(0);
    settle().await;
    result(&agent, &call("files__t")).await;
    settle().await;
    let heard = player.heard();
    assert!(
        heard
            .iter()
            .any(|body| body
                .contains(r#""method":"resources/subscribe","params":{"uri":"demo://a"}"#)),
        "{heard:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn prompts_and_completions_go_where_their_names_say() {
    let player = Player::with_tools(&[]);
    player.set("prompts/list", r#"{"prompts":[{"name":"p"}]}"#);
    player.set("prompts/get", r#"{"messages":[]}"#);
    player.set("completion/complete", r#"{"completion":{"values":[]}}"#);
    let bed = bed(&[("files", &player)]);
    let agent = bed.open_all(INITIALIZE).await;
    let cases = [
        ("prompts/get", r#"{"name":"files__p"}"#, r#"{"name":"p"}"#),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"files__p"},"argument":{"name":"a"}}"#,
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a"}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/resource","uri":"files+demo://{id}"}}"#,
            r#"{"ref":{"type":"ref/resource","uri":"demo://{id}"}}"#,
        ),
    ];
    for (method, params, sent) in cases {
        assert!(result(&agent, &ask(method, params)).await.starts_with(r#""result""#));
        let heard = player.heard();
        assert!(heard.last().unwrap().ends_with(&format!(r#""params":{sent}}}"#)), "{heard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_equal_bare_names_the_first_server_has_it() {
    let (one, two, three) = (
        Player::with_tools(&["a", "c__x"]),
        Player::with_tools(&["a", "b"]),
        Player::with_tools(&["x"]),
    );
    let bed = Bed::new();
    let bare = |name: &str| ServerSettings { bare_names: true, ..settings(name) };
    bed.apply([
        bed.played(bare("one"), &one),
        bed.played(bare("two"), &two),
        bed.played(settings("c"), &three),
    ]);
    let agent = bed.open_all(INITIALIZE).await;
    assert_eq!(tools(&agent).await, "a b c__x");
    for player in [&one, &two, &three] {
        player.set("tools/call", "{}");
    }
    for (name, player) in [("a", &one), ("c__x", &three), ("b", &two)] {
        result(&agent, &call(name)).await;
        assert_eq!(player.heard().len(), 1, "{name}");
    }
    // A name with a server's prefix is that server's, whichever comes first.
    bed.apply([bed.played(settings("c"), &three), bed.played(bare("one"), &one)]);
    let other = bed.open_all(INITIALIZE).await;
    assert_eq!(tools(&other).await, "c__x a");
    result(&other, &call("c__x")).await;
    assert_eq!(three.heard().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_delays_the_first_list_by_one_and_a_half_seconds_and_no_other() {
    let (fast, slow) = (Player::with_tools(&["a"]), Player::with_tools(&["b"]));
    slow.unset("tools/list");
    let bed = bed(&[("slow", &slow), ("fast", &fast)]);
    let began = Instant::now();
    let agent = bed.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    assert_eq!(tools(&agent).await, "fast__a");
    assert_eq!(began.elapsed().as_millis() / 10, 150);
    let again = Instant::now();
    assert_eq!(tools(&agent).await, "fast__a");
    let other = bed.open_all(INITIALIZE).await;
    assert_eq!(tools(&other).await, "fast__a");
    assert!(again.elapsed() < Duration::from_millis(10));
    // When it speaks at last, whoever has looked is told, and sees it.
    slow.waiting("tools/list").await.answer(r#"{"tools":[{"name":"b"}]}"#);
    assert_eq!(general.message().await, note("tools/list_changed"));
    assert_eq!(tools(&agent).await, "slow__b fast__a");
    assert_eq!(general.so_far().await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_delays_nothing() {
    let (fast, dead) = (Player::with_tools(&["a"]), Player::with_tools(&["b"]));
    for _ in 0..9 {
        let error = toolgate_gateway::channel::SendError::NotSent("refused".to_owned());
        dead.connector().plan(Connect::Refuse(error));
    }
    let bed = bed(&[("dead", &dead), ("fast", &fast)]);
    let began = Instant::now();
    let agent = bed.open_all(INITIALIZE).await;
    assert_eq!(tools(&agent).await, "fast__a");
    assert!(began.elapsed() < Duration::from_millis(100));
    let answer = result(&agent, &call("dead__b")).await;
    assert!(answer.contains(r#""error_code":"upstream_unavailable""#), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_died_keeps_its_tools_and_is_tried_again_on_use() {
    let player = Player::with_tools(&["a"]);
    player.set("tools/call", "{}");
    let bed = bed(&[("files", &player)]);
    let agent = bed.open_all(INITIALIZE).await;
    assert_eq!(tools(&agent).await, "files__a");
    player.die(2);
    settle().await;
    for _ in 0..2 {
        assert_eq!(tools(&agent).await, "files__a");
        let answer = result(&agent, &call("files__a")).await;
        assert!(answer.contains(r#""error_code":"upstream_unavailable""#), "{answer}");
    }
    // A new agent sees them too, although nobody is there.
    let other = bed.open_all(INITIALIZE).await;
    assert_eq!(tools(&other).await, "files__a");
    assert_eq!(result(&agent, &call("files__a")).await, r#""result":{}"#);
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_told_of_every_change_once_and_only_if_it_sees_one() {
    let player = Player::with_tools(&["a"]);
    let bed = bed(&[("files", &player)]);
    let agent = bed.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    assert_eq!(tools(&agent).await, "files__a");
    let wait = || tokio::time::sleep(Duration::from_secs(5));
    // Nothing has changed.
    player.say(&note("tools/list_changed"));
    wait().await;
    assert_eq!(general.so_far().await, [] as [&str; 0]);
    // It changes, and changes, and changes.
    for tools in [["b"], ["c"], ["d"]] {
        player.set_tools(&tools);
        for _ in 0..100 {
            player.say(&note("tools/list_changed"));
        }
        wait().await;
        assert_eq!(general.so_far().await, [note("tools/list_changed")]);
    }
    assert_eq!(tools(&agent).await, "files__d");
    player.set_tools(&["e"]);
    player.say(&note("tools/list_changed"));
    wait().await;
    assert_eq!(general.so_far().await, [note("tools/list_changed")]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_never_listed_is_told_of_every_change() {
    for newer in [false, true] {
        let player = Player::with_tools(&["a"]);
        let bed = bed(&[("files", &player)]);
        // What is known of the server comes from an agent that has listed.
        let other = bed.open_all(INITIALIZE).await;
        assert_eq!(tools(&other).await, "files__a");
        let client = Client::of(&bed, Endpoint::All);
        let agent = bed.open_all(INITIALIZE).await;
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
            player.set_tools(&[tool]);
            player.say(&note("tools/list_changed"));
            tokio::time::sleep(Duration::from_mins(1)).await;
            let told = stream.so_far().await;
            let is_told = |told: &&String| told.contains("tools/list_changed");
            assert_eq!(told.iter().filter(is_told).count(), 1, "{newer} {tool} {told:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn servers_that_come_and_go_change_what_is_seen() {
    let (one, two) = (Player::with_tools(&["a"]), Player::with_tools(&["b"]));
    let bed = bed(&[("one", &one)]);
    let agent = bed.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    assert_eq!(tools(&agent).await, "one__a");
    bed.apply([bed.played(settings("one"), &one), bed.played(settings("two"), &two)]);
    assert_eq!(general.message().await, note("tools/list_changed"));
    assert_eq!(tools(&agent).await, "one__a two__b");
    bed.apply([bed.played(settings("two"), &two)]);
    assert_eq!(general.message().await, note("tools/list_changed"));
    assert_eq!(tools(&agent).await, "two__b");
    // The same servers again: nothing to tell.
    bed.apply([bed.played(settings("two"), &two)]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(general.so_far().await, [] as [&str; 0]);
    assert_eq!(tools(&agent).await, "two__b");
}

#[tokio::test(start_paused = true)]
async fn each_agent_answers_its_own_servers_question() {
    let (one, two) = (Player::with_tools(&["a"]), Player::with_tools(&["b"]));
    let bed = bed(&[("one", &one), ("two", &two)]);
    let agents = [bed.open_all(INITIALIZE).await, bed.open_all(INITIALIZE).await];
    for agent in &agents {
        tools(agent).await;
    }
    let mut replies = [agents[0].ask(&call("one__a")), agents[1].ask(&call("two__b"))];
    let running = [one.waiting("tools/call").await, two.waiting("tools/call").await];
    for sent in &running {
        sent.say(
            r#"{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"x":1.0}}"#,
        );
    }
    for (agent, reply) in agents.iter().zip(&mut replies) {
        let asked = reply.message().await;
        let id = toolgate_json::peek(&asked, &["id"]).unwrap().unwrap().to_owned();
        assert!(asked.contains(r#""method":"sampling/createMessage""#), "{asked}");
        assert!(asked.ends_with(r#","x":1.0}}"#), "{asked}");
        let name = agent.session.id();
        agent.tell(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"by":"{name}"}}}}"#)).await;
    }
    for (player, agent) in [&one, &two].iter().zip(&agents) {
        let answer =
            format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"by":"{}"}}}}"#, agent.session.id());
        assert_eq!(player.heard().pop(), Some(answer));
    }
}

#[tokio::test(start_paused = true)]
async fn every_server_is_told_the_log_level_also_when_it_comes_back() {
    let (one, two) = (Player::with_tools(&["a"]), Player::with_tools(&["b"]));
    for player in [&one, &two] {
        player.set("logging/setLevel", "{}");
        player.set("tools/call", "{}");
    }
    let bed = bed(&[("one", &one), ("two", &two)]);
    let agent = bed.open_all(INITIALIZE).await;
    tools(&agent).await;
    let level = r#"{"level":"debug"}"#;
    assert_eq!(result(&agent, &ask("logging/setLevel", level)).await, r#""result":{}"#);
    settle().await;
    let told = |heard: &[String]| {
        heard
            .iter()
            .filter(|body| {
                body.ends_with(&format!(r#""method":"logging/setLevel","params":{level}}}"#))
            })
            .count()
    };
    assert_eq!((told(&one.heard()), told(&two.heard())), (1, 1));
    one.die(0);
    settle().await;
    result(&agent, &call("one__a")).await;
    settle().await;
    assert_eq!((told(&one.heard()), told(&two.heard())), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn capabilities_and_instructions_are_those_of_all() {
    let plain = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"experimental":{"a":{"x":1}}},"serverInfo":{"name":"s","version":"1"}}"#;
    let (one, two) = (Player::welcoming(plain, &[]), Player::with_tools(&[]));
    let alone = bed(&[("one", &one)]).open_all(INITIALIZE).await;
    let has = |agent: &Agent, part: &str| agent.welcome.contains(part);
    assert!(
        has(&alone, r#""tools":{"listChanged":true}"#)
            && has(&alone, r#""experimental":{"a":{"x":1}}"#)
    );
    for part in ["prompts", "resources", "logging", "instructions"] {
        assert!(!has(&alone, &format!("\"{part}\"")), "{part} {}", alone.welcome);
    }
    let both = bed(&[("one", &one), ("two", &two)]).open_all(INITIALIZE).await;
    for part in [
        r#""prompts":{"listChanged":true}"#,
        r#""subscribe":true"#,
        r#""logging":{}"#,
        r"# two\nbe kind",
    ] {
        assert!(has(&both, part), "{part} {}", both.welcome);
    }
    assert!(has(&both, r#""id":"hello""#) && has(&both, r#""name":"toolgate""#));
    for (asked, given) in [("2024-11-05", "2024-11-05"), ("2099-01-01", "2025-11-25")] {
        let agent = bed(&[]).open_all(&INITIALIZE.replace("2025-11-25", asked)).await;
        assert!(has(&agent, &format!(r#""protocolVersion":"{given}""#)));
        assert_eq!(tools(&agent).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_offer_starts_no_child_until_it_is_used() {
    let player = Player::with_tools(&["a"]);
    player.set("tools/call", "{}");
    let bed = Bed::new();
    bed.apply([bed.played(ServerSettings { backs_off: true, ..settings("files") }, &player)]);
    let first = bed.open_all(INITIALIZE).await;
    assert_eq!(tools(&first).await, "files__a");
    assert_eq!(player.connector().tried(), 1);
    let second = bed.open_all(INITIALIZE).await;
    assert_eq!(tools(&second).await, "files__a");
    assert_eq!(player.connector().tried(), 1);
    result(&second, &call("files__a")).await;
    assert_eq!(player.connector().tried(), 2);
    // Who can do something else may be offered something else.
    bed.open_all(&INITIALIZE.replace(r#"{"x":1.0}"#, "{}")).await;
    settle().await;
    assert_eq!(player.connector().tried(), 3);
}

#[tokio::test(start_paused = true)]
async fn long_lists_come_in_pages() {
    let (one, two) = (Player::with_tools(&[]), Player::with_tools(&["last"]));
    let filler = "x".repeat(1 << 20);
    let many: Vec<_> = (0..40).map(|n| format!(r#"{{"name":"t{n}","d":"{filler}"}}"#)).collect();
    let (first, _) = many.split_at(20);
    // The server itself pages too, and says the same cursor for ever.
    one.set("tools/list", &format!(r#"{{"tools":[{}],"nextCursor":"c"}}"#, first.join(",")));
    let bed = bed(&[("one", &one), ("two", &two)]);
    let agent = bed.open_all(INITIALIZE).await;
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
    let player = Player::with_tools(&["a"]);
    let bed = Bed::new();
    bed.apply([bed.played(shared("files"), &player)]);
    let agents = [bed.open_all(INITIALIZE).await, bed.open_all(INITIALIZE).await];
    let mut streams = agents.each_ref().map(Agent::listen);
    for agent in &agents {
        assert_eq!(tools(agent).await, "files__a");
    }
    assert_eq!(player.connector().tried(), 1);
    player.set_tools(&["b"]);
    player.say(&note("tools/list_changed"));
    for stream in &mut streams {
        assert_eq!(stream.message().await, note("tools/list_changed"));
    }
}
