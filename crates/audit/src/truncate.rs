//! Text of a row is short, whoever wrote it.
//!
//! A text field of more than 512 bytes keeps its beginning, up to 512 bytes of whole characters,
//! followed by `…sha256:` and the SHA-256 of the whole value in hex: what was cut off can be
//! compared, and takes no room.
//!
//! Invariant: cut once, when a row is drafted. What was cut is not cut again.

use std::sync::Arc;

use crate::{Draft, Hash};

/// The most bytes of a value that a row keeps.
pub const MAX_TEXT: usize = 512;
/// The most bytes of the arguments of a refused call that a row keeps; those of a call that was
/// sent are kept whole if the mode says so.
const REFUSED_ARGUMENTS: usize = 64 * 1024;

/// A text as a row keeps it.
pub fn truncate(text: &str) -> Option<Arc<str>> {
    if text.len() <= MAX_TEXT {
        return None;
    }
    let kept = text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default();
    Some(format!("{kept}…sha256:{}", Hash::of(text.as_bytes())).into())
}

impl Draft {
    /// Cuts what is too long for a row. To be done once, before the draft is given to a store.
    #[must_use]
    pub fn truncate(mut self) -> Self {
        let texts = [
            &mut self.method,
            &mut self.grant,
            &mut self.identity,
            &mut self.person,
            &mut self.agent_session,
            &mut self.client,
            &mut self.via,
            &mut self.server,
            &mut self.session_id,
            &mut self.tool,
            &mut self.risk,
            &mut self.error_code,
            &mut self.rule,
            &mut self.policy,
            &mut self.approval_id,
            &mut self.message,
        ];
        for text in texts.into_iter().flatten() {
            if let Some(short) = truncate(text) {
                *text = short;
            }
        }
        self
    }

    /// The arguments of a call that was not sent, if they are long, are only their digest.
    #[must_use]
    pub fn truncate_arguments(mut self) -> Self {
        if let Some(arguments) = self.arguments.as_mut().filter(|it| it.len() > REFUSED_ARGUMENTS) {
            *arguments = format!("\"…sha256:{}\"", Hash::of(arguments.as_bytes())).into();
        }
        self
    }
}
