//! Names that fold to listed names, and spellings of resource URIs.

use toolgate_json::{peek, quote};

use crate::auto_server::AutoServer;
use crate::harness::{Agent, Harness, INITIALIZE, settings};

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

fn harness(document: &str) -> (Harness, AutoServer) {
    let auto_server = AutoServer::with_tools(&["read_a", "Delete_Account", "ops/wipe"]);
    auto_server.set("tools/call", r#"{"content":[]}"#);
    auto_server.set("prompts/get", r#"{"messages":[]}"#);
    auto_server.set("resources/read", r#"{"contents":[]}"#);
    let harness = Harness::new();
    harness.test_admission.enforce(document);
    harness.apply([harness.played(settings("files"), &auto_server)]);
    (harness, auto_server)
}

/// `error_code` of a refusal, or `sent`.
async fn called(agent: &Agent, name: &str) -> String {
    let params = format!(r#"{{"name":{},"arguments":{{}}}}"#, quote(name));
    let answer = agent.ask(&request("tools/call", &params)).answer().await;
    let code = peek(&answer, &["result", "_meta", "error_code"]).unwrap();
    code.map_or("sent".to_owned(), |code| code.replace('"', ""))
}

fn executed(auto_server: &AutoServer, method: &str) -> usize {
    let wanted = format!(r#""method":"{method}""#);
    auto_server.received().iter().filter(|body| body.contains(&wanted)).count()
}

const RULES: &str = "version: \"1\"\ndefault: allow\nhide: [delete_account]\ntools:\n  \"drop_*\": { action: deny }\n  ops/wipe: { action: deny }\nprompts: { hide: [\"secret_*\"] }\n";

#[tokio::test(start_paused = true)]
async fn a_name_that_folds_to_a_listed_tool_or_a_rule_is_unknown() {
    for lists_first in [false, true] {
        let (harness, auto_server) = harness(RULES);
        let agent = harness.open("files", INITIALIZE).await.unwrap();
        if lists_first {
            agent.ask(&request("tools/list", "{}")).answer().await;
        }
        auto_server.received();
        for name in [
            "delete_account ",
            "DELETE_ACCOUNT",
            "ｄelete_account",
            "delete\u{200b}_account",
            "dele\u{ad}te_account",
            "delete_account\u{0}",
            "DROP_everything",
            "Drop_x",
            "READ_A",
            "read_a ",
            "Ops/Wipe",
        ] {
            assert_eq!(called(&agent, name).await, "unknown_tool", "{name:?} {lists_first}");
        }
        assert_eq!(called(&agent, "delete_account").await, "policy_denied");
        assert_eq!(called(&agent, "ops/wipe").await, "policy_denied");
        assert_eq!(executed(&auto_server, "tools/call"), 0);
        for name in ["read_a", "Delete_Account", "no_such"] {
            assert_eq!(called(&agent, name).await, "sent", "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_folds_to_a_rule_is_not_found() {
    let (harness, auto_server) = harness(RULES);
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    auto_server.received();
    for name in ["secret_a", "SECRET_a", "secret_a\u{200b}", "ｓecret_a"] {
        let params = format!(r#"{{"name":{}}}"#, quote(name));
        let answer = agent.ask(&request("prompts/get", &params)).answer().await;
        assert!(answer.contains("-32602") && answer.contains("not found"), "{name:?} {answer}");
    }
    assert_eq!(executed(&auto_server, "prompts/get"), 0);
    agent.ask(&request("prompts/get", r#"{"name":"greet"}"#)).answer().await;
    assert_eq!(executed(&auto_server, "prompts/get"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hidden_resource_is_hidden_in_every_spelling() {
    let hide = "version: \"1\"\ndefault: allow\nresources: { hide: [\"file:///etc/*\"] }\n";
    let (harness, auto_server) = harness(hide);
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    auto_server.received();
    for uri in [
        "file:///%65tc/passwd",
        "file:////etc/passwd",
        "FILE:///etc/passwd",
        "file:/etc/passwd",
        "file://localhost/etc/passwd",
        "file:///x/../etc/passwd",
    ] {
        for (method, params) in [
            ("resources/read", format!(r#"{{"uri":"{uri}"}}"#)),
            ("resources/subscribe", format!(r#"{{"uri":"{uri}"}}"#)),
            (
                "completion/complete",
                format!(
                    r#"{{"ref":{{"type":"ref/resource","uri":"{uri}"}},"argument":{{"name":"a","value":""}}}}"#
                ),
            ),
        ] {
            let answer = agent.ask(&request(method, &params)).answer().await;
            assert!(answer.contains(r#""error""#), "{method} {uri} {answer}");
        }
    }
    let received = auto_server.received();
    assert!(received.iter().all(|body| !body.contains("passwd")), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_section_the_default_closes_resources_and_prompts() {
    let (harness, auto_server) = harness("version: \"1\"\ndefault: deny\ntools: { read_a: {} }\n");
    let agent = harness.open("files", INITIALIZE).await.unwrap();
    auto_server.received();
    for (method, params) in
        [("resources/read", r#"{"uri":"file:///x"}"#), ("prompts/get", r#"{"name":"greet"}"#)]
    {
        let answer = agent.ask(&request(method, params)).answer().await;
        assert!(answer.contains("(default deny)"), "{method} {answer}");
        assert_eq!(executed(&auto_server, method), 0);
    }
}
