//! Any rows: a chain that was written verifies, and shows what was written; after any change of it
//! the first bad row is named. Lists of counters and checkpoints have one spelling.
//!
//! Each line of the input is a row, as an object with the columns that it has; a line that is no
//! row is read as a list of counters and as a checkpoint.

#![no_main]

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use toolgate_audit::{
    CallId, ChainHead, Checkpoint, Decision, Defect, Draft, Effect, Hash, Outcome, Row, RowKind,
    Signer, Verifier, VerifyReport,
};

const ROWS: usize = 4;

static SIGNER: LazyLock<Signer> = LazyLock::new(|| Signer::new(&[7; 32]));

fuzz_target!(|input: &str| {
    let mut drafts = Vec::new();
    for line in input.lines() {
        match draft(line) {
            Some(draft) if drafts.len() < ROWS => drafts.push(draft),
            Some(_) => {}
            None => check_spellings(line),
        }
    }
    let mut head = ChainHead::default();
    let rows: Vec<Row> = drafts.into_iter().map(|draft| head.seal(draft)).collect();
    if rows.is_empty() {
        return;
    }
    let checkpoint = SIGNER.sign(head, Timestamp::UNIX_EPOCH);
    let report = verify(&rows, &checkpoint);
    let unreadable = rows.iter().find(|row| !is_embeddable(row));
    assert_eq!(report.first_bad.map(|bad| bad.seq), unreadable.map(|row| row.seq));
    if unreadable.is_none() {
        assert_eq!((report.signed, report.head), (head.seq, head));
        rows.iter().for_each(check_json);
    }
    check_changes(&rows, &checkpoint);
    check_chain(&rows, &checkpoint);
});

fn verify(rows: &[Row], checkpoint: &Checkpoint) -> VerifyReport {
    let mut verifier = Verifier::new(&SIGNER.public_key(), [checkpoint.clone()]);
    for row in rows {
        let seq = i64::try_from(row.seq).unwrap_or(-1);
        if verifier.row(seq, &row.hash.0, Ok(&row.draft)).is_err() {
            break;
        }
    }
    verifier.finish()
}

/// Whether what stands in the row as JSON is one value and nothing around it.
fn is_embeddable(row: &Row) -> bool {
    let json = [&row.draft.argument_keys, &row.draft.arguments];
    json.into_iter().flatten().all(|text| {
        let ends = |c: char| c.is_ascii_whitespace();
        serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
            && !text.starts_with(ends)
            && !text.ends_with(ends)
    })
}

/// A change of any row is found in that row.
fn check_changes(rows: &[Row], checkpoint: &Checkpoint) {
    for (place, row) in rows.iter().enumerate() {
        let mut changed = Vec::new();
        changed.extend(rows.iter().map(|other| other.draft.clone()));
        changed.push(Draft { message: Some("another".into()), ..row.draft.clone() });
        changed.push(Draft {
            tool: None,
            argument_keys: row.draft.arguments.clone(),
            ..row.draft.clone()
        });
        changed.push(Draft { arguments: row.draft.argument_keys.clone(), ..row.draft.clone() });
        changed.push(Draft {
            grant: row.draft.server.clone(),
            server: row.draft.grant.clone(),
            ..row.draft.clone()
        });
        changed.push(Draft {
            count: Some(row.draft.count.map_or(0, |count| count ^ 1)),
            ..row.draft.clone()
        });
        for draft in changed.into_iter().filter(|draft| *draft != row.draft) {
            let mut rows = rows.to_vec();
            rows[place].draft = draft;
            let bad = verify(&rows, checkpoint).first_bad.expect("an edit was not found");
            assert!(bad.seq <= row.seq && matches!(bad.found, Defect::Hash | Defect::Undecodable));
        }
        let mut edited = rows.to_vec();
        edited[place].hash.0[place] ^= 1;
        assert!(verify(&edited, checkpoint).first_bad.is_some(), "an edited hash");
    }
}

/// So is a change of the chain.
fn check_chain(rows: &[Row], checkpoint: &Checkpoint) {
    for place in 0..rows.len() {
        let mut without = rows.to_vec();
        without.remove(place);
        assert!(verify(&without, checkpoint).first_bad.is_some(), "a row is missing");
        let mut twice = rows.to_vec();
        twice.insert(place, rows[place].clone());
        assert!(verify(&twice, checkpoint).first_bad.is_some(), "a row stands twice");
        // Written anew without the key: the checkpoint does not fit.
        let mut head = ChainHead::default();
        let forged: Vec<Row> = rows
            .iter()
            .enumerate()
            .map(|(at, row)| {
                let count = if at == place { Some(u64::MAX) } else { row.draft.count };
                head.seal(Draft { count, ..row.draft.clone() })
            })
            .collect();
        if forged != rows {
            assert!(verify(&forged, checkpoint).first_bad.is_some(), "a chain of another hand");
        }
    }
    let mut unsigned = checkpoint.clone();
    unsigned.signature[usize::from(checkpoint.hash.0[0]) % 64] ^= 1;
    assert!(verify(rows, &unsigned).first_bad.is_some(), "a signature of another hand");
}

/// The row as JSON says what was written, and nothing more.
fn check_json(row: &Row) {
    let Ok(json) = serde_json::from_str::<Value>(&row.to_json()) else {
        // Only numbers out of range and deep nesting are JSON that no `Value` holds.
        return assert!(row.draft.arguments.is_some() || row.draft.argument_keys.is_some());
    };
    let again = draft(&json.to_string()).expect("a row");
    // Of arguments a `Value` does not keep the spelling.
    let (keys, arguments) = (row.draft.argument_keys.clone(), row.draft.arguments.clone());
    assert_eq!(Draft { argument_keys: keys, arguments, ..again }, row.draft);
    let json = json.as_object().unwrap();
    for (key, text) in
        [("argument_keys", &row.draft.argument_keys), ("arguments", &row.draft.arguments)]
    {
        let expected = text.as_deref().map(|text| serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(json.get(key), expected.as_ref());
    }
    assert_eq!(json["seq"], row.seq);
    assert_eq!(json["hash"], row.hash.to_string());
}

/// The columns of a row.
fn draft(line: &str) -> Option<Draft> {
    let Value::Object(columns) = serde_json::from_str(line).ok()? else { return None };
    let text = |key: &str| columns.get(key).and_then(Value::as_str).map(Arc::from);
    let number = |key: &str| columns.get(key).and_then(Value::as_u64);
    let hash = |key: &str| Hash::parse(columns.get(key)?.as_str()?).ok();
    let json = |key: &str| match columns.get(key)? {
        Value::String(text) => Some(Arc::from(text.as_str())),
        other => Some(Arc::from(other.to_string())),
    };
    let kind = RowKind::parse(columns.get("kind")?.as_str()?).ok()?;
    Some(Draft {
        call_id: text("call_id").and_then(|id: Arc<str>| CallId::parse(&id).ok()),
        method: text("method"),
        grant: text("grant"),
        identity: text("identity"),
        person: text("person"),
        agent_session: text("agent_session"),
        client: text("client"),
        via: text("via"),
        server: text("server"),
        session_id: text("session_id"),
        tool: text("tool"),
        fingerprint: hash("fingerprint"),
        risk: text("risk"),
        decision: text("decision").and_then(|word: Arc<str>| Decision::parse(&word).ok()),
        error_code: text("error_code"),
        rule: text("rule"),
        policy: text("policy"),
        policy_version: number("policy_version"),
        policy_hash: hash("policy_hash"),
        argument_keys: json("argument_keys"),
        arguments: json("arguments"),
        counters: counters(&columns),
        approval_id: text("approval_id"),
        outcome: text("outcome").and_then(|word: Arc<str>| Outcome::parse(&word).ok()),
        effect: text("effect").and_then(|word: Arc<str>| Effect::parse(&word).ok()),
        upstream_ms: number("upstream_ms"),
        total_ms: number("total_ms"),
        message: text("message"),
        count: number("count"),
        ..Draft::new(kind, time(&columns))
    })
}

fn counters(columns: &Map<String, Value>) -> Vec<toolgate_audit::CounterChange> {
    let text = columns.get("counters").map(Value::to_string);
    text.and_then(|text| Draft::parse_counters(&text)).unwrap_or_default()
}

fn time(columns: &Map<String, Value>) -> Timestamp {
    let time = columns.get("time").and_then(Value::as_str).and_then(|time| time.parse().ok());
    let time: Timestamp = time.unwrap_or_default();
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or_default()
}

fn check_spellings(line: &str) {
    if let Some(counters) = Draft::parse_counters(line) {
        let mut draft = Draft::new(RowKind::Intent, Timestamp::UNIX_EPOCH);
        draft.counters = counters;
        assert_eq!(draft.counters_json().as_deref(), Some(line));
    }
    let Ok(Value::Object(parts)) = serde_json::from_str(line) else { return };
    let part = |key: &str| parts.get(key).and_then(Value::as_str).unwrap_or_default();
    let seq = parts.get("seq").and_then(Value::as_u64).unwrap_or_default();
    let read = Checkpoint::from_parts(seq, part("hash"), part("time"), part("signature"));
    if let Some(checkpoint) = read {
        let again: Value = serde_json::from_str(&checkpoint.to_json()).unwrap();
        assert_eq!((&again["seq"], &again["hash"]), (&seq.into(), &part("hash").into()));
        assert_eq!(again["signature"], part("signature"));
        SIGNER.public_key().has_signed(&checkpoint);
    }
}
