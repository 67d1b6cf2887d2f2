//! A full disk: no call is admitted, and everything recovers when there is space again.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    sync::Arc,
};

use rustix::process::{Resource, Rlimit, setrlimit};
use toolgate_audit::{Effect, Outcome};
use toolgate_store::{
    AdmitOutcome, Completion, Store, StoreErrorKind,
    suite::{TestAgent, all_rows, assert_whole, at, wait},
};

use crate::fixture::{SqliteFixture, given, opened, spawn};

/// Not a test itself, but a child process, because the file size limit applies to the whole
/// process.
#[test]
fn child_without_space() {
    let Some(folder) = given() else { return };
    // A write beyond the limit then fails instead of raising a fatal signal.
    let caught = Arc::new(std::sync::atomic::AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, caught).unwrap();
    let store: Arc<dyn Store> = Arc::new(opened(&folder, at(0)).store);
    let agent = TestAgent::new(&store, "a");
    let limit = |bytes| {
        setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    };
    for round in 0..3_u64 {
        let open = agent.admit("many", "{}", at(1)).unwrap();
        let size = std::fs::metadata(folder.join("toolgate.db-wal")).unwrap().len();
        limit(Some(size + (4 << 10) * round));
        let mut admitted = Vec::new();
        let refused = loop {
            match agent.ask("many", "{}", at(1)) {
                Ok(AdmitOutcome::Admitted(one)) => admitted.push(one),
                Ok(other) => panic!("{other:?}"),
                Err(refused) => break refused,
            }
        };
        assert!(matches!(refused.0.kind, StoreErrorKind::Full | StoreErrorKind::Io), "{refused}");
        for _ in 0..50 {
            assert!(agent.ask("many", "{}", at(1)).is_err());
        }
        // Outcomes wait for space.
        let (_permit, ticket) = open.split();
        let settled = ticket.finish_written(Completion::new(Outcome::Ok, Effect::Done, at(2)));
        limit(None);
        wait(settled).unwrap();
        assert!(agent.call_through("many", "{}", at(3)));
        admitted.into_iter().for_each(drop);
    }
    assert!(agent.call_through("many", "{}", at(4)));
    let intents = all_rows(&*store);
    let intents =
        intents.iter().filter(|row| row.draft.kind == toolgate_audit::RowKind::Intent).count();
    println!("\nintents {intents}");
    wait(store.close(at(5))).unwrap();
}

/// Not a test itself, but a child process with a small file system mounted on the folder.
#[test]
fn child_on_a_small_disk() {
    let Some(folder) = given() else { return };
    let store: Arc<dyn Store> = Arc::new(opened(&folder, at(0)).store);
    let agent = TestAgent::new(&store, "a");
    for round in 0..3 {
        assert!(agent.call_through("many", "{}", at(1)));
        let ballast = folder.join("ballast");
        let mut file = std::fs::File::create(&ballast).unwrap();
        while file.write_all(&[0; 1024]).is_ok() {}
        drop(file);
        let refused = loop {
            match agent.ask("many", "{}", at(1)) {
                Ok(AdmitOutcome::Admitted(_)) => {}
                Ok(other) => panic!("{other:?}"),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused.0.kind, StoreErrorKind::Full, "round {round}: {refused}");
        std::fs::remove_file(&ballast).unwrap();
        assert!(agent.call_through("many", "{}", at(2)), "round {round}");
    }
    wait(store.record(toolgate_audit::Draft::new(toolgate_audit::RowKind::Drift, at(2)))).unwrap();
    assert_whole(&*store);
    println!("\nwas full");
}

/// If this user may mount: a real file system of 2 MiB that fills up.
#[test]
fn a_full_file_system_is_survived() {
    let folder = SqliteFixture::default();
    let mount = "mount -t tmpfs -o size=2m none \"$TOOLGATE_TEST_FOLDER\"";
    let unshare = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", script]);
        command.env("TOOLGATE_TEST_FOLDER", folder.path()).output()
    };
    if !unshare(mount).is_ok_and(|output| output.status.success()) {
        println!("NOT TESTED: this user may not mount; a limit on file sizes is tested instead");
        return;
    }
    let test = std::env::current_exe().unwrap();
    let script = format!(
        "{mount} && exec '{}' disk::child_on_a_small_disk --exact --nocapture",
        test.display()
    );
    let output = unshare(&script).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("was full"), "{said}");
}

#[test]
fn nothing_is_admitted_while_the_disk_is_full() {
    let folder = SqliteFixture::default();
    let mut child = spawn("disk::child_without_space", folder.path());
    child.stdin.take().unwrap().flush().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let intents = lines.filter_map(|line| line.strip_prefix("intents ").map(str::to_owned)).last();
    assert!(child.wait().unwrap().success());
    let store: Arc<dyn Store> = Arc::new(opened(folder.path(), at(10)).store);
    assert_whole(&*store);
    let used: String =
        folder.sql().query_row("SELECT used FROM counter", [], |row| row.get(0)).unwrap();
    assert_eq!(Some(used), intents, "one count for each intent");
}
