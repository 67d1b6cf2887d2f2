//! All servers on one endpoint: calls reach their own server, and no server delays another.

use crate::auto_server::AutoServer;
use crate::harness::{Agent, Harness, INITIALIZE, settings};
use crate::script::settle;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

pub(crate) fn call(name: &str) -> String {
    ask("tools/call", &format!(r#"{{"name":"{name}","arguments":{{"n":1.0}}}}"#))
}

pub(crate) fn ask(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{params}}}"#)
}

pub(crate) fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}"}}"#)
}

/// A gateway with these servers, in this order.
pub(crate) fn harness(servers: &[(&str, &AutoServer)]) -> Harness {
    let harness = Harness::new();
    harness.apply(
        servers.iter().map(|(name, auto_server)| harness.played(settings(name), auto_server)),
    );
    harness
}

/// The names of servers' tools; toolgate's own one stands before them.
pub(crate) async fn tools(agent: &Agent) -> String {
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
pub(crate) async fn result(agent: &Agent, request: &str) -> String {
    let answer = agent.ask(request).answer().await;
    let rest = answer.strip_prefix(r#"{"jsonrpc":"2.0","id":"q","#).unwrap();
    rest.strip_suffix('}').unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn unknown_names_are_refused_and_nothing_is_sent() {
    let auto_server = AutoServer::with_tools(&["read"]);
    let harness = harness(&[("files", &auto_server)]);
    let agent = harness.open_all(INITIALIZE).await;
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
    assert_eq!(auto_server.received(), [] as [&str; 0]);
    assert_eq!(result(&agent, &ask("ping", "{}")).await, r#""result":{}"#);
}

#[tokio::test(start_paused = true)]
async fn resources_are_read_and_watched_under_their_shown_names() {
    let auto_server = AutoServer::with_tools(&["t"]);
    auto_server.set("resources/list", r#"{"resources":[{"uri":"demo://a","name":"a"}]}"#);
    auto_server.set("resources/read", r#"{"contents":[{"uri":"demo://a","text":"demo://a"}]}"#);
    auto_server.set("resources/subscribe", "{}");
    auto_server
        .set("tools/call", r#"{"content":[{"type":"resource_link","uri":"demo://a","name":"a"}]}"#);
    let harness = harness(&[("files", &auto_server)]);
    let agent = harness.open_all(INITIALIZE).await;
    let mut general = agent.listen();
    let listed = result(&agent, &ask("resources/list", "{}")).await;
    assert_eq!(listed, r#""result":{"resources":[{"uri":"files+demo://a","name":"a"}]}"#);
    let read = result(&agent, &ask("resources/read", r#"{"uri":"files+demo://a"}"#)).await;
    assert_eq!(read, r#""result":{"contents":[{"uri":"files+demo://a","text":"demo://a"}]}"#);
    assert!(auto_server.received().pop().unwrap().contains(r#""params":{"uri":"demo://a"}"#));
    let linked = result(&agent, &call("files__t")).await;
    assert!(linked.contains(r#""uri":"files+demo://a""#), "{linked}");
    result(&agent, &ask("resources/subscribe", r#"{"uri":"files+demo://a"}"#)).await;
    auto_server.say(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"demo://a","k":1.0}}"#);
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"files+demo://a","k":1.0}}"#;
    assert_eq!(general.message().await, updated);
    // A server that comes back is asked again.
    auto_server.received();
    auto_server.die(0);
    settle().await;
    result(&agent, &call("files__t")).await;
    settle().await;
    let received = auto_server.received();
    assert!(
        received
            .iter()
            .any(|body| body
                .contains(r#""method":"resources/subscribe","params":{"uri":"demo://a"}"#)),
        "{received:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn prompts_and_completions_go_where_their_names_say() {
    let auto_server = AutoServer::with_tools(&[]);
    auto_server.set("prompts/list", r#"{"prompts":[{"name":"p"}]}"#);
    auto_server.set("prompts/get", r#"{"messages":[]}"#);
    auto_server.set("completion/complete", r#"{"completion":{"values":[]}}"#);
    let harness = harness(&[("files", &auto_server)]);
    let agent = harness.open_all(INITIALIZE).await;
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
        let received = auto_server.received();
        assert!(
            received.last().unwrap().ends_with(&format!(r#""params":{sent}}}"#)),
            "{received:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn each_agent_answers_its_own_servers_question() {
    let (one, two) = (AutoServer::with_tools(&["a"]), AutoServer::with_tools(&["b"]));
    let harness = harness(&[("one", &one), ("two", &two)]);
    let agents = [harness.open_all(INITIALIZE).await, harness.open_all(INITIALIZE).await];
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
    for (auto_server, agent) in [&one, &two].iter().zip(&agents) {
        let answer =
            format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"by":"{}"}}}}"#, agent.session.id());
        assert_eq!(auto_server.received().pop(), Some(answer));
    }
}

#[tokio::test(start_paused = true)]
async fn every_server_receives_the_log_level_also_after_a_reconnect() {
    let (one, two) = (AutoServer::with_tools(&["a"]), AutoServer::with_tools(&["b"]));
    for auto_server in [&one, &two] {
        auto_server.set("logging/setLevel", "{}");
        auto_server.set("tools/call", "{}");
    }
    let harness = harness(&[("one", &one), ("two", &two)]);
    let agent = harness.open_all(INITIALIZE).await;
    tools(&agent).await;
    let level = r#"{"level":"debug"}"#;
    assert_eq!(result(&agent, &ask("logging/setLevel", level)).await, r#""result":{}"#);
    settle().await;
    let told = |received: &[String]| {
        received
            .iter()
            .filter(|body| {
                body.ends_with(&format!(r#""method":"logging/setLevel","params":{level}}}"#))
            })
            .count()
    };
    assert_eq!((told(&one.received()), told(&two.received())), (1, 1));
    one.die(0);
    settle().await;
    result(&agent, &call("one__a")).await;
    settle().await;
    assert_eq!((told(&one.received()), told(&two.received())), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn capabilities_and_instructions_are_those_of_all() {
    let plain = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"experimental":{"a":{"x":1}}},"serverInfo":{"name":"s","version":"1"}}"#;
    let (one, two) = (AutoServer::welcoming(plain, &[]), AutoServer::with_tools(&[]));
    let alone = harness(&[("one", &one)]).open_all(INITIALIZE).await;
    let has = |agent: &Agent, part: &str| agent.welcome.contains(part);
    assert!(
        has(&alone, r#""tools":{"listChanged":true}"#)
            && has(&alone, r#""experimental":{"a":{"x":1}}"#)
    );
    for part in ["prompts", "resources", "logging", "instructions"] {
        assert!(!has(&alone, &format!("\"{part}\"")), "{part} {}", alone.welcome);
    }
    let both = harness(&[("one", &one), ("two", &two)]).open_all(INITIALIZE).await;
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
        let agent = harness(&[]).open_all(&INITIALIZE.replace("2025-11-25", asked)).await;
        assert!(has(&agent, &format!(r#""protocolVersion":"{given}""#)));
        assert_eq!(tools(&agent).await, "");
    }
}
