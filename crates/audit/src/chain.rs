//! The chain: the hash of each row covers the hash of the previous row.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use toolgate_policy::Amount;

use crate::{CounterChange, Draft, Hash, Row, canonical};

/// The end of the chain, to which the next row is appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainHead {
    /// Sequence number of the last row; 0 before the first.
    pub seq: u64,
    /// Its hash; zeros before the first.
    pub hash: Hash,
}

impl ChainHead {
    /// Appends a draft: assigns the next sequence number and the hash.
    pub fn seal(&mut self, mut draft: Draft) -> Row {
        draft.time = whole_microseconds(draft.time);
        self.seq += 1;
        self.hash = hash(&self.hash, self.seq, &draft);
        Row { seq: self.seq, draft, hash: self.hash }
    }
}

/// SHA-256 over the previous hash and the canonical row.
pub(crate) fn hash(before: &Hash, seq: u64, draft: &Draft) -> Hash {
    let mut digest = Sha256::new();
    digest.update(before.0);
    digest.update(canonical::write(seq, draft, None));
    Hash(digest.finalize().into())
}

fn whole_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

impl Draft {
    /// The counters as the JSON list of the row; for stores that keep them as text.
    pub fn counters_json(&self) -> Option<String> {
        (!self.counters.is_empty()).then(|| canonical::counters(self))
    }

    /// Parses the output of [`Draft::counters_json`]; `None` for anything else.
    pub fn parse_counters(text: &str) -> Option<Vec<CounterChange>> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Change<'a> {
            #[serde(borrow)]
            after: &'a serde_json::value::RawValue,
            #[serde(borrow)]
            before: &'a serde_json::value::RawValue,
            counter: String,
        }
        let list: Vec<Change<'_>> = serde_json::from_str(text).ok()?;
        let changes = list.into_iter().map(|change| {
            Some(CounterChange {
                counter: change.counter.into(),
                before: Amount::parse(change.before.get()).ok()?,
                after: Amount::parse(change.after.get()).ok()?,
            })
        });
        let counters = changes.collect::<Option<Vec<_>>>()?;
        // Only one spelling is accepted: an equivalent edit is still an edit.
        let mut again = Draft::new(crate::RowKind::Intent, Timestamp::UNIX_EPOCH);
        again.counters = counters;
        (!again.counters.is_empty() && canonical::counters(&again) == text)
            .then_some(again.counters)
    }
}
