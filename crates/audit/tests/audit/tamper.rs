//! The verifier detects any change of rows before a checkpoint and reports the first bad row.
//! `TOOLGATE_SEED` repeats a run.

use crate::support::{intent, outcome, rest, time};
use jiff::SignedDuration;
use toolgate_audit::{
    BadRow, ChainHead, Checkpoint, Decision, Defect, Draft, Effect, Hash, Outcome, Row, RowKind,
    Signer, Verifier, VerifyReport,
};
use toolgate_dice::Dice;

/// A row as stored: the columns `seq` and `hash`, and the rest.
#[derive(Clone, PartialEq, Debug)]
struct Stored {
    seq: i64,
    hash: Vec<u8>,
    draft: Draft,
}

struct Log {
    rows: Vec<Stored>,
    checkpoints: Vec<Checkpoint>,
}

const SECRET: [u8; 32] = [3; 32];

fn log(length: usize, every: usize) -> Log {
    let (mut head, mut rows, mut checkpoints) = (ChainHead::default(), Vec::new(), Vec::new());
    for n in 0..length {
        let second = i64::try_from(n).unwrap();
        let draft = [intent, outcome, rest][n % 3](second);
        let Row { seq, draft, hash } = head.seal(draft);
        rows.push(Stored { seq: i64::try_from(seq).unwrap(), hash: hash.0.to_vec(), draft });
        if (n + 1) % every == 0 || n + 1 == length {
            checkpoints.push(Signer::new(&SECRET).sign(head, time(second)));
        }
    }
    Log { rows, checkpoints }
}

fn verify(rows: &[Stored], checkpoints: &[Checkpoint]) -> VerifyReport {
    let key = Signer::new(&SECRET).public_key();
    let mut verifier = Verifier::new(&key, checkpoints.iter().cloned());
    for row in rows {
        if verifier.row(row.seq, &row.hash, Ok(&row.draft)).is_err() {
            break;
        }
    }
    verifier.finish()
}

#[test]
fn an_untouched_log_is_good() {
    let Log { rows, checkpoints } = log(50, 7);
    let report = verify(&rows, &checkpoints);
    assert_eq!((report.rows, report.first_bad, report.head.seq), (50, None, 50));
    assert_eq!(verify(&[], &[]).first_bad, None);
}

#[test]
fn a_thousand_tamperings_are_detected() {
    let given = std::env::var("TOOLGATE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(0x5eed_a0d1);
    println!("TOOLGATE_SEED={seed} cargo test -p toolgate-audit --test audit");
    let mut dice = Dice::new(seed);
    for trial in 0..1000 {
        let Log { mut rows, checkpoints } = log(12 + dice.below(20), 1 + dice.below(9));
        let before = rows.clone();
        let what = dice.below(8);
        tamper(what, &mut rows, &mut dice);
        if rows == before {
            continue;
        }
        let first = before
            .iter()
            .zip(&rows)
            .position(|(a, b)| a != b)
            .unwrap_or(before.len().min(rows.len()));
        let bad = verify(&rows, &checkpoints).first_bad;
        let mut seq = u64::try_from(first).unwrap() + 1;
        if what == REWRITTEN {
            // The chain is consistent again: the next checkpoint reveals the change.
            seq =
                checkpoints.iter().map(|checkpoint| checkpoint.seq).find(|at| *at >= seq).unwrap();
        }
        assert_eq!(bad.map(|bad| bad.seq), Some(seq), "trial {trial}, kind {what}: {bad:?}");
    }
}

const REWRITTEN: usize = 7;

fn tamper(what: usize, rows: &mut Vec<Stored>, dice: &mut Dice) {
    let place = dice.below(rows.len());
    match what {
        0 | 1 => edit(&mut rows[place], dice),
        2 => drop(rows.remove(place)),
        3 => {
            let other = dice.below(rows.len());
            rows.swap(place, other);
        }
        4 => {
            let copy = rows[dice.below(rows.len())].clone();
            rows.insert(place, copy);
        }
        5 => rows.truncate(place),
        6 => {
            // A swap that also corrects the sequence numbers.
            let other = dice.below(rows.len());
            rows.swap(place, other);
            let seq = rows[place].seq;
            rows[place].seq = rows[other].seq;
            rows[other].seq = seq;
        }
        _ => {
            // REWRITTEN: the rest of the chain recomputed by an attacker without the key.
            rows[place].draft.grant = Some("somebody-else".into());
            let before = place.checked_sub(1).map(|place| rows[place].clone());
            let mut head = before.map_or_else(ChainHead::default, |row| ChainHead {
                seq: u64::try_from(row.seq).unwrap(),
                hash: Hash(row.hash.try_into().unwrap()),
            });
            for row in &mut rows[place..] {
                row.hash = head.seal(row.draft.clone()).hash.0.to_vec();
            }
        }
    }
}

fn edit(row: &mut Stored, dice: &mut Dice) {
    let draft = &mut row.draft;
    match dice.below(14) {
        0 => draft.time += SignedDuration::from_micros(1),
        1 => draft.kind = RowKind::Admin,
        2 => draft.call_id = None,
        3 => draft.grant = Some("x".into()),
        4 => draft.tool = Some("".into()),
        5 => draft.decision = Some(Decision::Hide),
        6 => draft.policy_version = Some(9),
        7 => draft.arguments = Some("{}".into()),
        8 => draft.counters.clear(),
        9 => draft.outcome = Some(Outcome::Unavailable),
        10 => draft.effect = Some(Effect::NotStarted),
        11 => draft.count = Some(1),
        12 => row.seq += 1,
        _ => row.hash[dice.below(32)] ^= 1 << dice.below(8),
    }
}

#[test]
fn a_rewritten_chain_is_detected_at_the_checkpoint() {
    let Log { mut rows, checkpoints } = log(20, 5);
    rows[6].draft.grant = Some("x".into());
    let mut head = ChainHead::default();
    for row in &mut rows {
        row.hash = head.seal(row.draft.clone()).hash.0.to_vec();
    }
    let bad = verify(&rows, &checkpoints).first_bad;
    assert_eq!(bad, Some(BadRow { seq: 10, found: Defect::Checkpoint }));
}

#[test]
fn a_forged_checkpoint_is_found() {
    let Log { rows, mut checkpoints } = log(20, 5);
    checkpoints[1].signature[5] ^= 1;
    let bad = verify(&rows, &checkpoints).first_bad;
    assert_eq!(bad, Some(BadRow { seq: 10, found: Defect::Signature }));
}

#[test]
fn text_that_is_not_json_is_undecodable() {
    let Log { mut rows, checkpoints } = log(5, 5);
    for text in [r#"{},"tool":"x""#, "", "{} ", "{"] {
        rows[2].draft.arguments = Some(text.into());
        let bad = verify(&rows, &checkpoints).first_bad;
        assert_eq!(bad, Some(BadRow { seq: 3, found: Defect::Undecodable }), "{text}");
    }
}
