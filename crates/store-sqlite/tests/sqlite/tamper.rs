//! Tampering with the database through SQLite.

use std::sync::Arc;

use rusqlite::{Connection, params, types::Value};
use toolgate_audit::Defect;
use toolgate_store::{
    Store,
    suite::{StoreFixture as _, TestAgent, at, wait},
};
use toolgate_store_sqlite::verify;

use crate::fixture::SqliteFixture;

/// A folder with rows of every kind of call, closed, so that its last row has a checkpoint.
fn written() -> SqliteFixture {
    let folder = SqliteFixture::default();
    let store: Arc<dyn Store> = folder.open(at(600));
    let agent = TestAgent::new(&store, "a");
    for second in 600..612 {
        agent.call_through("both", "{}", at(second));
        agent.call_through("never", "{}", at(second));
        agent.call_through("soft", "{}", at(second));
    }
    wait(store.close(at(612))).unwrap();
    let report = verify(folder.path(), Vec::new()).unwrap();
    assert_eq!(report.first_bad, None);
    assert!(report.rows > 40, "{}", report.rows);
    folder
}

fn first_bad(folder: &SqliteFixture) -> Option<u64> {
    verify(folder.path(), Vec::new()).unwrap().first_bad.map(|bad| bad.seq)
}

fn columns(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info('audit')").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Every column, several values, several rows; also values that cannot be decoded.
#[test]
fn an_edit_of_any_column_is_found() {
    let folder = written();
    let sql = folder.sql();
    let mut edits = 0;
    for column in columns(&sql).into_iter().filter(|column| column != "seq") {
        for seq in [1_u64, 2, 17, 33] {
            let read = format!("SELECT {column} FROM audit WHERE seq = ?1");
            let write = format!("UPDATE audit SET {column} = ?2 WHERE seq = ?1");
            let place = i64::try_from(seq).unwrap();
            let before: Value = sql.query_row(&read, [place], |row| row.get(0)).unwrap();
            for value in [
                Value::Null,
                Value::Integer(7),
                Value::Integer(-7),
                Value::Text("x".into()),
                Value::Text(String::new()),
                Value::Text("[]".into()),
                Value::Blob(vec![1; 32]),
                Value::Blob(vec![1; 16]),
                Value::Blob(Vec::new()),
            ] {
                // Values that the schema rejects cannot be stored.
                if value == before || sql.execute(&write, params![place, value]).is_err() {
                    continue;
                }
                let now: Value = sql.query_row(&read, [place], |row| row.get(0)).unwrap();
                if now != before {
                    edits += 1;
                    assert_eq!(first_bad(&folder), Some(seq), "{column} of {seq}: {now:?}");
                }
            }
            sql.execute(&write, params![place, before]).unwrap();
        }
    }
    assert!(edits > 300, "{edits}");
    assert_eq!(first_bad(&folder), None);
}

#[test]
fn other_tampering_is_found() {
    let insert = "INSERT INTO audit SELECT 1000 + seq, v, time, kind, call_id, method, grant,
        identity, person, agent_session, client, via, server, session_id, tool, fingerprint, risk,
        decision, error_code, rule, policy, policy_version, policy_hash, argument_keys, arguments,
        counters, approval_id, outcome, effect, upstream_ms, total_ms, message, count, hash
        FROM audit WHERE seq = 5";
    let last = written().sql().query_row("SELECT max(seq) FROM audit", [], |row| row.get(0));
    let last: u64 = u64::try_from(last.map(|seq: i64| seq).unwrap()).unwrap();
    for (edit, bad) in [
        ("DELETE FROM audit WHERE seq = 9", 9),
        ("DELETE FROM audit WHERE seq > 20", 21),
        ("DELETE FROM audit", 1),
        ("DELETE FROM audit WHERE seq = 9; UPDATE audit SET seq = seq - 1 WHERE seq > 9", 9),
        (
            "UPDATE audit SET seq = 0 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 0",
            3,
        ),
        (insert, last + 1),
        ("UPDATE checkpoint SET hash = zeroblob(32)", 1),
        ("UPDATE checkpoint SET signature = zeroblob(64)", 1),
        ("UPDATE checkpoint SET signature = x'00', time = -1", 1),
    ] {
        let folder = written();
        folder.sql().execute_batch(edit).unwrap();
        let found = verify(folder.path(), Vec::new()).unwrap().first_bad;
        let named = found.map(|found| found.seq);
        if edit.starts_with("UPDATE checkpoint") {
            // The row of the first checkpoint.
            assert!(named >= Some(bad), "{edit}: {found:?}");
            assert_eq!(found.map(|found| found.found), Some(Defect::Signature), "{edit}");
        } else {
            assert_eq!(named, Some(bad), "{edit}: {found:?}");
        }
    }
}

/// Damaged bytes in the file: whatever SQLite can still read, verification does not report `ok`.
#[test]
fn damaged_pages_are_found() {
    let folder = written();
    let sql = folder.sql();
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let root: u64 = sql
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'audit'", [], |row| row.get(0))
        .map(|page: i64| u64::try_from(page).unwrap())
        .unwrap();
    drop(sql);
    let path = folder.path().join("toolgate.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let start = usize::try_from((root - 1) * 4096).unwrap();
    bytes[start..start + 64].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(first_bad(&folder), Some(1));
}

/// If rows are removed together with their checkpoints, checkpoints stored elsewhere reveal it.
#[test]
fn checkpoints_kept_elsewhere_show_what_was_cut_off() {
    let folder = written();
    let store = folder.open(at(700));
    let kept = wait(store.checkpoints()).unwrap();
    wait(store.close(at(700))).unwrap();
    folder.sql().execute_batch("DELETE FROM audit WHERE seq > 10; DELETE FROM checkpoint").unwrap();
    assert_eq!(first_bad(&folder), None);
    let found = verify(folder.path(), kept).unwrap().first_bad.unwrap();
    assert!(found.seq == 11 && found.found == Defect::Truncated || found.seq <= 10, "{found:?}");
}
