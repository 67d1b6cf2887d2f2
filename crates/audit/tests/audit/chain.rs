//! The canonical form and the hashes never change: old data folders must verify for ever.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::support::{intent, outcome, rest, time};
use toolgate_audit::{ChainHead, Draft, PublicKey, ROW_FIELDS, RowKind, Signer};

#[test]
fn rows_and_hashes_are_the_golden_ones() {
    let mut head = ChainHead::default();
    let mut text = String::new();
    for draft in [intent(0), outcome(1), rest(1_763_250_000), Draft::new(RowKind::Drift, time(2))] {
        writeln!(text, "{}", head.seal(draft).to_json()).unwrap();
    }
    let checkpoint = Signer::new(&[1; 32]).sign(head, time(3));
    writeln!(text, "{checkpoint:?}").unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/goldens/rows.jsonl");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap());
}

#[test]
fn the_json_of_a_row_is_json_with_sorted_members() {
    let row = ChainHead::default().seal(intent(5));
    let value: serde_json::Value = serde_json::from_str(&row.to_json()).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), row.to_json());
    assert_eq!(value["hash"], row.hash.to_string());
    assert_eq!(value["counters"][0]["after"].to_string(), "3.5");
}

#[test]
fn exports_have_every_field_of_a_row() {
    let mut found = BTreeSet::new();
    for draft in [intent(0), outcome(1), rest(2)] {
        let row = ChainHead::default().seal(draft).to_json();
        let row: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&row).unwrap();
        found.extend(row.into_iter().map(|(name, _)| name));
    }
    // The version of the canonical form is no field.
    assert!(found.remove("v"));
    let listed: BTreeSet<String> = ROW_FIELDS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(listed, found);
}

#[test]
fn counters_come_back_from_their_own_spelling_only() {
    let draft = intent(0);
    let text = draft.counters_json().unwrap();
    assert_eq!(Draft::parse_counters(&text), Some(draft.counters));
    for edited in [
        text.replace("3.5", "3.50"),
        text.replace(':', ": "),
        text.replace("before", "x"),
        "[]".to_owned(),
        "null".to_owned(),
    ] {
        assert_eq!(Draft::parse_counters(&edited), None, "{edited}");
    }
}

#[test]
fn a_checkpoint_is_bound_to_key_place_hash_and_time() {
    let signer = Signer::new(&[1; 32]);
    let mut head = ChainHead::default();
    head.seal(intent(0));
    let good = signer.sign(head, time(9));
    let key = signer.public_key();
    assert!(key.has_signed(&good));
    assert_eq!(PublicKey::new(&key.to_bytes()), Some(key));
    assert!(!Signer::new(&[2; 32]).public_key().has_signed(&good));
    let mut other = [good.clone(), good.clone(), good.clone(), good];
    other[0].seq += 1;
    other[1].hash.0[0] ^= 1;
    other[2].time = time(10);
    other[3].signature[0] ^= 1;
    for forged in other {
        assert!(!key.has_signed(&forged), "{forged:?}");
    }
    assert!(!format!("{signer:?}").contains('1'));
}
