//! What the next leg of a call is decided with: it was counted when it began.

use jiff::Timestamp;
use toolgate_policy::{Amount, Claim, Exception, Period, Taken, Unavailable, Usage};

/// Nothing is used up and nothing is a repeat; ids still belong to whom they belong.
pub(super) struct Counted<'a>(pub(super) &'a dyn Usage);

impl Usage for Counted<'_> {
    fn used(&self, _: &str, _: Period) -> Result<Amount, Unavailable> {
        Ok(Amount::ZERO)
    }
    fn taken(&self, _: &str, _: Timestamp) -> Result<Vec<Taken>, Unavailable> {
        Ok(Vec::new())
    }
    fn in_flight(&self, _: &str) -> Result<u64, Unavailable> {
        Ok(0)
    }
    fn last_admitted(&self, _: &str) -> Result<Option<Timestamp>, Unavailable> {
        Ok(None)
    }
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        self.0.owns(claim)
    }
    fn exceptions(&self) -> &[Exception] {
        self.0.exceptions()
    }
}
