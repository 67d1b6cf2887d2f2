//! Verifying: rows in, the first bad row out.
//!
//! Found are: a missing or doubled place, an edit of any field, rows swapped or inserted, rows cut
//! off before a checkpoint, a chain that is not the one a checkpoint signed, a checkpoint that
//! nobody with the key signed.
//! Not found: rows cut off after the last checkpoint that was given.

use std::collections::BTreeMap;

use crate::{ChainHead, Checkpoint, Draft, Hash, PublicKey, canonical::embeddable, chain};

/// The columns of a stored row do not make a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable;

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Another row than this one stands here.
    Gap,
    /// It cannot be read.
    Undecodable,
    /// Its hash does not fit the row, or the rows before.
    Hash,
    /// A checkpoint signed another hash for this place.
    Checkpoint,
    /// The checkpoint of this row is not signed by the key.
    Signature,
    /// The chain ends before it, and a checkpoint says that it did not.
    Truncated,
}

/// The first bad row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its place.
    pub seq: u64,
    /// What is wrong.
    pub found: Defect,
}

/// What a verification found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// Rows that were read, up to and with the first bad one.
    pub rows: u64,
    /// The first bad row; none if all is well.
    pub first_bad: Option<BadRow>,
    /// The last good row.
    pub head: ChainHead,
    /// Up to which row a checkpoint is signed; 0 if there is none. What comes after it can be
    /// written anew without the key.
    pub signed: u64,
}

/// Verifies rows one after the other, in ascending order of `seq`.
#[derive(Debug)]
pub struct Verifier {
    head: ChainHead,
    rows: u64,
    checkpoints: BTreeMap<u64, Vec<Hash>>,
    /// The first checkpoint that is not signed.
    forged: Option<u64>,
    bad: Option<BadRow>,
}

impl Verifier {
    /// Takes every checkpoint that is known, also those kept elsewhere.
    pub fn new(key: &PublicKey, checkpoints: impl IntoIterator<Item = Checkpoint>) -> Self {
        let mut signed: BTreeMap<u64, Vec<Hash>> = BTreeMap::new();
        let mut forged = None;
        for checkpoint in checkpoints {
            if key.has_signed(&checkpoint) {
                signed.entry(checkpoint.seq).or_default().push(checkpoint.hash);
            } else {
                let first = forged.unwrap_or(checkpoint.seq);
                forged = Some(first.min(checkpoint.seq));
            }
        }
        Self { head: ChainHead::default(), rows: 0, checkpoints: signed, forged, bad: None }
    }

    /// The place of the next row.
    pub fn next(&self) -> u64 {
        self.head.seq + 1
    }

    /// The next row as it was stored. `Err` once a bad row was seen: no later one is worth reading.
    pub fn row(
        &mut self,
        seq: i64,
        hash: &[u8],
        draft: Result<&Draft, Undecodable>,
    ) -> Result<(), BadRow> {
        if let Some(bad) = self.bad {
            return Err(bad);
        }
        self.rows += 1;
        let place = self.next();
        let found = match self.judge(place, seq, hash, draft) {
            Ok(hash) => {
                self.head = ChainHead { seq: place, hash };
                return Ok(());
            }
            Err(found) => found,
        };
        let bad = BadRow { seq: place, found };
        self.bad = Some(bad);
        Err(bad)
    }

    fn judge(
        &self,
        place: u64,
        seq: i64,
        hash: &[u8],
        draft: Result<&Draft, Undecodable>,
    ) -> Result<Hash, Defect> {
        if u64::try_from(seq) != Ok(place) {
            return Err(Defect::Gap);
        }
        let draft = draft.map_err(|Undecodable| Defect::Undecodable)?;
        let json = [&draft.argument_keys, &draft.arguments];
        if json.into_iter().flatten().any(|text| !embeddable(text)) {
            return Err(Defect::Undecodable);
        }
        let expected = chain::hash(&self.head.hash, place, draft);
        if expected.0.as_slice() != hash {
            return Err(Defect::Hash);
        }
        if self.forged == Some(place) {
            return Err(Defect::Signature);
        }
        match self.checkpoints.get(&place) {
            Some(signed) if signed.iter().any(|hash| *hash != expected) => Err(Defect::Checkpoint),
            _ => Ok(expected),
        }
    }

    /// No more rows.
    pub fn finish(self) -> VerifyReport {
        let next = self.next();
        let last = self.checkpoints.keys().next_back().copied().max(self.forged);
        let truncated = last.filter(|last| *last >= next);
        let first_bad =
            self.bad.or_else(|| truncated.map(|_| BadRow { seq: next, found: Defect::Truncated }));
        let signed = self.checkpoints.range(..next).next_back().map_or(0, |(seq, _)| *seq);
        VerifyReport { rows: self.rows, first_bad, head: self.head, signed }
    }
}
