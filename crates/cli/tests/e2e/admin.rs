//! The admin API: roles, answers, and the effect of changes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::agent::{Agent, NEWEST, initialize_with};
use crate::api::{Api, admin_token};
use crate::gate::{Gate, Home};
use crate::golden;
use crate::peer::gate_with_peer;
use crate::wire::get;

#[path = "admin/changes.rs"]
mod changes;
#[path = "admin/policies.rs"]
mod policies;
#[path = "admin/policy_verbs.rs"]
mod policy_verbs;

const DUTY: [(&str, &str); 4] = [
    ("viewer", "a-token-of-somebody-who-looks"),
    ("approver", "a-token-of-somebody-who-approves"),
    ("policy_manager", "a-token-of-somebody-with-policies"),
    ("admin", "a-token-of-somebody-who-may-all"),
];
const AGENT: &str = "a-token-of-an-agent-not-a-person";

/// A gateway with one person of each role and one grant, all in the file.
fn staffed(servers: &str) -> Gate {
    let people: Vec<String> = DUTY
        .iter()
        .map(|(role, _)| {
            format!("  - {{ name: {role}-of-the-file, token: 'env:{role}', roles: [{role}] }}\n")
        })
        .collect();
    let people = people.concat();
    let config = format!(
        "people:\n{people}policies:\n  open: {{ version: '1', default: allow }}\n\
         grants:\n  - {{ label: agent, token: 'env:AGENT', policy: open }}\n{servers}"
    );
    Gate::start_as(Home::new(), &config, |command| {
        command.envs(DUTY).env("AGENT", AGENT);
    })
}

/// `error_code` of a refusal, or `sent`.
fn verdict(agent: &Agent, tool: &str) -> String {
    let result = agent.call(tool, &json!({}));
    result["_meta"]["error_code"].as_str().unwrap_or("sent").to_owned()
}

fn status_of(gate: &Gate, token: &str) -> u16 {
    let bearer = format!("Authorization: Bearer {token}\r\n");
    initialize_with(gate, "/mcp/peer", NEWEST, &bearer).status
}

#[test]
fn the_admin_token_opens_the_api_and_nothing_else_does() {
    let (mut gate, _peer) = gate_with_peer("", "", "");
    let data = gate.home.path(".local/share/toolgate");
    let mode = fs::metadata(data.join("admin.token")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let mut line: Value =
        serde_json::from_str(&fs::read_to_string(data.join("serve.json")).unwrap()).unwrap();
    let config = line.as_object_mut().unwrap().remove("config");
    assert_eq!(config, Some(gate.home.path("toolgate.yaml").to_str().unwrap().into()));
    assert_eq!(line, *gate.ready());

    let anonymous = Api::anonymous(&gate).ask("GET", "status", "");
    assert_eq!((anonymous.status, anonymous.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(anonymous.json()["error"]["code"], "unauthorized");
    let status = Api::admin(&gate).get("status");
    assert_eq!(status["admin"], gate.ready()["admin"]);
    assert_eq!((&status["local"], &status["pid"]), (&true.into(), &gate.pid().into()));
    assert_eq!(status["audit"]["durability"], Value::Null);
    assert_eq!(status["durability"], "process");

    let servers = Api::admin(&gate).get("servers");
    assert_eq!(servers["items"][0]["name"], "peer");
    assert_eq!((&servers["items"][0]["source"], &servers["next"]), (&"file".into(), &Value::Null));
    let people = Api::admin(&gate).get("people");
    assert_eq!(people["items"][0]["name"], "admin");
    for path in ["nothing", "grants/x/y/z", ""] {
        Api::admin(&gate).expect(404, "GET", path, "");
    }
    Api::admin(&gate).expect(405, "DELETE", "status", "");
    Api::admin(&gate).expect(400, "GET", "grants?lable=x", "");
    // Nothing of it is on the agents' port.
    assert_eq!(get(&gate.mcp(), "/api/v1/status").status, 404);

    assert!(!gate.log.text().contains(&admin_token(&gate.home)), "the token was printed");
    assert_eq!(gate.stop().0, Some(0));
    assert!(!data.join("serve.json").exists(), "removed with the gateway");
}

#[test]
fn the_description_of_the_api() {
    let gate = Gate::start("");
    let document = Api::admin(&gate).get("openapi.json");
    golden::check("api/openapi.json", &(serde_json::to_string_pretty(&document).unwrap() + "\n"));
}

/// Every route, and who may use it.
const ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "openapi.json", "viewer"),
    ("GET", "approvals", "viewer"),
    ("GET", "approvals/standing", "viewer"),
    ("GET", "approvals/standing/{id}", "viewer"),
    ("DELETE", "approvals/standing/{id}", "approver"),
    ("GET", "approvals/{id}", "viewer"),
    ("POST", "approvals/{id}/approve", "approver"),
    ("POST", "approvals/{id}/deny", "approver"),
    ("GET", "status", "viewer"),
    ("GET", "servers", "viewer"),
    ("POST", "servers", "admin"),
    ("POST", "look", "admin"),
    ("DELETE", "servers/{name}", "admin"),
    ("POST", "servers/{name}/test", "admin"),
    ("GET", "servers/{name}/log", "admin"),
    ("GET", "sessions", "viewer"),
    ("GET", "tools", "viewer"),
    ("GET", "tools/{server}/{tool}", "viewer"),
    ("POST", "tools/{server}/{tool}/approve", "admin"),
    ("POST", "tools/{server}/{tool}/reject", "admin"),
    ("POST", "tools/{server}/{tool}/call", "admin"),
    ("GET", "grants", "viewer"),
    ("POST", "grants", "admin"),
    ("PATCH", "grants/{id}", "policy_manager"),
    ("GET", "grants/{id}/permissions", "viewer"),
    ("POST", "grants/{id}/rotate", "admin"),
    ("DELETE", "grants/{id}", "admin"),
    ("POST", "grants/{id}/restore", "admin"),
    ("POST", "grants/{id}/delegate", "admin"),
    ("GET", "people", "viewer"),
    ("POST", "people", "admin"),
    ("POST", "people/{id}/rotate", "admin"),
    ("DELETE", "people/{id}", "admin"),
    ("GET", "policies", "viewer"),
    ("GET", "policies/{name}", "viewer"),
    ("PUT", "policies/{name}", "policy_manager"),
    ("DELETE", "policies/{name}", "policy_manager"),
    ("GET", "policies/{name}/versions", "viewer"),
    ("POST", "policies/{name}/rollback", "policy_manager"),
    ("GET", "known_tools", "viewer"),
    ("POST", "policies/{name}/explain", "viewer"),
    ("POST", "policies/{name}/check", "viewer"),
    ("POST", "policies/{name}/plan", "viewer"),
    ("GET", "freeze", "viewer"),
    ("POST", "freeze", "admin"),
    ("DELETE", "freeze/{id}", "admin"),
    ("PUT", "local", "admin"),
    ("POST", "clock/accept", "admin"),
    ("POST", "console/link", "viewer"),
    ("GET", "audit", "viewer"),
    ("POST", "audit/verify", "viewer"),
    ("GET", "audit/{call_id}", "viewer"),
    ("GET", "events", "viewer"),
];

#[test]
fn every_route_for_every_role() {
    let gate = staffed("");
    let described = Api::admin(&gate).get("openapi.json");
    let mut known: Vec<String> = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1/").unwrap();
        known.extend(methods.as_object().unwrap().keys().map(|method| format!("{method} {path}")));
    }
    let mut here: Vec<String> = ROUTES
        .iter()
        .map(|(method, path, _)| format!("{} {path}", method.to_lowercase()))
        .collect();
    known.sort();
    here.sort();
    assert_eq!(known, here, "a route without its row in this test");

    let status = |api: &Api, method: &str, path: &str| {
        let path = ["{id}", "{name}", "{server}", "{tool}"]
            .iter()
            .fold((*path).to_owned(), |path, part| path.replace(part, "nothing"));
        let mut connection = api.begin(method, &format!("/api/v1/{path}"), "", "");
        connection.head().status
    };
    for (method, path, role) in ROUTES {
        assert_eq!(status(&Api::anonymous(&gate), method, path), 401, "{method} {path}: no token");
        let agent = Api::with(&gate, AGENT);
        assert_eq!(status(&agent, method, path), 401, "{method} {path}: the token of a grant");
        for (who, token) in DUTY {
            let may = who == "admin" || *role == "viewer" || who == *role;
            let got = status(&Api::with(&gate, token), method, path);
            assert!(got != 401, "{method} {path} as {who}: {got}");
            assert_eq!(got != 403, may, "{method} {path} as {who}: {got}");
        }
    }
    // A policy manager may attach policies, but not widen the reach of a grant.
    let manager = Api::with(&gate, DUTY[2].1);
    manager.expect(403, "PATCH", "grants/agent", r#"{"servers":null}"#);
    manager.expect(409, "PATCH", "grants/agent", r#"{"policy":"open"}"#);
}
