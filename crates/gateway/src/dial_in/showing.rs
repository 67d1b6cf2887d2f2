//! What a grant sees of sessions: their tools as one list, ready to be handed on.

use std::collections::HashMap;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use toolgate_admission::access::Grant;
use toolgate_admission::reserved::SESSIONS;
use toolgate_policy::Call;
use toolgate_session::{Known, Outline, PublishedTool};
use toolgate_upstream::lists::List;

use super::desk::Desk;

/// The tools that a grant sees, as they go out.
#[derive(Debug)]
pub struct Showing {
    list: List,
    /// The other names of each of them.
    names: HashMap<Box<str>, Known>,
    digest: [u8; 32],
}

impl Showing {
    /// Writes the list.
    pub fn new(outline: &Outline) -> Self {
        let mut names = HashMap::new();
        let entries = outline.tools().map(
            |PublishedTool { name, original, aliases, json, offered, .. }| {
                names.insert(name.as_str().into(), Known { original, aliases, offered });
                (name, json)
            },
        );
        let list = List::of(entries);
        Self { list, names, digest: outline.digest() }
    }

    /// How many bytes the list has.
    pub fn len(&self) -> usize {
        self.list.text_len()
    }

    pub(crate) fn list(&self) -> &List {
        &self.list
    }

    /// The tools by the names they are shown under, each with its other names.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &Known)> {
        let shown = self.list.entries().map(|(shown, _)| shown);
        shown.filter_map(|shown| Some((shown, self.names.get(shown)?)))
    }

    /// Whether the policy keeps this from the grant.
    pub(crate) fn hides(&self, desk: &Desk, grant: &Grant, shown: &str, now: Timestamp) -> bool {
        let Some(known) = self.names.get(shown) else { return true };
        let (Known { original, aliases, .. }, class) = (known, desk.class(known));
        grant.hides_call(
            &Call { server: SESSIONS, tool: original, aliases, class, ..Call::default() },
            now,
        )
    }

    /// Equal for what looks equal to the grant.
    pub(crate) fn digest(&self, desk: &Desk, grant: &Grant, now: Timestamp) -> [u8; 32] {
        if !grant.may_hide() {
            return self.digest;
        }
        let (seen, _) =
            self.list.page_of(0, usize::MAX, |shown| !self.hides(desk, grant, shown, now));
        Sha256::digest(&seen).into()
    }
}
