//! Lists: the entries of one server, as `/mcp` shows them.
//!
//! A list is kept as the text that is sent, so that answering needs no serialisation, together with
//! the range and the server's own name of each entry.
//!
//! Invariant: of an entry only its name, its URI and `_meta.ui.resourceUri` are changed.
//! Invariant: an entry that nests deeper than [`MAX_DEPTH`], or whose name could not be called, is
//! left out: it must not make the lists of other servers useless.
//! Invariant: a list holds at most [`MAX_ITEMS`] entries and [`MAX_BYTES`] bytes; the rest is not
//! shown, and [`List::is_cut`] is true.
//!
//! Start at [`Builder::add`].

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use toolgate_admission::list_kind::Kind;
use toolgate_json::{Edit, entries, imitates, items, members, peek, quote, text, too_deep};
use toolgate_mcp::Refusal;

use crate::names::Naming;
use crate::pins::{Facts, PinMode, Quarantined, ServerPins};

#[cfg(test)]
mod tests;

/// How many entries of one kind a server may show.
pub const MAX_ITEMS: usize = 100_000;
/// How many bytes of one kind a server may show.
pub(crate) const MAX_BYTES: usize = 64 * 1024 * 1024;
/// How deep an entry may nest. All servers are in one list, which clients must be able to parse.
const MAX_DEPTH: usize = 64;

/// The entries of one kind of one server.
#[derive(Debug, Default)]
pub struct List {
    /// The entries as shown, separated by commas.
    text: Bytes,
    entries: Vec<Entry>,
    /// The server's own names.
    names: HashSet<Box<str>>,
    cut: bool,
    /// The definitions of tools, by the server's own names.
    facts: HashMap<Box<str>, Arc<Facts>>,
    /// What is quarantined, and the revision of the pins for which that holds.
    quarantined: Mutex<Option<(u64, Arc<Quarantined>)>>,
}

#[derive(Debug)]
struct Entry {
    own: Box<str>,
    place: Range<usize>,
}

/// Builds a list from a server's pages.
pub struct Builder<'a> {
    kind: Kind,
    naming: &'a Naming,
    text: BytesMut,
    entries: Vec<Entry>,
    names: HashSet<Box<str>>,
    cut: bool,
}

/// The list cannot be parsed, so it cannot be filtered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// A server's list without the entries that `hidden` rejects by their own names; `None` if nothing
/// is hidden. An entry whose name cannot be parsed is left out. A list that parsers may read
/// differently is rejected.
pub(crate) fn without_hidden(
    kind: Kind,
    result: &str,
    hidden: impl Fn(&str) -> bool,
) -> Result<Option<String>, Unreadable> {
    let list = only(result, kind.member())?.ok_or(Unreadable)?;
    let all = items(list).ok().flatten().ok_or(Unreadable)?;
    let mut shown = Vec::with_capacity(all.len());
    for raw in &all {
        let own = only(raw, kind.key())?.and_then(text);
        if own.is_some_and(|own| !hidden(&own)) {
            shown.push(*raw);
        }
    }
    if shown.len() == all.len() {
        return Ok(None);
    }
    let shown = format!("[{}]", shown.join(","));
    let edited = Edit::new(result).replace(list, shown).map_err(|_| Unreadable)?.finish();
    String::from_utf8(edited.to_vec()).map(Some).map_err(|_| Unreadable)
}

/// The value of `key`, which must not occur twice or under a name that imitates it.
pub(crate) fn only<'a>(object: &'a str, key: &str) -> Result<Option<&'a str>, Unreadable> {
    let mut found = None;
    for (raw, value) in entries(object).map_err(|_| Unreadable)?.unwrap_or_default() {
        let name = text(raw).ok_or(Unreadable)?;
        let is_it = name == key;
        if (is_it && found.replace(value).is_some())
            || (!is_it && imitates(&name, &[key]).is_some())
        {
            return Err(Unreadable);
        }
    }
    Ok(found)
}

// === impl List ===

impl List {
    /// A list of entries that are shown unchanged, each under its name.
    pub fn of(entries: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>) -> Self {
        let mut list = Self::default();
        let mut text = BytesMut::new();
        for (name, raw) in entries {
            let (name, raw) = (name.as_ref(), raw.as_ref());
            if list.entries.len() >= MAX_ITEMS || text.len() + raw.len() > MAX_BYTES {
                list.cut = true;
                break;
            }
            if !text.is_empty() {
                text.extend_from_slice(b",");
            }
            let start = text.len();
            text.extend_from_slice(raw.as_bytes());
            list.names.insert(name.into());
            list.entries.push(Entry { own: name.into(), place: start..text.len() });
        }
        list.text = text.freeze();
        list
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many bytes its entries have.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the list was too long to be shown completely.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether both show the same.
    pub(crate) fn shows_as(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// The server's own names, each with its entry as it is shown.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|entry| {
            let shown = self.text.get(entry.place.clone()).unwrap_or_default();
            (&*entry.own, std::str::from_utf8(shown).unwrap_or_default())
        })
    }

    /// Whether the server has something of this name.
    pub fn has(&self, own: &str) -> bool {
        self.names.contains(own)
    }

    /// The list with what is known of its definitions.
    pub(crate) fn with_facts(self, met: impl IntoIterator<Item = (Box<str>, Arc<Facts>)>) -> Self {
        // Of a name that is listed twice the first entry is shown; both are judged alike.
        Self { facts: met.into_iter().collect(), ..self }
    }

    /// What is known of a definition, by the server's own name.
    pub fn facts(&self, own: &str) -> Option<&Arc<Facts>> {
        self.facts.get(own)
    }

    /// Its quarantined tools.
    pub fn quarantined(&self, mode: PinMode, pins: &ServerPins) -> Arc<Quarantined> {
        let revision = pins.revision();
        let mut known = self.quarantined.lock();
        if let Some((of, quarantined)) = &*known
            && *of == revision
        {
            return Arc::clone(quarantined);
        }
        let found = Arc::new(pins.quarantined(mode, self.facts.iter()));
        *known = Some((revision, Arc::clone(&found)));
        found
    }

    /// As many entries as fit into `room` bytes, at least one, starting with entry `from`: their
    /// text, and the index of the next entry if there are more.
    pub fn page(&self, from: usize, room: usize) -> (Bytes, Option<usize>) {
        let Some(first) = self.entries.get(from) else { return (Bytes::new(), None) };
        let start = first.place.start;
        if self.text.len() - start <= room {
            return (self.text.slice(start..), None);
        }
        let fit = self.entries.partition_point(|entry| entry.place.end <= start + room);
        let next = fit.max(from + 1);
        let end = self.entries.get(next - 1).map_or(start, |entry| entry.place.end);
        (self.text.slice(start..end), (next < self.entries.len()).then_some(next))
    }

    /// The same for the entries that `is_shown` accepts, by the server's own names.
    pub fn page_of(
        &self,
        from: usize,
        room: usize,
        is_shown: impl Fn(&str) -> bool,
    ) -> (Bytes, Option<usize>) {
        let mut text = BytesMut::new();
        for (index, entry) in self.entries.iter().enumerate().skip(from) {
            if !is_shown(&entry.own) {
                continue;
            }
            if !text.is_empty() && text.len() + entry.place.len() >= room {
                return (text.freeze(), Some(index));
            }
            if !text.is_empty() {
                text.extend_from_slice(b",");
            }
            text.extend_from_slice(self.text.get(entry.place.clone()).unwrap_or_default());
        }
        (text.freeze(), None)
    }
}

// === impl Builder ===

impl<'a> Builder<'a> {
    /// An empty list.
    pub fn new(kind: Kind, naming: &'a Naming) -> Self {
        let (text, entries, names) = (BytesMut::new(), Vec::new(), HashSet::new());
        Self { kind, naming, text, entries, names, cut: false }
    }

    /// Adds the entries of one page, a server's result. Returns the raw cursor of the next page, if
    /// there is one and the list has room for it. A result that is not a list is rejected: as an
    /// empty list it would hide everything the server has.
    pub fn add<'r>(&mut self, result: &'r str) -> Result<Option<&'r str>, Refusal> {
        let [entries, next] = members(result, [self.kind.member(), "nextCursor"])?;
        let entries = entries.map(items).transpose()?.flatten();
        for raw in entries.ok_or_else(|| no_list(self.kind))? {
            if self.entries.len() >= MAX_ITEMS || self.text.len() + raw.len() > MAX_BYTES {
                self.cut = true;
                return Ok(None);
            }
            self.add_entry(raw)?;
        }
        Ok(next.filter(|next| *next != "null"))
    }

    /// The list of what was added.
    pub fn finish(self) -> List {
        let text = self.text.freeze();
        List { text, entries: self.entries, names: self.names, cut: self.cut, ..List::default() }
    }

    /// Adds an entry; one without a usable name, or with a name that was added before, is left out.
    fn add_entry(&mut self, raw: &str) -> Result<(), Refusal> {
        if too_deep(raw, MAX_DEPTH).is_some() {
            tracing::warn!(list = self.kind.member(), "list entry dropped: nested too deeply");
            return Ok(());
        }
        let [key, meta] = members(raw, [self.kind.key(), "_meta"])?;
        let (Some(key), Some(own)) = (key, key.and_then(text)) else {
            tracing::warn!(list = self.kind.member(), "list entry dropped: no name");
            return Ok(());
        };
        if own.is_empty() || own.len() > self.kind.longest() {
            tracing::warn!(
                list = self.kind.member(),
                bytes = own.len(),
                "list entry dropped: empty or too long name"
            );
            return Ok(());
        }
        if self.names.contains(&*own) {
            tracing::warn!(list = self.kind.member(), name = %own, "list entry dropped: duplicate name");
            return Ok(());
        }
        let shown = quote(&self.naming.shown(self.kind, &own));
        let widget = meta.map(|meta| peek(meta, &["ui", "resourceUri"])).transpose()?.flatten();
        let mapped = widget.and_then(text).map(|uri| quote(&self.naming.shown_uri(&uri)));
        let mut edit = Edit::new(raw);
        for (part, with) in [(Some(key), Some(shown)), (widget, mapped)] {
            if let (Some(part), Some(with)) = (part, with) {
                edit = edit.replace(part, with).map_err(|error| Refusal {
                    code: toolgate_mcp::code::INVALID_REQUEST,
                    message: error.to_string(),
                    id: None,
                })?;
            }
        }
        if !self.text.is_empty() {
            self.text.extend_from_slice(b",");
        }
        let start = self.text.len();
        self.text.extend_from_slice(&edit.finish());
        self.names.insert(own.as_ref().into());
        self.entries.push(Entry { own: own.as_ref().into(), place: start..self.text.len() });
        Ok(())
    }
}

/// The definition of an entry as its server wrote it: the entry that is shown, with the server's own
/// names in it again.
pub fn definition(kind: Kind, naming: &Naming, own: &str, shown: &str) -> Option<String> {
    let [name, meta] = members(shown, [kind.key(), "_meta"]).ok()?;
    let widget = meta.and_then(|meta| peek(meta, &["ui", "resourceUri"]).ok().flatten());
    let own_widget = widget.and_then(text).and_then(|uri| naming.own_uri(&uri));
    let mut edit = Edit::new(shown).replace(name?, quote(own)).ok()?;
    if let (Some(widget), Some(own)) = (widget, own_widget) {
        edit = edit.replace(widget, quote(&own)).ok()?;
    }
    String::from_utf8(edit.finish().to_vec()).ok()
}

fn no_list(kind: Kind) -> Refusal {
    let message = format!("`{}` is not an array", kind.member());
    Refusal { code: toolgate_mcp::code::INVALID_REQUEST, message, id: None }
}
