//! What a grant sees of sessions: their tools as one list, ready to be handed on.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use toolgate_admission::access::Grant;
use toolgate_admission::reserved::SESSIONS;
use toolgate_policy::Call;
use toolgate_session::{KnownSessionTool, Published};
use toolgate_upstream::lists::List;

use super::desk::Desk;

/// The tools that a grant sees, as they go out.
#[derive(Debug)]
pub struct Showing {
    list: List,
    /// The other names of each of them.
    names: HashMap<Box<str>, KnownSessionTool>,
    digest: [u8; 32],
}

impl Showing {
    /// Makes the list out of what the sessions publish.
    pub fn new(published: &Published) -> Self {
        let entries = published.tools.iter().map(|tool| (tool.name.as_str(), tool.json.as_str()));
        let names = published.tools.iter().map(|tool| {
            let known = KnownSessionTool {
                original: Arc::clone(&tool.original),
                aliases: Arc::clone(&tool.aliases),
                offered: Arc::clone(&tool.offered),
            };
            (tool.name.as_str().into(), known)
        });
        Self { list: List::of(entries), names: names.collect(), digest: published.digest }
    }

    pub(crate) fn list(&self) -> &List {
        &self.list
    }

    /// The tools by the names they are shown under, each with its other names.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &KnownSessionTool)> {
        let shown = self.list.entries().map(|(shown, _)| shown);
        shown.filter_map(|shown| Some((shown, self.names.get(shown)?)))
    }

    /// Whether the policy keeps this from the grant.
    pub(crate) fn hides(&self, desk: &Desk, grant: &Grant, shown: &str, now: Timestamp) -> bool {
        let Some(known) = self.names.get(shown) else { return true };
        let (KnownSessionTool { original, aliases, .. }, class) = (known, desk.class(known));
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
