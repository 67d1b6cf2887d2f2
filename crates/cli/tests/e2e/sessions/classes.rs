//! Risk classes of session tools: the operator's class applies to its kind, and what a program declares about
//! its tool raises the class and never lowers it. `policy explain` agrees with the gateway.

use serde_json::{Value, json};

use super::{code, text, tools};
use crate::agent::Agent;
use crate::gate::{Gate, Home};
use crate::program::{Card, Program, tool_of};

const TOKEN: &str = "token-of-the-grant-team-0123456789";

fn gate(sessions: &str, policy: &str) -> Gate {
    let config = format!(
        "policies: {{ p: {{ version: '1', default: allow, {policy} }} }}\n\
         grants: [{{ label: team, token: env:TEAM, policy: p }}]\n\
         sessions: {sessions}"
    );
    Gate::start_as(Home::new(), &config, |command| {
        command.env("TEAM", TOKEN);
    })
}

fn agent(gate: &Gate) -> Agent {
    Agent::open_with(gate, "sessions", TOKEN)
}

/// Calls a tool that must reach the program.
fn reaches(agent: &Agent, program: &mut Program, tool: &str, arguments: &Value) {
    std::thread::scope(|scope| {
        let call = scope.spawn(|| agent.call(tool, arguments));
        program.serve("done");
        assert_eq!(text(&call.join().unwrap()), "done");
    });
}

fn declared(name: &str, annotations: &Value) -> Value {
    let mut tool = tool_of(name);
    tool["annotations"] = annotations.clone();
    tool
}

#[test]
fn annotations_and_descriptions_raise_the_class_and_never_lower_it() {
    let gate = gate("{}", "classes: { destructive: { action: deny } }");
    let mut wordy = tool_of("tidy");
    wordy["description"] = "Deletes every order.".into();
    let card = Card::new("u1", "").with(json!([
        declared("get_a", &json!({"destructiveHint": true})),
        declared("delete_b", &json!({"readOnlyHint": true, "destructiveHint": false})),
        declared("execute_query", &json!({"destructiveHint": true})),
        wordy,
        tool_of("get_c"),
    ]));
    let mut program = Program::register(&gate, &card);
    let agent = agent(&gate);
    for tool in ["get_a", "delete_b", "execute_query", "tidy"] {
        assert_eq!(code(&agent.call(tool, &json!({}))), "policy_denied", "{tool}");
    }
    reaches(&agent, &mut program, "get_c", &json!({}));
}

#[test]
fn a_class_configured_for_a_kind_is_for_that_kind() {
    let kinds = "{ kinds: { server: { tools: { post: { class: destructive } } }, \
                 client: { tools: { post: { class: read } } } } }";
    let gate = gate(kinds, "classes: { destructive: { action: deny } }");
    let card = Card::new("c1", "post").of("client", "trade");
    let mut client = Program::register(&gate, &card);
    let agent = agent(&gate);
    reaches(&agent, &mut client, "post", &json!({}));
    let _server = Program::register(&gate, &Card::new("s1", "post").of("server", "trade"));
    let denied = agent.call("post", &json!({"session_id": "s1"}));
    assert_eq!(code(&denied), "policy_denied");
    reaches(&agent, &mut client, "post", &json!({"session_id": "c1"}));
    // A list does not know which of them is called.
    let listed = agent.call("my_permissions", &json!({}));
    let listed = listed["structuredContent"]["tools"].as_array().unwrap().clone();
    let post = listed.iter().find(|tool| tool["name"] == "post").unwrap();
    assert_eq!((&post["class"], &post["effect"]), (&json!("destructive"), &json!("deny")));
}

#[test]
fn a_session_tool_is_explained_as_it_is_decided() {
    let policy = "tools: { Najti: { action: deny }, session__session_list: { action: deny } }, \
                  hide: [tajno], classes: { destructive: { action: deny } }";
    let mut gate = gate("{ ascii_names: true }", policy);
    let card = Card::new("u1", "").with(json!([
        tool_of("Найти"),
        tool_of("session_list"),
        declared("get_a", &json!({"destructiveHint": true})),
        tool_of("get_b"),
    ]));
    let program = Program::register(&gate, &card);
    let agent = agent(&gate);
    let published: Vec<String> =
        tools(&agent).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let najti = published.iter().find(|name| name.as_str() == "Najti").cloned();
    let najti = najti.unwrap_or_else(|| panic!("{published:?}"));
    let explained = |home: &Home, words: &[&str]| {
        let base = ["policy", "explain", "-o", "json", "--grant", "team", "--tool"];
        let output = home.run(&[&base[..], words].concat());
        let printed: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        printed["effect"].as_str().unwrap().to_owned()
    };
    let cases: [(&[&str], &str); 6] = [
        (&[&najti], "deny"),
        (&["Найти", "--server", "sessions"], "deny"),
        (&["session__session_list"], "deny"),
        (&["session_list", "--server", "sessions"], "deny"),
        (&["get_a"], "deny"),
        (&["get_b"], "allow"),
    ];
    let check = |home: &Home| {
        for (words, effect) in cases {
            assert_eq!(explained(home, words), effect, "{words:?}");
        }
    };
    for tool in [&*najti, "session__session_list", "get_a"] {
        assert_eq!(code(&agent.call(tool, &json!({}))), "policy_denied", "{tool}");
    }
    check(&gate.home);
    drop(program);
    assert_eq!(gate.stop().0, Some(0));
    check(&gate.into_home());
}
