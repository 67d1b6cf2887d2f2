//! Cases about the setup and about reopening.

use std::sync::Arc;

use toolgate_audit::{Draft, Effect, Hash, Outcome, RowKind};

use super::{StoreFixture, TestAgent, all_rows, assert_whole, at, calls::end, wait};
use crate::{
    AdmitOutcome, AdmitRequest, Change, ChangeError, Document, Freeze, FreezeTarget, GrantUse,
    PolicyVersion, Store, StoredGrant, StoredPerson,
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

fn freeze(id: &str, what: FreezeTarget) -> Freeze {
    let (person, reason) = (Some("duty".into()), Some("it misbehaves".into()));
    Freeze { id: id.into(), what, created: at(7), person, reason }
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
    let first = freeze("f", FreezeTarget::Grant("a".into()));
    let all = Freeze { person: None, reason: None, ..freeze("g", FreezeTarget::All) };
    let server = freeze("h", FreezeTarget::Server("s".into()));
    let session = freeze("i", FreezeTarget::Session("u".into()));
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
        Change::Freeze(first),
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
    // Without a row and a generation; a setup space is not written like this.
    store.keep_documents("lists", vec![("x".into(), "[1]".into())], Vec::new());
    store.keep_documents("lists", vec![("y".into(), "[2]".into())], vec!["x".into()]);
    store.keep_documents("servers", vec![("z".into(), "{}".into())], Vec::new());
    store.touch("file:b".into(), at(38));
    store.touch("file:b".into(), at(37));
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
    assert_eq!(snapshot.uses, [GrantUse { id: "file:b".into(), at: at(38) }]);
    let tools = [("a", "[3]"), ("b", "[4]"), ("zulip", "[2]")];
    assert_eq!(
        wait(store.documents("tools")).unwrap(),
        tools.map(|(key, json)| documents("tools", key, json))
    );
    assert_eq!(wait(store.documents("lists")).unwrap(), [documents("lists", "y", "[2]")]);
    assert_eq!(wait(store.documents("servers")).unwrap(), []);
    let rows = all_rows(&*store);
    let admin = rows.iter().filter(|row| row.draft.kind == RowKind::Admin).count();
    assert_eq!(u64::try_from(admin).unwrap(), made);
    change(&*store, Change::RemovePolicy("p".into())).unwrap();
    change(&*store, policy("three")).unwrap();
    let version = wait(store.snapshot()).unwrap().policies.first().map(|p| p.version);
    assert_eq!(version, Some(3), "versions never start again");
    let versions = wait(store.policy_versions("p")).unwrap();
    let versions: Vec<_> = versions.iter().map(|it| (it.version, &*it.document)).collect();
    assert_eq!(versions, [(1, "one"), (2, "two"), (3, "three")]);
    assert_eq!(wait(store.policy_versions("another")).unwrap(), []);
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

/// Freezing a target again changes nothing and names the first freeze, until that has ended.
pub fn a_target_is_frozen_once(fixture: &dyn StoreFixture) {
    let store = fixture.open(at(0));
    let targets = [
        FreezeTarget::All,
        FreezeTarget::Grant("x".into()),
        FreezeTarget::Server("x".into()),
        FreezeTarget::Session("x".into()),
    ];
    for (number, what) in targets.into_iter().enumerate() {
        let first = freeze(&format!("f{number}"), what.clone());
        change(&*store, Change::Freeze(first.clone())).unwrap();
        let (generation, rows) = (store.generation(), all_rows(&*store).len());
        let again = Freeze { reason: Some("again".into()), ..freeze("other", what.clone()) };
        let refused = change(&*store, Change::Freeze(again.clone())).unwrap_err();
        assert_eq!(refused, ChangeError::AlreadyFrozen(first.id.to_string()));
        assert_eq!((store.generation(), all_rows(&*store).len()), (generation, rows));
        assert_eq!(wait(store.snapshot()).unwrap().freezes, std::slice::from_ref(&first));
        change(&*store, Change::Unfreeze(first.id)).unwrap();
        change(&*store, Change::Freeze(again)).unwrap();
        change(&*store, Change::Unfreeze("other".into())).unwrap();
    }
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
    let freeze = freeze("f", FreezeTarget::All);
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
