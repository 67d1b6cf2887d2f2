//! An approval releases the call that was approved, and no other. What the servers received decides.

use serde_json::{Value, json};

use super::code;
use crate::agent::Agent;
use crate::api::Api;
use crate::gate::{Gate, Home};
use crate::peer::Peer;

const POLICY: &str = "version: '1'\ndefault: allow\n\
                      tools: { pid: { approve: { wait: 0s } }, mode: { approve: { wait: 0s } } }\n";
/// The approved arguments.
const ARGUMENTS: &str = r#"{"to":"a","n":1,"more":{"x":[1,2],"y":null}}"#;
/// The same arguments.
const SAME: [&str; 3] = [
    ARGUMENTS,
    r#"{"more":{"y":null,"x":[1,2]},"n":1,"to":"a"}"#,
    r#" { "t\u006f" : "\u0061" , "n" : 1 , "more" : {"x":[ 1,2 ],"y":null} } "#,
];
/// Other arguments.
const OTHER: [&str; 15] = [
    "{}",
    r#"{"to":"a","n":1}"#,
    r#"{"to":"a","n":1,"more":{"x":[1,2],"y":null},"z":0}"#,
    r#"{"to":"a","n":1,"more":{"x":[1,2]}}"#,
    r#"{"to":"a","n":1,"more":{"x":[2,1],"y":null}}"#,
    r#"{"to":"a","n":1,"more":{"x":[1,2],"y":false}}"#,
    r#"{"to":"b","n":1,"more":{"x":[1,2],"y":null}}"#,
    r#"{"to":"A","n":1,"more":{"x":[1,2],"y":null}}"#,
    r#"{"to":"a ","n":1,"more":{"x":[1,2],"y":null}}"#,
    r#"{"to":"a\u200b","n":1,"more":{"x":[1,2],"y":null}}"#,
    r#"{"To":"a","n":1,"more":{"x":[1,2],"y":null}}"#,
    r#"{"to":"a","n":1.0,"more":{"x":[1,2],"y":null}}"#,
    r#"{"to":"a","n":1e0,"more":{"x":[1,2],"y":null}}"#,
    r#"{"to":"a","n":"1","more":{"x":[1,2],"y":null}}"#,
    r#"{"to":"a","n":-1,"more":{"x":[1,2],"y":null}}"#,
];

struct Scene {
    gate: Gate,
    peers: [Peer; 2],
    token: String,
}

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        let peers = ["one", "two"].map(|name| Peer::new(&home, name));
        let [one, two] = peers.each_ref().map(|peer| peer.entry("listing", "instances: shared"));
        let gate = Gate::start_in(home, &format!("servers:\n{one}{two}"));
        let api = Api::admin(&gate);
        api.expect(200, "PUT", "policies/held", POLICY);
        let token = grant(&api, "g");
        Self { gate, peers, token }
    }

    fn api(&self) -> Api {
        Api::admin(&self.gate)
    }

    fn agent(&self, path: &str) -> Agent {
        Agent::open_at_with(&self.gate, path, &self.token)
    }

    /// How many calls the servers received.
    fn received(&self) -> usize {
        let all = self.peers.iter().flat_map(Peer::received);
        all.filter(|message| message["method"] == "tools/call").count()
    }
}

fn grant(api: &Api, label: &str) -> String {
    let body = json!({"label": label, "policy": "held", "identity": "desk"}).to_string();
    api.expect(201, "POST", "grants", &body)["token"].as_str().unwrap().to_owned()
}

fn approval(held: &Value) -> &str {
    assert_eq!(code(held), "approval_required", "{held}");
    held["_meta"]["approval_id"].as_str().unwrap()
}

#[test]
fn each_part_of_the_call_is_bound() {
    let scene = Scene::new();
    let agent = scene.agent("/mcp/one");
    let held = agent.call_raw("pid", ARGUMENTS);
    let id = approval(&held).to_owned();
    scene.api().expect(200, "POST", &format!("approvals/{id}/approve"), "");

    let second = grant(&scene.api(), "second");
    let second = Agent::open_at_with(&scene.gate, "/mcp/one", &second);
    let mut others = vec![
        ("another grant", second.call_raw("pid", ARGUMENTS)),
        ("another server", scene.agent("/mcp/two").call_raw("pid", ARGUMENTS)),
        ("another server on /mcp", scene.agent("/mcp").call_raw("two__pid", ARGUMENTS)),
        ("another tool", agent.call_raw("mode", ARGUMENTS)),
    ];
    others.extend(OTHER.map(|other| (other, agent.call_raw("pid", other))));
    for (what, held) in &others {
        assert_ne!(approval(held), id, "{what}");
    }
    let other = format!("# other words, the same meaning\n{POLICY}");
    scene.api().expect(200, "PUT", "policies/held", &other);
    assert_eq!(scene.received(), 0);

    // The same call on another endpoint, in another spelling, is the one that was approved.
    assert_eq!(code(&scene.agent("/mcp").call_raw("one__pid", SAME[2])), "sent");
    assert_eq!(scene.received(), 1);
    let anew = approval(&agent.call_raw("pid", ARGUMENTS)).to_owned();
    assert_ne!(anew, id, "it was used");
    for same in SAME {
        assert_eq!(approval(&agent.call_raw("pid", same)), anew, "{same}");
    }
    scene.api().expect(200, "POST", &format!("approvals/{anew}/approve"), "");
    let other = POLICY.replace("mode:", "env:");
    scene.api().expect(200, "PUT", "policies/held", &other);
    assert_ne!(approval(&agent.call_raw("pid", ARGUMENTS)), anew, "another policy");
    assert_eq!(scene.received(), 1);
}
