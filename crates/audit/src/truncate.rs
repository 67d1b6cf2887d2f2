//! Truncates long texts of a row.
//!
//! A text field of more than 512 bytes is reduced to its beginning, up to 512 bytes of whole
//! characters, followed by `…sha256:` and the SHA-256 of the whole value in hex, so that the full
//! value can still be compared.
//!
//! Invariant: a draft is truncated once. A truncated text is not truncated again.

use std::sync::Arc;

use crate::{Draft, Hash};

/// The maximum bytes of a text in a row.
pub const MAX_TEXT: usize = 512;
/// The maximum bytes of recorded arguments of a refused call; those of a sent call are recorded
/// whole if the mode requires it.
const REFUSED_ARGUMENTS: usize = 64 * 1024;

/// The truncated text; `None` if it is short enough.
pub fn truncate(text: &str) -> Option<Arc<str>> {
    if text.len() <= MAX_TEXT {
        return None;
    }
    let kept = text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default();
    Some(format!("{kept}…sha256:{}", Hash::of(text.as_bytes())).into())
}

impl Draft {
    /// Truncates all texts. To be called once, before the draft is passed to a store.
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

    /// Replaces long arguments of a call that was not sent by their digest.
    #[must_use]
    pub fn truncate_arguments(mut self) -> Self {
        if let Some(arguments) = self.arguments.as_mut().filter(|it| it.len() > REFUSED_ARGUMENTS) {
            *arguments = format!("\"…sha256:{}\"", Hash::of(arguments.as_bytes())).into();
        }
        self
    }
}
