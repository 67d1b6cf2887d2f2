//! The session tools that a grant sees, as one list that is ready to be sent.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
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
    /// What is quarantined, and the revision of the pins for which that holds.
    quarantined: Mutex<Option<(u64, ShownNames)>>,
}

/// Names as agents see them.
pub(crate) type ShownNames = Arc<HashSet<Box<str>>>;

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
        Self { list, names, digest: source.digest(), quarantined: Mutex::default() }
    }

    /// The tools of which a definition is quarantined. A tool that several sessions define is shown
    /// as one, so one such definition is enough.
    pub(crate) fn quarantined(&self, dial_in: &DialIn) -> ShownNames {
        let mut known = self.quarantined.lock();
        if let Some((revision, found)) = &*known
            && *revision == dial_in.pins_revision()
        {
            return Arc::clone(found);
        }
        let is_quarantined = |known: &KnownSessionTool| {
            known.offered.iter().any(|it| dial_in.quarantine(&it.kind, &it.tool).is_some())
        };
        let found = self.names.iter().filter(|(_, known)| is_quarantined(known));
        let found: ShownNames = Arc::new(found.map(|(shown, _)| shown.clone()).collect());
        *known = Some((dial_in.pins_revision(), Arc::clone(&found)));
        found
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
        if self.quarantined(dial_in).contains(shown) {
            return true;
        }
        if !grant.may_hide() {
            return false;
        }
        let (KnownSessionTool { original, aliases, .. }, class) = (known, dial_in.class(known));
        grant.hides_call(
            &Call { server: SESSIONS, tool: original, aliases, class, ..Call::default() },
            now,
        )
    }

    /// Equal for lists that look equal to the grant.
    pub(crate) fn digest(&self, dial_in: &DialIn, grant: &Grant, now: Timestamp) -> [u8; 32] {
        if !grant.may_hide() && self.quarantined(dial_in).is_empty() {
            return self.digest;
        }
        let (seen, _) =
            self.list.page_of(0, usize::MAX, |shown| !self.hides(dial_in, grant, shown, now));
        Sha256::digest(&seen).into()
    }
}
