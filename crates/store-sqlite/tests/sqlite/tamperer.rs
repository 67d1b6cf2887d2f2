//! A tamperer with SQLite and a hex editor: a thousand random modifications, and every page of the
//! file. `TOOLGATE_SEED` repeats a run.

use std::{fs, sync::Arc};

use rusqlite::{Connection, params, types::Value};
use toolgate_dice::Dice;
use toolgate_store::{
    Store,
    suite::{StoreFixture as _, TestAgent, at, wait},
};
use toolgate_store_sqlite::verify;

use crate::fixture::SqliteFixture;

const MODIFICATIONS: u64 = 1_000;
const PAGE: usize = 4_096;

/// A closed folder, all in one file; its last row has a checkpoint.
fn written(calls: i64) -> SqliteFixture {
    let folder = SqliteFixture::default();
    let store: Arc<dyn Store> = folder.open(at(600));
    let agent = TestAgent::new(&store, "a");
    for second in 600..600 + calls {
        for tool in ["many", "soft", "never"] {
            agent.call_through(tool, r#"{"why":"to have something to read"}"#, at(second));
        }
    }
    wait(store.close(at(600 + calls))).unwrap();
    let sql = folder.sql();
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    folder
}

fn first_bad(folder: &SqliteFixture) -> Option<u64> {
    verify(folder.path(), Vec::new()).unwrap().first_bad.map(|bad| bad.seq)
}

fn columns(sql: &Connection) -> Vec<String> {
    let mut statement = sql.prepare("SELECT name FROM pragma_table_info('audit')").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Every row as text, to see what a modification changed.
fn content(sql: &Connection) -> Vec<String> {
    let list = columns(sql).iter().map(|name| format!("quote({name})")).collect::<Vec<_>>();
    let query = format!("SELECT {} FROM audit ORDER BY seq", list.join("||','||"));
    let mut statement = sql.prepare(&query).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn every_tampering_is_detected_at_its_first_row() {
    let given = std::env::var("TOOLGATE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(0x5eed_0bad);
    println!("TOOLGATE_SEED={seed} cargo test -p toolgate-store-sqlite --test sqlite vandal");
    let mut dice = Dice::new(seed);
    let folder = written(20);
    let untouched = fs::read(folder.path().join("toolgate.db")).unwrap();
    let before = content(&folder.sql());
    let last = i64::try_from(before.len()).unwrap();
    assert_eq!(first_bad(&folder), None);
    let mut kinds = [0; 6];
    while kinds.iter().sum::<u64>() < MODIFICATIONS {
        let kind = dice.below(6_usize);
        let sql = folder.sql();
        let what = modification(kind, last, &sql, &mut dice);
        let after = content(&sql);
        drop(sql);
        if after != before {
            kinds[kind] += 1;
            let differs = before.iter().zip(&after).position(|(before, after)| before != after);
            let place = differs.unwrap_or(before.len().min(after.len()));
            let expected = Some(u64::try_from(place).unwrap() + 1);
            assert_eq!(first_bad(&folder), expected, "{what}");
        }
        fs::write(folder.path().join("toolgate.db"), &untouched).unwrap();
    }
    println!("edits, deletions, closed gaps, swaps, insertions, truncations: {kinds:?}");
    assert!(kinds.iter().all(|kind| *kind > MODIFICATIONS / 20), "{kinds:?}");
    assert_eq!(first_bad(&folder), None);
}

/// Modifications that the schema rejects are skipped.
fn modification(kind: usize, last: i64, sql: &Connection, dice: &mut Dice) -> String {
    let (one, other) = (1 + dice.below(last), 1 + dice.below(last));
    let what = match kind {
        0 => return edit(one, sql, dice),
        1 => format!("DELETE FROM audit WHERE seq = {one}"),
        2 => format!(
            "DELETE FROM audit WHERE seq = {one};
             UPDATE audit SET seq = -seq WHERE seq > {one};
             UPDATE audit SET seq = -seq - 1 WHERE seq < 0"
        ),
        3 => format!(
            "UPDATE audit SET seq = -1 WHERE seq = {one};
             UPDATE audit SET seq = {one} WHERE seq = {other};
             UPDATE audit SET seq = {other} WHERE seq = -1"
        ),
        4 => {
            let columns: Vec<String> = columns(sql).into_iter().skip(1).collect();
            let columns = columns.join(", ");
            format!(
                "UPDATE audit SET seq = -seq WHERE seq >= {one};
                 UPDATE audit SET seq = 1 - seq WHERE seq < 0;
                 INSERT INTO audit (seq, {columns})
                   SELECT {one}, {columns} FROM audit WHERE seq = {other} + ({other} >= {one})"
            )
        }
        _ => format!("DELETE FROM audit WHERE seq >= {one}"),
    };
    sql.execute_batch(&what).unwrap();
    what
}

fn edit(seq: i64, sql: &Connection, dice: &mut Dice) -> String {
    let columns = columns(sql);
    let column =
        usize::try_from(1 + dice.below(i64::try_from(columns.len()).unwrap() - 1)).unwrap();
    let column = &columns[column];
    let value = match dice.below(7) {
        0 => Value::Null,
        1 => Value::Integer(dice.below(1 << 50)),
        2 => Value::Integer(-1),
        3 => Value::Text("x".into()),
        4 => Value::Text(r#"{"a":1}"#.into()),
        5 => Value::Blob(vec![7; 32]),
        _ => Value::Real(0.5),
    };
    let what = format!("{column} of {seq} becomes {value:?}");
    let write = format!("UPDATE audit SET {column} = ?2 WHERE seq = ?1");
    // A value that the column rejects changes nothing.
    drop(sql.execute(&write, params![seq, value]));
    what
}

/// For any damage to any page, verification ends with a report, which is not `ok` if the page
/// contained rows or checkpoints.
#[test]
fn damaged_pages_are_detected_if_they_held_rows() {
    let folder = written(60);
    let path = folder.path().join("toolgate.db");
    let untouched = fs::read(&path).unwrap();
    let owned = pages_of(&folder.sql());
    assert!(owned.len() > 5, "{owned:?}");
    let last = content(&folder.sql()).len() as u64;
    for page in 2..=untouched.len() / PAGE {
        for spoil in [spoil_all, spoil_head, spoil_middle] {
            let mut bytes = untouched.clone();
            let start = (page - 1) * PAGE;
            spoil(&mut bytes[start..start + PAGE]);
            fs::write(&path, &bytes).unwrap();
            let report = verify(folder.path(), Vec::new());
            let report = report.unwrap_or_else(|fault| panic!("page {page}: {fault}"));
            let bad = report.first_bad.map(|bad| bad.seq);
            assert!(bad.is_none_or(|bad| (1..=last).contains(&bad)), "page {page}: {bad:?}");
            if owned.contains(&page) && bytes != untouched {
                assert!(bad.is_some(), "page {page} held rows, and nothing was found");
            }
        }
    }
    // A truncated file.
    for pages in [1, 3, untouched.len() / PAGE / 2] {
        fs::write(&path, &untouched[..untouched.len() - pages * PAGE]).unwrap();
        let report = verify(folder.path(), Vec::new());
        assert!(report.is_err() || report.is_ok_and(|report| report.first_bad.is_some()));
    }
    fs::write(&path, &untouched).unwrap();
    assert_eq!(first_bad(&folder), None);
}

/// Pages of rows and of checkpoints. If this SQLite cannot list them, the roots of both.
fn pages_of(sql: &Connection) -> Vec<usize> {
    let mut statement = sql
        .prepare("SELECT rootpage FROM sqlite_schema WHERE name IN ('audit', 'checkpoint')")
        .unwrap();
    let roots = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    let mut pages: Vec<usize> = roots.map(|page| usize::try_from(page.unwrap()).unwrap()).collect();
    let mut statement =
        sql.prepare("SELECT pageno FROM dbstat WHERE name IN ('audit', 'checkpoint')").unwrap();
    let all = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    pages.extend(all.map(|page| usize::try_from(page.unwrap()).unwrap()));
    pages
}

fn spoil_all(page: &mut [u8]) {
    page.fill(0xa5);
}

fn spoil_head(page: &mut [u8]) {
    page[..16].fill(0xff);
}

/// The cells of a page are at its end.
fn spoil_middle(page: &mut [u8]) {
    let length = page.len();
    page[length - 64..].iter_mut().for_each(|byte| *byte ^= 0x55);
}
