//! Local mode: calls without a token, until the first grant, and again if a person wants it.

use serde_json::json;

use crate::agent::{NEWEST, initialize};
use crate::api::Api;
use crate::gate::{Gate, Home, eventually};
use crate::peer::Peer;

const TOKENS: [(&str, &str); 2] =
    [("ONE", "the-first-token-of-all-of-them"), ("TWO", "the-second-token-of-all-of-them")];
const ONE: &str = "{ label: one, token: 'env:ONE' }";
const TWO: &str = "{ label: two, token: 'env:TWO' }";

fn is_open(gate: &Gate) -> bool {
    initialize(gate, "peer", NEWEST).status == 200
}

#[test]
fn a_new_grant_of_the_file_ends_it_every_time() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let servers = format!("servers:\n{}", peer.entry("", ""));
    let with = |grants: &str| format!("grants: [{grants}]\n{servers}");
    let start = |home: Home, config: &str| {
        Gate::start_as(home, config, |command| {
            command.envs(TOKENS);
        })
    };
    let mut gate = start(home, &servers);
    assert!(is_open(&gate));
    // A file that cannot be used ends nothing.
    gate.configure(&format!("policies: {{ p: {{ file: none.yaml }} }}\n{}", with(ONE)));
    gate.log.wait_for("configuration not reloaded");
    assert!(is_open(&gate));
    assert_eq!(Api::admin(&gate).changes(), [] as [&str; 0]);

    gate.configure(&with(ONE));
    eventually("the first grant ends it", || (!is_open(&gate)).then_some(()));
    Api::admin(&gate).expect(200, "PUT", "local", r#"{"enabled":true}"#);
    assert!(is_open(&gate), "beside the grant that was there");
    // The same grants end nothing again, also after a restart.
    assert_eq!(gate.stop().0, Some(0));
    let mut gate = start(gate.into_home(), &with(ONE));
    assert!(is_open(&gate));
    gate.configure(&with(&format!("{ONE}, {TWO}")));
    eventually("another grant ends it again", || (!is_open(&gate)).then_some(()));
    assert_eq!(gate.stop().0, Some(0));
    let gate = start(gate.into_home(), &with(ONE));
    assert!(!is_open(&gate), "for good");
    let ended = "-: local mode has ended: toolgate.yaml has a new grant";
    let enabled = "admin: enabled local mode (calls without a token)";
    let edited = |label: &str| format!("-: toolgate.yaml was edited: grant `{label}` added");
    let (one, two) = (edited("one"), edited("two"));
    let expected = [one.as_str(), ended, enabled, &two, ended];
    assert_eq!(Api::admin(&gate).changes(), expected);
}

#[test]
fn tools_are_known_to_people_before_any_agent_came() {
    let home = Home::new();
    let (one, dead) = (Peer::new(&home, "one"), Peer::new(&home, "dead"));
    let servers = [one.entry("listing", ""), dead.entry("exits", "")].concat();
    let gate = Gate::start_in(home, &format!("servers:\n{servers}"));
    assert_eq!(one.started().len(), 0, "nobody has asked yet");
    let api = Api::admin(&gate);
    let tools = eventually("its tools are known", || {
        let items = api.get("tools")["items"].clone();
        (items != json!([])).then_some(items)
    });
    let names: Vec<_> =
        tools.as_array().unwrap().iter().map(|tool| (&tool["server"], &tool["name"])).collect();
    let (server, echo, pid) = (json!("one"), json!("echo"), json!("pid"));
    assert_eq!(names, [(&server, &echo), (&server, &pid)]);
    eventually("nothing of it stays", || (api.get("status")["agent_sessions"] == 0).then_some(()));
}
