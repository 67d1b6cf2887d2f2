//! The session tools that a grant sees, as one list that is ready to be sent.

use std::collections::HashMap;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use toolgate_admission::access::Grant;
use toolgate_admission::reserved::SESSIONS;
use toolgate_policy::Call;
use toolgate_session::{KnownSessionTool, ListSource, PublishedTool};
use toolgate_upstream::lists::List;

use super::DialIn;

/// The tools that a grant sees, as they are sent.
#[derive(Debug)]
pub(crate) struct ToolList {
    list: List,
    /// The other names of each of them.
    names: HashMap<Box<str>, KnownSessionTool>,
    digest: [u8; 32],
}

impl ToolList {
    /// Writes the list.
    pub(crate) fn write(source: &ListSource) -> Self {
        let mut names = HashMap::new();
        let entries = source.tools().map(
            |PublishedTool { name, original, aliases, json, offered, .. }| {
                names.insert(name.as_str().into(), KnownSessionTool { original, aliases, offered });
                (name, json)
            },
        );
        let list = List::of(entries);
        Self { list, names, digest: source.digest() }
    }

    /// How many bytes the list has.
    pub(crate) fn bytes(&self) -> usize {
        self.list.text_len()
    }

    pub(crate) fn list(&self) -> &List {
        &self.list
    }

    /// The tools by the names they are shown under, each with its other names.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &KnownSessionTool)> {
        let shown = self.list.entries().map(|(shown, _)| shown);
        shown.filter_map(|shown| Some((shown, self.names.get(shown)?)))
    }

    /// Whether this tool is not listed for the grant.
    pub(crate) fn hides(
        &self,
        dial_in: &DialIn,
        grant: &Grant,
        shown: &str,
        now: Timestamp,
    ) -> bool {
        let Some(known) = self.names.get(shown) else { return true };
        let (KnownSessionTool { original, aliases, .. }, class) = (known, dial_in.class(known));
        grant.hides_call(
            &Call { server: SESSIONS, tool: original, aliases, class, ..Call::default() },
            now,
        )
    }

    /// Equal for lists that look equal to the grant.
    pub(crate) fn digest(&self, dial_in: &DialIn, grant: &Grant, now: Timestamp) -> [u8; 32] {
        if !grant.may_hide() {
            return self.digest;
        }
        let (seen, _) =
            self.list.page_of(0, usize::MAX, |shown| !self.hides(dial_in, grant, shown, now));
        Sha256::digest(&seen).into()
    }
}
