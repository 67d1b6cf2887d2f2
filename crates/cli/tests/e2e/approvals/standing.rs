//! Standing exceptions end for good, and every end is recorded.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Desk, calling, code};
use crate::agent::Agent;
use crate::api::Api;
use crate::gate::eventually;
use crate::program::{Card, Program};

const POLICY: &str = "version: '1'\ndefault: allow\ntools: { pid: { approve: { wait: 0s } } }\n";
const OTHER: &str = "version: '1'\ndefault: allow\n\
                     tools: { pid: { approve: { wait: 0s } }, echo: { action: deny } }\n";

/// An agent whose calls of `pid` are held by a policy of the store.
fn agent(desk: &Desk) -> Agent {
    desk.api().expect(200, "PUT", "policies/stored", POLICY);
    let grant = r#"{"label":"second","policy":"stored"}"#;
    let made = desk.api().expect(201, "POST", "grants", grant);
    Agent::open_with(&desk.gate, "peer", made["token"].as_str().unwrap())
}

/// Calls `pid` with `to: a`; `by` lets similar calls pass.
fn except(agent: &Agent, by: &Api, time: &str) {
    let held = agent.call("pid", &json!({"to": "a", "n": 0}));
    let id = held["_meta"]["approval_id"].as_str().unwrap();
    let body = json!({"similar": {"for": time, "keep": ["args.to"]}}).to_string();
    by.expect(200, "POST", &format!("approvals/{id}/approve"), &body);
}

fn calls(agent: &Agent, n: u32) -> String {
    code(&agent.call("pid", &json!({"to": "a", "n": n}))).to_owned()
}

fn standing(desk: &Desk) -> Vec<Value> {
    desk.api().get("approvals/standing")["items"].as_array().unwrap().clone()
}

/// Waits for a row of a standing exception with this message.
fn recorded(desk: &Desk, message: &str) {
    eventually(&format!("a row says `{message}`"), || {
        let rows = desk.api().get("audit?limit=1000&kind=approval");
        let mut rows = rows["items"].as_array().unwrap().iter();
        let is_it = |row: &Value| {
            row["message"] == message && row["approval_id"].as_str().unwrap().starts_with("std_")
        };
        rows.any(is_it).then_some(())
    });
}

#[test]
fn a_changed_policy_ends_an_exception_even_if_it_changes_back() {
    let desk = Desk::new("");
    let agent = agent(&desk);
    except(&agent, &desk.api(), "1h");
    assert_eq!((calls(&agent, 1).as_str(), standing(&desk).len()), ("sent", 1));
    // Another text of the same meaning changes nothing.
    desk.api().expect(200, "PUT", "policies/stored", &format!("# the same\n{POLICY}"));
    assert_eq!((calls(&agent, 2).as_str(), standing(&desk).len()), ("sent", 1));
    desk.api().expect(200, "PUT", "policies/stored", OTHER);
    recorded(&desk, "ended a standing exception: the policy of its grant has changed");
    assert_eq!(standing(&desk), [Value::Null; 0]);
    desk.api().expect(200, "PUT", "policies/stored", POLICY);
    assert_eq!(calls(&agent, 3), "approval_required");
}

#[test]
fn an_exception_ends_with_its_person() {
    let desk = Desk::new("");
    let agent = agent(&desk);
    let boss = desk.person("boss", "[]");
    except(&agent, &boss, "1h");
    assert_eq!(calls(&agent, 1), "sent");
    let people = desk.api().get("people");
    let id = people["items"].as_array().unwrap().iter().find(|it| it["name"] == "boss").unwrap();
    desk.api().expect(204, "DELETE", &format!("people/{}", id["id"].as_str().unwrap()), "");
    assert_eq!(calls(&agent, 2), "approval_required");
    recorded(&desk, "ended a standing exception: its person may not answer approvals any more");
    assert_eq!(standing(&desk), [Value::Null; 0]);
}

/// Those who let similar calls pass could have answered each of them.
#[test]
fn an_exception_lifts_no_hold_that_asks_others() {
    const ASKING: &str = "version: '1'\ndefault: allow\ntools:\n  pid:\n    \
        approve: { wait: 0s, approvers: [ops, heads] }\n    approve_if:\n      \
        - { conditions: [{ path: args.n, op: gt, value: 9 }], approvers: [heads], wait: 0s }\n      \
        - { conditions: [{ path: args.n, op: gt, value: 99 }], people: 2, wait: 0s }\n";
    let desk = Desk::new("");
    let agent = agent(&desk);
    desk.api().expect(200, "PUT", "policies/stored", ASKING);
    let ops = desk.person("boss", r#"["ops"]"#);
    let director = desk.person("director", r#"["heads"]"#);
    except(&agent, &ops, "1h");
    let standing = standing(&desk).remove(0);
    assert_eq!(
        (&standing["approvers"], &standing["people"]),
        (&json!(["ops", "heads"]), &json!(1))
    );
    let one = format!("approvals/standing/{}", standing["id"].as_str().unwrap());
    assert_eq!(desk.api().get(&one), standing);
    let ends = [9, 10, 100].map(|n| calls(&agent, n));
    assert_eq!(ends, ["sent", "approval_required", "approval_required"]);
    // One by the group that the stricter rule asks lifts its holds, too.
    let held = agent.call("pid", &json!({"to": "a", "n": 10}));
    let id = held["_meta"]["approval_id"].as_str().unwrap();
    let body = json!({"similar": {"for": "1h", "keep": ["args.to"]}}).to_string();
    ops.expect(403, "POST", &format!("approvals/{id}/approve"), &body);
    director.expect(200, "POST", &format!("approvals/{id}/approve"), &body);
    let ends = [11, 12, 100].map(|n| calls(&agent, n));
    assert_eq!(ends, ["sent", "sent", "approval_required"]);
    desk.api().expect(204, "DELETE", &one, "");
    desk.api().expect(404, "GET", &one, "");
}

/// What was let pass in one session is held in another.
#[test]
fn an_exception_belongs_to_one_session() {
    let desk = Desk::new("");
    let mut programs =
        ["u1", "u2"].map(|uid| Program::register(&desk.gate, &Card::new(uid, "ask")));
    let call = |session: &str, n| {
        let arguments = json!({"session_id": session, "to": "a", "n": n});
        calling(desk.agent("/mcp/sessions"), "ask", arguments)
    };
    let first = call("u1", 1);
    let id = desk.pending()["id"].as_str().unwrap().to_owned();
    let similar = json!({"similar": {"for": "1h", "keep": ["args.to"]}}).to_string();
    desk.api().expect(200, "POST", &format!("approvals/{id}/approve"), &similar);
    programs[0].serve("yes");
    assert_eq!(code(&first.join().unwrap()), "sent");
    assert_eq!(standing(&desk)[0]["session_id"], "u1");
    let second = call("u1", 2);
    programs[0].serve("yes");
    assert_eq!(code(&second.join().unwrap()), "sent");
    let other = call("u2", 3);
    let approval = desk.pending();
    assert_eq!(approval["session_id"], "u2");
    desk.answer(&approval, "approve", "");
    programs[1].serve("yes");
    assert_eq!(code(&other.join().unwrap()), "sent");
}

#[test]
fn the_expiry_of_an_exception_is_recorded() {
    let desk = Desk::new("");
    let agent = agent(&desk);
    except(&agent, &desk.api(), "2s");
    recorded(&desk, "a standing exception has expired");
    assert_eq!((calls(&agent, 0).as_str(), standing(&desk).len()), ("sent", 0), "the approval");
    assert_eq!(calls(&agent, 2), "approval_required");
}

/// The answer of a person whose token has expired before the call is sent is void.
#[test]
fn the_answer_of_an_expired_person_is_void() {
    let desk = Desk::new("");
    let agent = agent(&desk);
    let end = Timestamp::now() + SignedDuration::from_secs(2);
    let person = json!({"name": "guest", "roles": ["approver"], "expires": end.to_string()});
    let made = desk.api().expect(201, "POST", "people", &person.to_string());
    let guest = Api::with(&desk.gate, made["token"].as_str().unwrap());
    let held = agent.call("pid", &json!({}));
    let id = held["_meta"]["approval_id"].as_str().unwrap();
    guest.expect(200, "POST", &format!("approvals/{id}/approve"), "");
    eventually("the token has expired", || {
        (guest.ask("GET", "approvals", "").status == 401).then_some(())
    });
    let again = agent.call("pid", &json!({}));
    assert_eq!((code(&again), &again["_meta"]["approval_id"]), ("approval_required", &json!(id)));
    assert_eq!(desk.received("pid"), 0);
}
