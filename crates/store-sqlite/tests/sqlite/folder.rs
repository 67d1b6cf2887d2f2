//! Opening: files, permissions, versions, damage.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use toolgate_audit::Signer;
use toolgate_store::{
    Store, StoreErrorKind,
    suite::{TestAgent, all_rows, assert_whole, at, wait},
};
use toolgate_store_sqlite::{Durability, OpenOptions, SCHEMA_VERSION, open, verify};

use crate::fixture::{SqliteFixture, opened, options};

#[test]
fn files_are_for_their_owner_alone() {
    let folder = SqliteFixture::default();
    let path = folder.path().join("data");
    let OpenedFolder { store, public_key } = {
        let opened = open(&path, options(Durability::Process), at(0)).unwrap();
        OpenedFolder { store: Arc::new(opened.store), public_key: opened.public_key }
    };
    TestAgent::new(&store, "a").call_through("close", "{}", at(1));
    let mode = |name: &str| fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    for name in ["toolgate.db", "toolgate.db-wal", "audit.key", "hash.key"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    assert_eq!(public_key, Signer::new(&[42; 32]).public_key());
    wait(store.close(at(2))).unwrap();
    // Existing keys are never replaced; verifying needs only the public one.
    let mut other = options(Durability::Process);
    other.randomness.signing = [1; 32];
    let again = open(&path, other, at(3)).unwrap();
    assert_eq!(again.public_key, public_key);
    wait(again.store.close(at(3))).unwrap();
    fs::remove_file(path.join("audit.key")).unwrap();
    assert_eq!(verify(&path, Vec::new()).unwrap().first_bad, None);
    let mut text = String::new();
    fs::File::open(path.join("audit.pub")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text.trim_end().len(), 64);
}

struct OpenedFolder {
    store: Arc<dyn Store>,
    public_key: toolgate_audit::PublicKey,
}

#[test]
fn data_of_a_newer_toolgate_is_refused() {
    let folder = SqliteFixture::default();
    let store = opened(folder.path(), at(0)).store;
    wait(store.close(at(0))).unwrap();
    folder.sql().pragma_update(None, "user_version", 99).unwrap();
    let fault = open(folder.path(), options(Durability::Process), at(0)).unwrap_err();
    assert_eq!(fault.kind, StoreErrorKind::OtherVersion);
    assert!(fault.message.contains("schema 99"), "{fault}");
    assert!(verify(folder.path(), Vec::new()).is_err());
    assert_eq!(SCHEMA_VERSION, 6);
}

#[test]
fn invalid_databases_and_keys_are_reported() {
    let folder = SqliteFixture::default();
    fs::write(folder.path().join("toolgate.db"), "not a database, but long enough to be one")
        .unwrap();
    let fault = open(folder.path(), options(Durability::Process), at(0)).unwrap_err();
    assert_eq!(fault.kind, StoreErrorKind::Corrupt, "{fault}");
    let folder = SqliteFixture::default();
    fs::write(folder.path().join("audit.key"), "short").unwrap();
    let fault = open(folder.path(), options(Durability::Process), at(0)).unwrap_err();
    assert!(fault.message.contains("audit.key"), "{fault}");
}

#[test]
fn power_passes_too() {
    let folder = SqliteFixture::default();
    let opened = open(folder.path(), options(Durability::Power), at(0)).unwrap();
    let store: Arc<dyn Store> = Arc::new(opened.store);
    let agent = TestAgent::new(&store, "a");
    let admitted = (0..40).filter(|_| agent.call_through("close", "{}", at(1))).count();
    assert_eq!(admitted, 30);
    assert_whole(&*store);
}

/// Every checkpoint is delivered: after 1,000 rows, after a minute, and at the close.
#[test]
fn checkpoints_are_delivered() {
    let folder = SqliteFixture::default();
    let (tell, told) = mpsc::channel();
    let tell = move |checkpoint: &toolgate_audit::Checkpoint| tell.send(checkpoint.seq).unwrap();
    let options =
        OpenOptions { on_checkpoint: Some(Box::new(tell)), ..options(Durability::Process) };
    let store: Arc<dyn Store> = Arc::new(open(folder.path(), options, at(0)).unwrap().store);
    let agent = TestAgent::new(&store, "a");
    for _ in 0..600 {
        assert!(agent.call_through("many", "{}", at(1)));
    }
    assert!(agent.call_through("many", "{}", at(30)));
    store.tick(at(61));
    assert!(agent.call_through("many", "{}", at(62)));
    wait(store.close(at(63))).unwrap();
    let told: Vec<u64> = told.try_iter().collect();
    // The first row has no checkpoint before it, so one is due at once; the tick may share its
    // commit with the next call.
    assert!(told == [1, 1001, 1202, 1204] || told == [1, 1001, 1203, 1204], "{told:?}");
}

/// A disk that does not sync: calls are admitted for 5 s after the first unsynced row, then none
/// until a sync has succeeded.
#[test]
fn a_lagging_disk_admits_nothing() {
    let folder = SqliteFixture::default();
    let (failing, elapsed) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let (seen, passed, start) = (Arc::clone(&failing), Arc::clone(&elapsed), Instant::now());
    let sync = move |_: &fs::File| {
        if seen.load(Ordering::SeqCst) { Err(std::io::Error::other("stuck")) } else { Ok(()) }
    };
    let clock = move || start + Duration::from_millis(passed.load(Ordering::SeqCst));
    let (sync, clock) = (Arc::new(sync), Arc::new(clock));
    let options = OpenOptions { sync, clock, ..options(Durability::Process) };
    let store: Arc<dyn Store> = Arc::new(open(folder.path(), options, at(0)).unwrap().store);
    let agent = TestAgent::new(&store, "a");
    let admit = || agent.ask("many", "{}", at(1)).map(drop).map_err(|error| error.0.kind);
    assert_eq!(admit(), Ok(()));
    elapsed.store(5_000, Ordering::SeqCst);
    assert_eq!(admit(), Ok(()), "5 s are not too long");
    elapsed.store(5_001, Ordering::SeqCst);
    for _ in 0..10 {
        assert_eq!(admit(), Err(StoreErrorKind::Lagging), "a failed sync does not start anew");
    }
    let rows = all_rows(&*store).len();
    failing.store(false, Ordering::SeqCst);
    while admit().is_err() {
        std::thread::yield_now();
    }
    assert!(all_rows(&*store).len() > rows);
    wait(store.close(at(2))).unwrap();
}
