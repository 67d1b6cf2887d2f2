//! Cases about the setup and about reopening.

use std::sync::Arc;

use toolgate_audit::{Draft, Effect, Hash, Outcome, RowKind};

use super::{StoreFixture, TestAgent, all_rows, assert_whole, at, calls::end, wait};
use crate::{
    AdmitOutcome, AdmitRequest, Change, ChangeError, Document, Freeze, FreezeTarget, PolicyVersion,
    Store, StoredGrant, StoredPerson,
};

fn grant(id: &str, label: &str) -> StoredGrant {
    StoredGrant {
        id: id.into(),
        label: label.into(),
        token: Hash::of(id.as_bytes()),
        identity: Some("desk".into()),
        groups: vec!["sales".into(), "ops".into()],
        servers: Some(vec!["zulip".into()]),
        sessions: Some(r#"{"kind":["1c"]}"#.into()),
        policy: Some("readonly".into()),
        created: at(5),
        expires: Some(at(500)),
        last_use: None,
        revoked: None,
    }
}

fn person(id: &str, name: &str) -> StoredPerson {
    StoredPerson {
        id: id.into(),
        name: name.into(),
        token: Hash::of(name.as_bytes()),
        roles: vec!["approver".into()],
        groups: Vec::new(),
        created: at(6),
        expires: None,
        revoked: None,
    }
}

fn documents(space: &str, key: &str, json: &str) -> Document {
    Document { space: space.into(), key: key.into(), json: json.into() }
}

fn change(store: &dyn Store, change: Change) -> Result<u64, ChangeError> {
    let mut row = Draft::new(RowKind::Admin, at(9));
    row.person = Some("admin".into());
    wait(store.change(change, row))
}

/// Each change has its row and a new generation, and is in the snapshot.
pub fn changes_are_seen_and_audited(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let freeze = Freeze { id: "f".into(), what: FreezeTarget::Grant("a".into()), created: at(7) };
    let all = Freeze { id: "g".into(), what: FreezeTarget::All, created: at(7) };
    let server = Freeze { id: "h".into(), what: FreezeTarget::Server("s".into()), created: at(7) };
    let session =
        Freeze { id: "i".into(), what: FreezeTarget::Session("u".into()), created: at(7) };
    let plain = StoredGrant {
        identity: None,
        groups: Vec::new(),
        servers: None,
        sessions: None,
        policy: None,
        expires: None,
        ..grant("2", "b")
    };
    let policy = |document: &str| Change::PutPolicy { name: "p".into(), document: document.into() };
    let changes = [
        Change::PutGrant(Box::new(grant("1", "a"))),
        Change::PutGrant(Box::new(plain.clone())),
        Change::RevokeGrant("2".into()),
        Change::PutPerson(Box::new(person("3", "duty"))),
        Change::RevokePerson("3".into()),
        policy("one"),
        policy("two"),
        Change::Freeze(freeze),
        Change::Freeze(all.clone()),
        Change::Freeze(server.clone()),
        Change::Freeze(session.clone()),
        Change::Unfreeze("f".into()),
        Change::PutDocument(documents("tools", "zulip", "[1]")),
        Change::PutDocument(documents("tools", "zulip", "[2]")),
        Change::PutDocument(documents("tools", "gone", "[]")),
        Change::RemoveDocument("tools".into(), "gone".into()),
        Change::PutDocument(documents("showcase", "zulip", "{}")),
        Change::ReplaceDocuments {
            space: "tools".into(),
            keep: vec![("a".into(), "[3]".into()), ("b".into(), "[4]".into())],
            forget: vec!["a".into(), "never there".into()],
        },
        Change::PutDocument(documents("servers", "added", "{}")),
        Change::RemoveDocument("servers".into(), "added".into()),
    ];
    let before = store.generation();
    let made = u64::try_from(changes.len()).unwrap();
    // Documents of other spaces affect no decision and may change often.
    let kept_alone = 6;
    for one in changes {
        change(&*store, one).unwrap();
    }
    assert_eq!(store.generation(), before + made - kept_alone);
    store.touch("1".into(), at(39));
    store.touch("1".into(), at(40));
    store.tick(at(40));
    wait(store.record(Draft::new(RowKind::Drift, at(41)))).unwrap();
    let snapshot = wait(store.snapshot()).unwrap();
    assert_eq!(snapshot.generation, store.generation());
    let used = StoredGrant { last_use: Some(at(40)), ..grant("1", "a") };
    let revoked = StoredGrant { revoked: Some(at(9)), ..plain };
    assert_eq!(snapshot.grants, [used, revoked]);
    assert_eq!(snapshot.people, [StoredPerson { revoked: Some(at(9)), ..person("3", "duty") }]);
    let (name, document) = (Arc::from("p"), Arc::from("two"));
    assert_eq!(snapshot.policies, [PolicyVersion { name, version: 2, document, created: at(9) }]);
    assert_eq!(snapshot.freezes, [all, server, session]);
    let tools = [("a", "[3]"), ("b", "[4]"), ("zulip", "[2]")];
    assert_eq!(
        wait(store.documents("tools")).unwrap(),
        tools.map(|(key, json)| documents("tools", key, json))
    );
    let rows = all_rows(&*store);
    let admin = rows.iter().filter(|row| row.draft.kind == RowKind::Admin).count();
    assert_eq!(u64::try_from(admin).unwrap(), made);
    change(&*store, Change::RemovePolicy("p".into())).unwrap();
    change(&*store, policy("three")).unwrap();
    let version = wait(store.snapshot()).unwrap().policies.first().map(|p| p.version);
    assert_eq!(version, Some(3), "versions never start again");
    assert_whole(&*store);
}

/// A label or name stays taken for ever; a missing object cannot be changed. Neither attempt leaves
/// a row.
pub fn names_are_unique(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    change(&*store, Change::PutGrant(Box::new(grant("1", "a")))).unwrap();
    change(&*store, Change::RevokeGrant("1".into())).unwrap();
    change(&*store, Change::PutPerson(Box::new(person("1", "duty")))).unwrap();
    let rows = all_rows(&*store).len();
    for (wrong, error) in [
        (Change::PutGrant(Box::new(grant("2", "a"))), ChangeError::NameTaken("a".into())),
        (Change::PutPerson(Box::new(person("2", "duty"))), ChangeError::NameTaken("duty".into())),
        (Change::RevokeGrant("9".into()), ChangeError::Unknown("9".into())),
        (Change::RevokePerson("9".into()), ChangeError::Unknown("9".into())),
        (Change::RemovePolicy("9".into()), ChangeError::Unknown("9".into())),
        (Change::Unfreeze("9".into()), ChangeError::Unknown("9".into())),
        (Change::RemoveDocument("x".into(), "9".into()), ChangeError::Unknown("9".into())),
    ] {
        assert_eq!(change(&*store, wrong), Err(error));
    }
    assert_eq!(all_rows(&*store).len(), rows);
    change(&*store, Change::PutGrant(Box::new(grant("1", "b")))).unwrap();
    change(&*store, Change::PutGrant(Box::new(grant("2", "a")))).unwrap();
    assert_whole(&*store);
}

/// A decision based on outdated grants, policies or freezes is not admitted.
pub fn stale_decisions_are_not_admitted(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "a");
    let known = Some(store.generation());
    let request = || AdmitRequest { generation: known, ..agent.request("close", "{}", at(1)) };
    let Ok(AdmitOutcome::Admitted(admitted)) = wait(store.admit(request())) else {
        panic!("refused")
    };
    end(admitted, Outcome::Ok, Effect::Done, at(2));
    let freeze = Freeze { id: "f".into(), what: FreezeTarget::All, created: at(2) };
    let (frozen, answer) = (
        store.change(Change::Freeze(freeze), Draft::new(RowKind::Admin, at(2))),
        store.admit(request()),
    );
    wait(frozen).unwrap();
    assert!(matches!(wait(answer), Ok(AdmitOutcome::Stale)));
    assert_whole(&*store);
}

/// Counters, the high-water mark, owned ids, the setup and the chain survive a restart.
pub fn reopening_keeps_everything(fixture: &dyn StoreFixture) {
    let mut store = fixture.open(at(0));
    if !fixture.is_durable() {
        wait(store.close(at(1))).unwrap();
        assert!(TestAgent::new(&store, "a").ask("close", "{}", at(10)).is_err());
        assert!(all_rows(&*fixture.open(at(2))).is_empty());
        return;
    }
    change(&*store, Change::PutGrant(Box::new(grant("1", "a")))).unwrap();
    let mut admitted = 0;
    for round in 0..10 {
        let agent = TestAgent::new(&store, "a");
        admitted += (0..4).filter(|_| agent.call_through("close", "{}", at(10))).count();
        admitted += (0..4).filter(|_| agent.call_through("slide", "{}", at(10))).count();
        assert_eq!(agent.call_through("once", "{}", at(10)), round == 0);
        let generation = store.generation();
        let snapshot = wait(store.snapshot()).unwrap();
        wait(store.close(at(10))).unwrap();
        assert!(agent.ask("close", "{}", at(10)).is_err(), "a closed store admits nothing");
        store = fixture.open(at(10));
        assert_eq!(store.generation(), generation);
        assert_eq!(wait(store.snapshot()).unwrap(), snapshot);
    }
    assert_eq!(admitted, 60);
    assert_whole(&*store);
}
