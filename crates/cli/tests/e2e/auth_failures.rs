//! Failed authentication leaves a row, a line and a count, within limits; never what was sent.

use serde_json::{Value, json};

use crate::agent::{NEWEST, initialize_with};
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::program::Program;
use crate::wire::{ask, get};

const CANARY: &str = "CANARY-a-token-nobody-has-made-0123";

fn guarded() -> Gate {
    let config = "policies: { open: { version: '1', default: allow } }\n\
                  grants: [{ label: g, token: env:G, policy: open }]\n\
                  sessions: { tokens: [env:S] }\n";
    Gate::start_as(Home::new(), config, |command| {
        command.env("G", "a-token-of-a-grant-0123456").env("S", "a-token-of-a-program-01234");
    })
}

fn count(gate: &Gate, listener: &str, reason: &str) -> u64 {
    let text = get(&gate.admin(), "/metrics").body;
    let name =
        format!("toolgate_auth_failures_total{{listener=\"{listener}\",reason=\"{reason}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

fn rows(gate: &Gate, listener: &str, reason: &str) -> Vec<Value> {
    let rows = Api::admin(gate).get("audit?limit=1000");
    let words = match reason {
        "no_token" => "no token",
        "bad_token" => "unknown token",
        "role" => "missing role",
        "host" => "foreign Host",
        "origin" => "foreign Origin",
        other => panic!("{other}"),
    };
    let printed = format!(": {words}, from ");
    let of = |row: &&Value| {
        row["via"] == listener && row["message"].as_str().unwrap_or_default().contains(&printed)
    };
    rows["items"].as_array().unwrap().iter().filter(of).cloned().collect()
}

#[test]
fn each_failed_authentication_is_recorded() {
    let mut gate = guarded();
    let reasons = ["no_token", "bad_token", "host", "origin"];
    for listener in ["mcp", "sessions", "admin", "metrics"] {
        for reason in reasons {
            assert_eq!(count(&gate, listener, reason), 0, "there from the start");
        }
    }
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let (mcp, sessions, admin) = (gate.mcp(), gate.address("sessions"), gate.admin());
    let agent = |headers: &str| initialize_with(&gate, "/mcp", NEWEST, headers).status;
    assert_eq!(agent(""), 401);
    assert_eq!(agent(&bearer(CANARY)), 401);
    let raw = |address: &str, path: &str, headers: &str| {
        ask(address, &format!("GET {path} HTTP/1.1\r\n{headers}\r\n\r\n")).status
    };
    let api = Api::anonymous(&gate);
    assert_eq!(api.ask("GET", "status", "").status, 401);
    assert_eq!(Api::with(&gate, CANARY).ask("GET", "status", "").status, 401);
    for path in ["", &format!("/{CANARY}")] {
        assert_eq!(Program::dial_at(&gate, path).unwrap().closed(), Some(1008));
    }
    for (address, path) in [(&mcp, "/mcp"), (&admin, "/api/v1/status"), (&sessions, "/sessions")] {
        assert_eq!(raw(address, path, &format!("Host: {CANARY}.example")), 403);
        let origin = format!("Host: {address}\r\nOrigin: http://{CANARY}.example");
        assert_eq!(raw(address, path, &origin), 403);
    }
    for listener in ["mcp", "sessions", "admin"] {
        for reason in reasons {
            assert_eq!(count(&gate, listener, reason), 1, "{listener} {reason}");
            let found = eventually("a row", || {
                let found = rows(&gate, listener, reason);
                (!found.is_empty()).then_some(found)
            });
            let [row] = found.as_slice() else { panic!("{found:?}") };
            let kind = if listener == "sessions" { "session" } else { "refused" };
            assert_eq!((&row["kind"], &row["client"]), (&json!(kind), &json!("127.0.0.1")));
            assert!(row["message"].as_str().unwrap().contains("127.0.0.1"), "{row}");
            let words = [
                format!("listener=\"{listener}\""),
                format!("reason=\"{reason}\""),
                "peer=127.0.0.1".to_owned(),
            ];
            gate.log.line_with(&words.each_ref().map(String::as_str));
        }
    }
    assert_eq!(gate.stop().0, Some(0));
    assert!(!gate.log.text().contains("CANARY"), "{}", gate.log.text());
    assert!(!gate.home.data_text().contains("CANARY"));
    let verified = gate.home.run(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(0));
}

#[test]
fn a_person_without_the_role_is_recorded() {
    let config = "people: [{ name: duty, token: 'env:T', roles: [viewer] }]";
    let gate = Gate::start_as(Home::new(), config, |command| {
        command.env("T", CANARY);
    });
    assert_eq!(count(&gate, "admin", "role"), 0, "there from the start");
    let duty = Api::with(&gate, CANARY);
    assert_eq!(duty.ask("GET", "status", "").status, 200);
    for _ in 0..30 {
        assert_eq!(duty.ask("POST", "freeze", r#"{"all":true}"#).status, 403);
    }
    assert_eq!(count(&gate, "admin", "role"), 30);
    let rows = eventually("it is in the audit", || {
        let rows = rows(&gate, "admin", "role");
        (!rows.is_empty()).then_some(rows)
    });
    assert!(rows.len() <= 10, "{rows:?}");
    assert!(rows.iter().all(|row| row["kind"] == "refused"), "{rows:?}");
    assert!(!gate.log.text().contains(CANARY));
}

#[test]
fn a_storm_of_failures_is_few_rows() {
    let mut gate = guarded();
    for _ in 0..300 {
        assert_eq!(Api::with(&gate, CANARY).ask("GET", "status", "").status, 401);
    }
    assert_eq!(count(&gate, "admin", "bad_token"), 300);
    assert_eq!(gate.stop().0, Some(0));
    let output =
        gate.home.run(&["audit", "list", "--after", "0", "--limit", "1000", "-o", "jsonl"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let refused: Vec<Value> = rows.filter(|row| row["kind"] == "refused").collect();
    // A minute may end in between.
    assert!((11..=22).contains(&refused.len()), "{}", refused.len());
    let all: u64 = refused.iter().map(|row| row["count"].as_u64().unwrap_or(1)).sum();
    assert_eq!(all, 300, "none is lost");
}

#[test]
fn two_tokens_in_one_request_are_refused() {
    let gate = guarded();
    let good = "Authorization: Bearer a-token-of-a-grant-0123456\r\n";
    assert_eq!(initialize_with(&gate, "/mcp", NEWEST, good).status, 200);
    assert_eq!(initialize_with(&gate, "/mcp", NEWEST, &format!("{good}{good}")).status, 401);
    let admin = crate::api::admin_token(&gate.home);
    let headers = format!("Host: {}\r\nAuthorization: Bearer {admin}\r\n", gate.admin());
    let raw = |method: &str, headers: &str| {
        ask(&gate.admin(), &format!("{method} /api/v1/status HTTP/1.1\r\n{headers}\r\n")).status
    };
    assert_eq!(raw("GET", &headers), 200);
    let twice = format!("{headers}Authorization: Bearer {admin}\r\n");
    assert_eq!(raw("GET", &twice), 401);
    // Neither another method nor another spelling of the path opens it.
    let bare = format!("Host: {}\r\n", gate.admin());
    for method in ["GET", "OPTIONS", "POST", "TRACE", "PUT"] {
        assert!([401, 405].contains(&raw(method, &bare)), "{method}");
    }
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "[::1]:x",
        "localhost.",
        "",
        "2130706433",
        "0177.0.0.1",
    ] {
        assert_eq!(
            raw("GET", &format!("Host: {host}\r\nAuthorization: Bearer {admin}\r\n")),
            403,
            "{host}"
        );
    }
}

#[test]
fn the_audit_is_searched_by_kind_person_code_and_time() {
    let gate = guarded();
    let api = Api::admin(&gate);
    assert_eq!(Api::anonymous(&gate).ask("GET", "status", "").status, 401);
    api.expect(201, "POST", "grants", r#"{"label":"h"}"#);
    api.expect(201, "POST", "freeze", r#"{"server":"sessions"}"#);
    let found = |query: &str| api.get(&format!("audit?{query}"))["items"].as_array().unwrap().len();
    eventually("the row is there", || (found("kind=refused") == 1).then_some(()));
    assert_eq!((found("person=admin"), found("person=nobody")), (2, 0));
    assert_eq!(found("kind=admin&person=admin"), 2);
    assert_eq!((found("code=no_token"), found("server=sessions"), found("session=u")), (1, 1, 0));
    assert_eq!((found("until=2020-01-01T00:00:00Z"), found("since=2100-01-01T00:00:00Z")), (0, 0));
    assert!(found("since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z") >= 3);
    let first = api.get("audit?person=admin&limit=1");
    assert_eq!(first["items"].as_array().unwrap().len(), 1);
    let next = first["next"].as_str().unwrap();
    let rest = api.get(&format!("audit?person=admin&after={next}"));
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    for wrong in ["kind=any", "since=yesterday", "kind=admin&kind=admin"] {
        api.expect(400, "GET", &format!("audit?{wrong}"), "");
    }
}
