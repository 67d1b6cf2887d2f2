//! The audit of a data folder, call by call, read with plain SQLite.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// Every call in the audit, by its mark.
pub(crate) struct Audited {
    pub(crate) calls: HashMap<String, Call>,
    pub(crate) rows: u64,
}

/// One call that was admitted.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) tool: String,
    /// What its counter was after it.
    pub(crate) count: u64,
    /// `outcome` of every outcome row.
    pub(crate) outcomes: Vec<String>,
}

impl Audited {
    /// Reads all of it. Needs `audit.arguments: full`, for the marks.
    pub(crate) fn read(folder: &Path) -> Self {
        let sql = open(folder);
        let mut calls: HashMap<String, Call> = HashMap::new();
        let mut marks: HashMap<Vec<u8>, String> = HashMap::new();
        let mut statement = sql
            .prepare(
                "SELECT kind, call_id, tool, arguments, counters, outcome FROM audit ORDER BY seq",
            )
            .unwrap();
        let mut rows = statement.query([]).unwrap();
        let mut count = 0;
        while let Some(row) = rows.next().unwrap() {
            count += 1;
            let kind: String = row.get(0).unwrap();
            match kind.as_str() {
                "intent" => {
                    let arguments: String = row.get(3).unwrap();
                    let arguments: Value = serde_json::from_str(&arguments).unwrap();
                    let mark = arguments["mark"].as_str().unwrap().to_owned();
                    let counters: String = row.get(4).unwrap();
                    let counters: Value = serde_json::from_str(&counters).unwrap();
                    let (before, after) = (&counters[0]["before"], &counters[0]["after"]);
                    let (before, after) = (before.as_u64().unwrap(), after.as_u64().unwrap());
                    assert_eq!(before + 1, after, "{mark}");
                    let call =
                        Call { tool: row.get(2).unwrap(), count: after, outcomes: Vec::new() };
                    assert!(calls.insert(mark.clone(), call).is_none(), "two intents of {mark}");
                    marks.insert(row.get(1).unwrap(), mark);
                }
                "outcome" => {
                    let id: Vec<u8> = row.get(1).unwrap();
                    let mark = marks.get(&id).unwrap();
                    calls.get_mut(mark).unwrap().outcomes.push(row.get(5).unwrap());
                }
                _ => {}
            }
        }
        Self { calls, rows: count }
    }

    /// How many calls of a tool were admitted. Their counts are 1, 2, 3 … without a gap or a
    /// repeat: no increment was lost, and none was made twice.
    pub(crate) fn admitted(&self, tool: &str) -> u64 {
        let calls = self.calls.values().filter(|call| call.tool == tool);
        let mut counts: Vec<u64> = calls.map(|call| call.count).collect();
        counts.sort_unstable();
        let all = counts.len() as u64;
        assert_eq!(counts, (1..=all).collect::<Vec<u64>>(), "the counts of `{tool}`");
        all
    }
}

/// The stored counter of an entry.
pub(crate) fn stored_counts(folder: &Path) -> Vec<u64> {
    let sql = open(folder);
    let mut statement = sql.prepare("SELECT used FROM counter").unwrap();
    let used = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    used.map(|used| used.unwrap().parse().unwrap()).collect()
}

/// The policy hash of every admitted call, as hex.
pub(crate) fn policy_hashes(folder: &Path) -> Vec<Option<String>> {
    let sql = open(folder);
    let hashes = "SELECT lower(hex(policy_hash)) FROM audit WHERE kind = 'intent' ORDER BY seq";
    let mut statement = sql.prepare(hashes).unwrap();
    let hashes = statement.query_map([], |row| row.get(0)).unwrap();
    hashes.map(Result::unwrap).collect()
}

fn open(folder: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    Connection::open_with_flags(folder.join("toolgate.db"), flags).unwrap()
}
