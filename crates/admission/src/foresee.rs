//! Whether a call would be admitted, as far as that can be told without counters.

use std::sync::Arc;

use toolgate_policy::{Effect, UNUSED};

use crate::admit::{Admission, Wanted};

impl Admission {
    /// Whether grant, reach, freezes and policy let a call pass now. Nothing is counted or recorded;
    /// whoever asks still needs a permit.
    pub fn would_admit(&self, wanted: &Arc<Wanted>) -> bool {
        let access = self.in_force();
        let wanted = wanted.under(&access);
        let verdict = wanted.decide(Some(&wanted.arguments), &UNUSED, self.now());
        wanted.frozen(&access).is_none()
            && wanted.is_within(&wanted.sender.grant)
            && matches!(verdict.effect, Effect::Allow | Effect::Hold)
    }
}
