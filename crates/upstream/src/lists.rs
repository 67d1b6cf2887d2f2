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

use std::collections::HashSet;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use toolgate_admission::list_kind::Kind;
use toolgate_json::{Edit, entries, imitates, items, members, peek, quote, text, too_deep};
use toolgate_mcp::Refusal;

use crate::names::Naming;

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
fn only<'a>(object: &'a str, key: &str) -> Result<Option<&'a str>, Unreadable> {
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
        List { text, entries: self.entries, names: self.names, cut: self.cut }
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

fn no_list(kind: Kind) -> Refusal {
    let message = format!("`{}` is not an array", kind.member());
    Refusal { code: toolgate_mcp::code::INVALID_REQUEST, message, id: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(kind: Kind, pages: &[&str]) -> List {
        let naming = Naming::new("files", false);
        let mut builder = Builder::new(kind, &naming);
        for page in pages {
            builder.add(page).unwrap();
        }
        builder.finish()
    }

    fn whole(list: &List) -> String {
        String::from_utf8(list.page(0, usize::MAX).0.to_vec()).unwrap()
    }

    #[test]
    fn only_names_change() {
        let cases = [
            (
                Kind::Tools,
                r#"{"tools":[{"x":1.0,"name":"a"},{"name":"b","_meta":{"ui":{"resourceUri":"ui://w/1","k":[1e5]}}}]}"#,
                r#"{"x":1.0,"name":"files__a"},{"name":"files__b","_meta":{"ui":{"resourceUri":"ui://files+w/1","k":[1e5]}}}"#,
            ),
            (
                Kind::Prompts,
                r#"{"prompts":[{"name":"p","title":"P"}]}"#,
                r#"{"name":"files__p","title":"P"}"#,
            ),
            (
                Kind::Resources,
                r#"{"resources":[{"uri":"demo://a","name":"a"}]}"#,
                r#"{"uri":"files+demo://a","name":"a"}"#,
            ),
            (
                Kind::Templates,
                r#"{"resourceTemplates":[{"uriTemplate":"demo://{id}","name":"t"}]}"#,
                r#"{"uriTemplate":"files+demo://{id}","name":"t"}"#,
            ),
            (Kind::Tools, r#"{"tools":[{"name":"\u0061\"b"}]}"#, r#"{"name":"files__a\"b"}"#),
        ];
        for (kind, result, shown) in cases {
            assert_eq!(whole(&list(kind, &[result])), shown);
        }
    }

    #[test]
    fn pages_are_joined_and_bad_entries_left_out() {
        let first = r#"{"tools":[{"name":"a"},{"title":"nameless"},{"name":7}],"nextCursor":"x"}"#;
        let second = r#"{"tools":[{"name":"a","again":true},{"name":"b"}],"nextCursor":null}"#;
        let naming = Naming::new("files", false);
        let mut builder = Builder::new(Kind::Tools, &naming);
        assert_eq!(builder.add(first).unwrap(), Some("\"x\""));
        assert_eq!(builder.add(second).unwrap(), None);
        let list = builder.finish();
        assert_eq!(whole(&list), r#"{"name":"files__a"},{"name":"files__b"}"#);
        assert!(list.has("a") && list.has("b") && !list.has("files__a"));
        assert_eq!(list.len(), 2);
    }

    #[test]
    fn a_list_that_cannot_be_read_hides_everything() {
        let hidden = |own: &str| own == "secret";
        let tools = |result: &str| without_hidden(Kind::Tools, result, hidden);
        for result in [
            "{}",
            "[]",
            "7",
            r#"{"tools":null}"#,
            r#"{"tools":{"name":"secret"}}"#,
            r#"{"tools":[],"tools":[{"name":"secret"}]}"#,
            r#"{"tools":[],"\u0074ools":[{"name":"secret"}]}"#,
            r#"{"tools":[],"Tools":[{"name":"secret"}]}"#,
            r#"{"tools":[{"name":"a","name":"secret"}]}"#,
            r#"{"tools":[{"name":"a","NAME":"secret"}]}"#,
            r#"{"tools":[{"name":"a","\ud800":1}]}"#,
            r#"{"tools":[{"name":"a"}]},{"name":"secret"}"#,
        ] {
            assert_eq!(tools(result), Err(Unreadable), "{result}");
        }
        let shown = [
            (r#"{"tools":[{"name":"a"},{"x":1.0,"name":"b"}]}"#, None),
            (r#"{"tools":[]}"#, None),
            (
                r#"{"tools":[{"name":"a"},{"name":"s\u0065cret"},{"name":7},{},"secret"],"x":1.0}"#,
                Some(r#"{"tools":[{"name":"a"}],"x":1.0}"#),
            ),
        ];
        for (result, expected) in shown {
            assert_eq!(tools(result).unwrap().as_deref(), expected, "{result}");
        }
        let uris = r#"{"resources":[{"uri":"secret","name":"a"},{"uri":"a","name":"secret"}]}"#;
        let shown = without_hidden(Kind::Resources, uris, hidden).unwrap();
        assert_eq!(shown.as_deref(), Some(r#"{"resources":[{"uri":"a","name":"secret"}]}"#));
    }

    #[test]
    fn a_result_that_is_no_list_is_refused() {
        let naming = Naming::new("files", false);
        for result in [
            "{}",
            r#"{"content":[{"type":"text","text":"a lie"}]}"#,
            r#"{"tools":null}"#,
            r#"{"tools":{"name":"a"}}"#,
            r#"{"prompts":[]}"#,
        ] {
            let refused = Builder::new(Kind::Tools, &naming).add(result).unwrap_err();
            assert_eq!(refused.message, "`tools` is not an array", "{result}");
        }
        assert!(Builder::new(Kind::Tools, &naming).add(r#"{"tools":[]}"#).is_ok());
    }

    #[test]
    fn pages_cut_between_entries() {
        let names: Vec<_> = (0..10).map(|n| format!(r#"{{"name":"t{n}"}}"#)).collect();
        let list = list(Kind::Tools, &[&format!(r#"{{"tools":[{}]}}"#, names.join(","))]);
        let entry = r#"{"name":"files__t0"}"#.len();
        let every = |_: &str| true;
        assert_eq!(list.page_of(3, 1, every), list.page(3, 1));
        assert_eq!(list.page_of(0, usize::MAX, every), list.page(0, usize::MAX));
        let odd = list.page_of(0, 2 * entry + 2, |own| !own.ends_with(['0', '2', '4', '6', '8']));
        assert_eq!(
            odd,
            (bytes::Bytes::from(r#"{"name":"files__t1"},{"name":"files__t3"}"#), Some(5))
        );
        for (room, expected) in [(0, 1), (entry, 1), (2 * entry, 1), (2 * entry + 1, 2), (900, 10)]
        {
            let (mut from, mut seen, mut pages) = (0, Vec::new(), 0);
            loop {
                let (page, next) = list.page(from, room);
                let page = String::from_utf8(page.to_vec()).unwrap();
                seen.extend(
                    items(&format!("[{page}]"))
                        .unwrap()
                        .unwrap()
                        .iter()
                        .map(|item| (*item).to_owned()),
                );
                pages += 1;
                let Some(next) = next else { break };
                from = next;
            }
            assert_eq!(seen.join(","), whole(&list), "{room}");
            assert_eq!(pages, 10_usize.div_ceil(expected), "{room}");
        }
    }
}
