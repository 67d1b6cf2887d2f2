//! Access for the fuzz targets (`fuzz/`) to functions that no other crate calls.
//!
//! Invariant: compiled with `--cfg fuzzing` alone; nothing here decides anything.

use bytes::Bytes;
use toolgate_admission::list_kind::Kind;
use toolgate_mcp::Outline;

use crate::lists::{self, Builder, List};
use crate::names::{self, Naming};
use crate::relay::{self, RelayReader, RelayWriter};
use crate::{rewrite, shown_uris};

/// How many kinds of lists there are; the functions below take a kind as a number below this.
pub const KINDS: usize = Kind::ALL.len();

/// A list of one server, as `/mcp` shows it.
#[derive(Debug)]
pub struct Listed(List);

impl Listed {
    /// Reads the pages of `server`. None if a page is rejected.
    pub fn read<'p>(
        number: usize,
        server: &str,
        pages: impl IntoIterator<Item = &'p str>,
    ) -> Option<Self> {
        let naming = Naming::new(server, false);
        let mut builder = Builder::new(kind(number), &naming);
        for page in pages {
            builder.add(page).ok()?;
        }
        Some(Self(builder.finish()))
    }

    /// The server's own names, each with its entry as it is shown.
    pub fn entries(&self) -> Vec<(&str, &str)> {
        self.0.entries().collect()
    }

    /// Whether the server has something of this name.
    pub fn has(&self, own: &str) -> bool {
        self.0.has(own)
    }

    /// The page that begins at an entry, and where the next begins.
    pub fn page(&self, from: usize, room: usize) -> (Bytes, Option<usize>) {
        self.0.page(from, room)
    }

    /// The same without hidden entries.
    pub fn page_of(
        &self,
        from: usize,
        room: usize,
        is_shown: impl Fn(&str) -> bool,
    ) -> (Bytes, Option<usize>) {
        self.0.page_of(from, room, is_shown)
    }
}

/// The member of a result that holds the entries of a kind.
pub fn member(number: usize) -> &'static str {
    kind(number).member()
}

/// The hide filter. `Err` if the list cannot be read, `None` if it stays as it is.
pub fn without_hidden(
    number: usize,
    result: &str,
    hidden: impl Fn(&str) -> bool,
) -> Result<Option<String>, ()> {
    lists::without_hidden(kind(number), result, hidden).map_err(|lists::Unreadable| ())
}

/// How `/mcp` shows a server's tool, and what it reads back: the owner and the own name.
pub fn name_there_and_back(server: &str, own: &str) -> (String, Option<String>, Option<String>) {
    let naming = Naming::new(server, false);
    let shown = naming.shown_name(own);
    let owner = names::server_of_name(&shown).map(str::to_owned);
    let own = naming.own_name(&shown).map(str::to_owned);
    (shown, owner, own)
}

/// The same for a URI.
pub fn uri_there_and_back(server: &str, own: &str) -> (String, Option<String>, Option<String>) {
    let naming = Naming::new(server, false);
    let shown = naming.shown_uri(own);
    let (owner, own) = (names::server_of_uri(&shown).map(str::to_owned), naming.own_uri(&shown));
    (shown, owner, own)
}

/// The result with its URIs as they are shown.
pub fn show_uris(result: &str, server: &str) -> Option<String> {
    shown_uris::show_uris(result, &Naming::new(server, false))
}

/// The message with parts replaced.
pub fn rewritten(raw: &str, changes: &[(&str, &str)]) -> Option<Bytes> {
    rewrite::rewrite(raw, changes).ok()
}

/// Relays an answer of `size` bytes that begins like this under another id.
pub fn pass(
    outline: Outline,
    beginning: &Bytes,
    size: usize,
    id: &str,
) -> Option<(RelayWriter, RelayReader)> {
    relay::begin(outline, beginning, size, id)
}

/// The kind of that number.
pub fn kind(number: usize) -> Kind {
    Kind::ALL.get(number % KINDS).copied().unwrap_or(Kind::Tools)
}
