//! Grants: each sees its own sessions, and policies hold for session tools as for all others.

use std::fs;

use serde_json::json;

use super::{code, open, text, tools};
use crate::agent::Agent;
use crate::gate::{Gate, Home, eventually};
use crate::program::{Card, Program, tool_of};

const TRADE: &str = "token-of-the-grant-trade-0123456789";
const STOCK: &str = "token-of-the-grant-stock-0123456789";

#[test]
fn two_grants_with_two_bases_see_only_their_own() {
    let config = "policies: { all: { version: '1', default: allow } }\n\
        grants:\n\
        - { label: trade, token: env:TRADE, policy: all, sessions: { infobase_name: ['trade_*'] } }\n\
        - { label: stock, token: env:STOCK, policy: all, sessions: { infobase_name: [stock] } }";
    let gate = Gate::start_as(Home::new(), config, |command| {
        command.env("TRADE", TRADE).env("STOCK", STOCK);
    });
    let cards = [("t1", "trade_dev"), ("s1", "stock")];
    let mut programs = cards.map(|(uid, base)| {
        let tools = json!([tool_of("find"), tool_of(&format!("only_{uid}"))]);
        Program::register(&gate, &Card::new(uid, "").with(tools).of("client", base))
    });
    let views = [(TRADE, "t1", "s1"), (STOCK, "s1", "t1")];
    for (index, (token, mine, others)) in views.into_iter().enumerate() {
        let agent = Agent::open_with(&gate, "sessions", token);
        let list = serde_json::to_string(&tools(&agent)).unwrap();
        assert!(list.contains(&format!("only_{mine}")), "{list}");
        let sessions = agent.call("session_list", &json!({}));
        let sessions = &sessions["structuredContent"]["sessions"];
        assert_eq!(sessions.as_array().unwrap().len(), 1);
        assert_eq!(sessions[0]["session_id"], mine);
        let unknown = agent.call("find", &json!({"session_id": others}));
        assert_eq!(code(&unknown), "unknown_session");
        let gone = agent.call(&format!("only_{others}"), &json!({}));
        assert_eq!(code(&gone), "unknown_tool");
        for printed in [&list, &sessions.to_string(), &unknown.to_string()] {
            assert!(!printed.contains(others), "{printed}");
        }
        // For this grant there is only one, so it need not be named.
        std::thread::scope(|scope| {
            let call = scope.spawn(|| agent.call("find", &json!({})));
            programs[index].serve(mine);
            assert_eq!(text(&call.join().unwrap()), mine);
        });
    }
    let agent = Agent::open_with(&gate, "sessions", TRADE);
    let reset = agent.call("tools_cache_reset", &json!({}));
    let expected = json!({"removed": 1, "scope": "all", "enabled": true});
    assert_eq!(reset["structuredContent"], expected, "only what the grant may reach");
}

#[test]
fn a_policy_speaks_of_sessions_and_built_ins() {
    let home = Home::new();
    let file = home.path("policy.yaml");
    let policy = "version: '1'\ndefault: deny\ntools:\n  find: { action: allow, limits: [{ counter: c, max: 1, window: 30d, scope: grant }] }\n  secret: { action: hide }\n  session_list: { action: allow }\n";
    fs::write(&file, policy).unwrap();
    let gate = Gate::start_as(home, "", |command| {
        command.arg("--policy").arg(&file);
    });
    let card = Card::new("u1", "").with(json!([tool_of("find"), tool_of("secret"), tool_of("x")]));
    let mut program = Program::register(&gate, &card);
    let agent = open(&gate);
    let shown: Vec<_> = tools(&agent).iter().map(|tool| tool["name"].clone()).collect();
    assert!(shown.contains(&json!("find")) && !shown.contains(&json!("secret")), "{shown:?}");
    std::thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("find", &json!({})));
        program.serve("once");
        assert_eq!(text(&call.join().unwrap()), "once");
    });
    assert_eq!(code(&agent.call("find", &json!({}))), "rate_limited");
    let (hidden, missing) = (agent.call("secret", &json!({})), agent.call("missing", &json!({})));
    assert_eq!((code(&hidden), code(&missing)), ("policy_denied", "policy_denied"));
    assert_eq!(code(&agent.call("tools_cache_reset", &json!({}))), "policy_denied");
    assert_ne!(agent.call("session_list", &json!({}))["isError"], true);
    eventually("the outcome of the built-in is written", || {
        let output = gate.home.run(&[
            "audit",
            "list",
            "--after",
            "0",
            "-o",
            "jsonl",
            "--tool",
            "session_list",
        ]);
        let rows = String::from_utf8(output.stdout).unwrap();
        (rows.contains(r#""server":"toolgate""#) && rows.lines().count() == 2).then_some(())
    });
}

#[test]
fn built_ins_have_their_class() {
    let home = Home::new();
    let file = home.path("policy.yaml");
    fs::write(&file, "version: '1'\ndefault: allow\nclasses:\n  write: { action: deny }\n")
        .unwrap();
    let gate = Gate::start_as(home, "", |command| {
        command.arg("--policy").arg(&file);
    });
    let agent = open(&gate);
    assert_eq!(code(&agent.call("tools_cache_reset", &json!({}))), "policy_denied");
    assert_eq!(
        agent.call("session_list", &json!({}))["structuredContent"],
        json!({"sessions": []})
    );
}
