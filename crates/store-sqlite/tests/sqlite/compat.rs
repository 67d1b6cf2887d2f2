//! Data of every released schema stays readable. `UPDATE=1` creates the newest one.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolgate_audit::{Draft, Hash, Row, RowKind};
use toolgate_store::{
    Change, Document, Freeze, FreezeTarget, Store, StoredGrant,
    suite::{StoreFixture as _, TestAgent, all_rows, assert_whole, at, wait},
};
use toolgate_store_sqlite::{SCHEMA_VERSION, verify};

use crate::fixture::SqliteFixture;

fn data(schema: usize) -> PathBuf {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat");
    all.join(format!("schema-{schema}"))
}

fn make(path: &Path) {
    let folder = SqliteFixture::default();
    let store: Arc<dyn Store> = folder.open(at(600));
    let agent = TestAgent::new(&store, "laptop");
    for _ in 0..7 {
        agent.call_through("close", "{}", at(600));
        agent.call_through("slide", "{}", at(600));
        agent.call_through("never", "{}", at(600));
    }
    agent.call_through("once", "{}", at(600));
    let grant = StoredGrant {
        id: "1".into(),
        label: "laptop".into(),
        token: Hash::of(b"token"),
        identity: None,
        groups: vec!["sales".into()],
        servers: None,
        sessions: None,
        policy: Some("suite".into()),
        created: at(1),
        expires: None,
        last_use: None,
        revoked: None,
    };
    let policy = Change::PutPolicy { name: "suite".into(), document: "version: \"1\"".into() };
    let freeze = Freeze {
        id: "f".into(),
        what: FreezeTarget::Server("zulip".into()),
        created: at(2),
        person: Some("duty".into()),
        reason: None,
    };
    let kept = Document { space: "tools".into(), key: "zulip".into(), json: "[]".into() };
    for change in [
        Change::PutGrant(Box::new(grant)),
        policy,
        Change::Freeze(freeze),
        Change::PutDocument(kept),
    ] {
        wait(store.change(change, Draft::new(RowKind::Admin, at(601)))).unwrap();
    }
    wait(store.close(at(602))).unwrap();
    drop((store, agent));
    let sql = folder.sql();
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(sql);
    fs::create_dir_all(path).unwrap();
    for name in ["toolgate.db", "audit.key", "hash.key"] {
        fs::copy(folder.path().join(name), path.join(name)).unwrap();
    }
}

#[test]
fn every_schema_is_read() {
    if std::env::var_os("UPDATE").is_some() {
        make(&data(SCHEMA_VERSION));
    }
    for schema in 1..=SCHEMA_VERSION {
        is_read(schema);
    }
}

fn is_read(schema: usize) {
    let folder = SqliteFixture::copy_of(&data(schema));
    // One call that an exited process left open.
    let leave =
        "INSERT INTO open (call_id, owner, seq) SELECT call_id, 5, seq FROM audit WHERE seq = 1";
    folder.sql().execute_batch(leave).unwrap();
    let store: Arc<dyn Store> = folder.open(at(603));
    assert_whole(&*store);
    let rows = all_rows(&*store);
    assert_eq!(rows.len(), 2 * 15 + 7 + 4 + 1, "schema {schema}");
    let of_call = |row: &Row| wait(store.call_rows(row.draft.call_id.unwrap())).unwrap().len();
    assert_eq!(rows.first().map(of_call), Some(3), "schema {schema}");
    assert_eq!(rows.get(3).map(of_call), Some(2), "schema {schema}");
    let snapshot = wait(store.snapshot()).unwrap();
    assert_eq!(snapshot.grants.first().map(|grant| &*grant.label), Some("laptop"));
    assert_eq!(snapshot.policies.first().map(|policy| policy.version), Some(1));
    assert_eq!((snapshot.people.len(), snapshot.freezes.len()), (0, 1));
    assert_eq!(wait(store.documents("tools")).unwrap().len(), 1);
    // Counters continue.
    let agent = TestAgent::new(&store, "laptop");
    for tool in ["close", "slide"] {
        let room = (0..40).filter(|_| agent.call_through(tool, "{}", at(603))).count();
        assert_eq!(room, 23, "schema {schema}, {tool}");
    }
    assert!(!agent.call_through("once", "{}", at(603)));
    assert_whole(&*store);
    assert_eq!(verify(folder.path(), Vec::new()).unwrap().first_bad, None);
}
