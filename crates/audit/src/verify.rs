//! Verifies rows and reports the first bad one.
//!
//! Detected are: a missing or duplicate sequence number, an edit of any field, swapped or inserted
//! rows, rows removed before a checkpoint, a chain that differs from the one a checkpoint signed,
//! and a checkpoint with an invalid signature.
//! Not detected: rows removed after the last given checkpoint.

use std::collections::BTreeMap;

use crate::{ChainHead, Checkpoint, Draft, Hash, PublicKey, canonical::embeddable, chain};

/// The columns of a stored row cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable;

/// Why a row is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A row with another sequence number is in its position.
    Gap,
    /// It cannot be decoded.
    Undecodable,
    /// Its hash does not match the row or the previous rows.
    Hash,
    /// A checkpoint signed another hash for this row.
    Checkpoint,
    /// The checkpoint of this row has an invalid signature.
    Signature,
    /// The chain ends before this row, although a checkpoint covers it.
    Truncated,
}

/// The first bad row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its sequence number.
    pub seq: u64,
    /// Why it is bad.
    pub found: Defect,
}

/// The result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// The number of rows read, including the first bad one.
    pub rows: u64,
    /// The first bad row; `None` if all rows are good.
    pub first_bad: Option<BadRow>,
    /// The last good row.
    pub head: ChainHead,
    /// The last row that is covered by a signed checkpoint; 0 if there is none. Later rows can be
    /// rewritten without the key.
    pub signed: u64,
}

/// Verifies rows one after the other, in ascending order of `seq`.
#[derive(Debug)]
pub struct Verifier {
    head: ChainHead,
    rows: u64,
    checkpoints: BTreeMap<u64, Vec<Hash>>,
    /// The first checkpoint with an invalid signature.
    forged: Option<u64>,
    bad: Option<BadRow>,
}

impl Verifier {
    /// Starts with all known checkpoints, including those stored elsewhere.
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

    /// The sequence number of the next row.
    pub fn next(&self) -> u64 {
        self.head.seq + 1
    }

    /// Verifies the next stored row. `Err` once a bad row was found; later rows are not verified.
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

    /// Ends the verification.
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
