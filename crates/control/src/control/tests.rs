use jiff::Timestamp;
use toolgate_audit::{ArgumentHashKey, ArgumentMode, RowKind};
use toolgate_config::{Limits, ServerConfig};
use toolgate_gateway::{Admission, ArgumentRecording, Clock, Ids, Metrics, Server};
use toolgate_store::{Engine, EngineSettings, MemoryBackend, RowQuery};

use super::*;
use crate::error::WiringError;
use crate::policies::PolicyFiles;
use crate::test_config::{config, stored_grant, token};

const ALLOW: &str = "version: '1'\ndefault: allow\n";

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

impl Ids for Fixed {
    fn agent_session(&self) -> Option<String> {
        None
    }
    fn call(&self) -> Option<[u8; 10]> {
        None
    }
}

/// No server can be created.
struct Unwired;

impl Wiring for Unwired {
    fn server(&self, config: &ServerConfig, _: &Limits) -> Result<Arc<Server>, WiringError> {
        Err(format!("no way to `{}`", config.name).into())
    }
}

fn control() -> Arc<Control> {
    let engine =
        Engine::inline(MemoryBackend::default(), EngineSettings::default(), Timestamp::UNIX_EPOCH)
            .unwrap();
    let store: Arc<dyn Store> = Arc::new(engine);
    let writing = ArgumentRecording { mode: ArgumentMode::Keys, secret: ArgumentHashKey([0; 32]) };
    let admission = Admission::new(Arc::clone(&store), Arc::new(Fixed), Arc::new(Fixed), writing);
    let limits = agent_sessions(&config(""));
    Control::new(Parts {
        store,
        gateway: Gateway::new(Arc::new(Fixed), Metrics::default(), limits, Arc::new(admission)),
        wiring: Box::new(Unwired),
        added_servers: AddedServers::new(std::path::Path::new("/data")),
        bound: config("").listen,
        admin_token: Hash::of(b"admin"),
    })
}

fn file(text: &str) -> FileState {
    FileState { config: config(text), policies: PolicyFiles::default(), local_policy: None }
}

fn row() -> Draft {
    Draft::new(RowKind::Admin, Timestamp::UNIX_EPOCH)
}

fn put_grant(label: &str, policy: Option<&str>) -> Change {
    Change::PutGrant(Box::new(stored_grant(label, policy, false)))
}

#[tokio::test]
async fn a_change_is_active_when_it_returns() {
    let control = control();
    control.replace_file(file("")).await.unwrap();
    assert!(control.summary().await.local);
    control.change(put_grant("a", None), row()).await.unwrap();
    let summary = control.summary().await;
    assert!(!summary.local && summary.has_stored_grants && summary.grants == 1);
    let admission = control.gateway().admission();
    assert_eq!(admission.generation(), Some(control.store().generation()));
    assert_eq!(control.view().grants.first().unwrap().label, "a");
    assert!(control.people().find("admin", Timestamp::UNIX_EPOCH).is_some());
}

#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing() {
    let control = control();
    control.replace_file(file("grants: [{ label: a, token: env:A }]")).await.unwrap();
    control.change(put_grant("b", None), row()).await.unwrap();
    let wrong = [
        ("policies: { p: { version: '1', default: alow } }", "error["),
        ("grants: [{ label: b, token: env:B }]", "the label `b`"),
        ("servers: { s: { url: 'http://127.0.0.1:1/' } }", "no way to `s`"),
    ];
    for (text, expected) in wrong {
        let why = control.replace_file(file(text)).await.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
        let labels: Vec<String> =
            control.view().grants.iter().map(|grant| grant.label.clone()).collect();
        assert_eq!(labels, ["a", "b"], "{text}");
    }
}

#[tokio::test]
async fn a_grant_of_the_file_ends_local_mode_for_good() {
    let control = control();
    for (text, expected) in
        [("", true), ("grants: [{ label: a, token: env:A }]", false), ("", false)]
    {
        control.replace_file(file(text)).await.unwrap();
        assert_eq!(control.summary().await.local, expected, "{text}");
    }
    let enabled = LocalMode::Enabled(Vec::new());
    control.change(enabled.keep(), row()).await.unwrap();
    assert!(control.summary().await.local, "a person can enable it again");
}

#[tokio::test]
async fn a_policy_is_checked_once_and_active_after_the_change() {
    let control = control();
    control.replace_file(file("")).await.unwrap();
    let rejected = control.check_policy("p", "version: '1'\ndefault: alow\n").await;
    assert!(matches!(rejected, Err(NotAccepted::Rejected(_))), "{rejected:?}");
    let policy = control.check_policy("p", ALLOW).await.unwrap();
    let change = Change::PutPolicy { name: "p".into(), document: ALLOW.into() };
    control.change(change, row()).await.unwrap();
    let view = control.view();
    assert!(Arc::ptr_eq(&view.in_force.get("p").unwrap().policy, &policy.policy), "loaded once");
}

#[tokio::test]
async fn an_edit_is_recorded_before_it_is_active() {
    let control = control();
    control.replace_file(file("")).await.unwrap();
    let edited = "policies: { p: { version: '1', default: allow } }\n\
                  people: [{ name: duty, token: env:DUTY, roles: [viewer] }]";
    control.replace_file(file(edited)).await.unwrap();
    control.replace_file(file(edited)).await.unwrap();
    let rows = control.store().rows(RowQuery { limit: 100, ..RowQuery::default() }).await.unwrap();
    let messages: Vec<_> = rows.iter().filter_map(|row| row.draft.message.as_deref()).collect();
    let expected =
        ["the configuration has a new policy `p`", "toolgate.yaml was edited: person `duty` added"];
    assert_eq!(messages, expected);
    let people = control.people();
    assert!(people.find(&token("DUTY"), Timestamp::UNIX_EPOCH).is_some());
}

#[tokio::test]
async fn a_change_of_another_process_is_active_after_a_refresh() {
    let control = control();
    control.replace_file(file("")).await.unwrap();
    control.store().change(put_grant("a", None), row()).await.unwrap();
    assert!(control.view().grants.is_empty());
    control.refresh().await.unwrap();
    assert_eq!(control.view().grants.len(), 1);
}
