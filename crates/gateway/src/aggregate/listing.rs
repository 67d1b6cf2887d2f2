//! Lists on `/mcp`: built-ins, then sessions, then all servers in the configured order.
//!
//! Invariant: equal lists give equal bytes, so that an agent's cache stays valid.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::time::Instant;
use toolgate_admission::access::Grant;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::contained::{Work, contained};
use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::{SESSIONS, TOOLGATE};
use toolgate_json::{peek, quote, text};
use toolgate_mcp::Pieces;
use toolgate_policy::Class;
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::link::Link;
use toolgate_upstream::lists::List;
use toolgate_upstream::pins::Quarantined;
use toolgate_upstream::reply::Reply;

use super::builtin;
use super::cursor::Cursor;
use super::refresh;
use super::route::{owner_of, route};
use crate::downstream::agent::AgentSession;
use crate::downstream::change_tracking::ListState;
use crate::downstream::links::Links;

/// The maximum size of a page in bytes.
const PAGE: usize = 16 * 1024 * 1024;

/// Starts listing; `None` if the cursor is not valid.
pub(super) fn start(
    session: &Arc<AgentSession>,
    kind: Kind,
    request: &CallRequest<'_>,
    buffer: &Arc<EventBuffer>,
) -> Option<Work> {
    let links = session.links();
    let given = request.params.and_then(|params| peek(params, &["cursor"]).ok().flatten());
    let from = match given.filter(|given| *given != "null") {
        None => (0, 0),
        Some(given) => {
            let cursor = Cursor::decode(kind, &text(given)?)?;
            (place_of(&links, &cursor.server)?, cursor.entry)
        }
    };
    let session = Arc::clone(session);
    let reply = Reply::new(buffer, request.id, AnswerKind::of(request.method));
    Some(contained(async move || {
        refresh_all(&links, kind).await;
        session.changes.set_shown(kind, ListState::by(&session, kind));
        let page = page(&session, &links, kind, from, reply.id());
        reply.answer(page);
    }))
}

/// One tool that an agent sees.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The name it is listed under.
    pub(crate) shown: String,
    /// Its server, or a reserved name for toolgate itself and for sessions.
    pub(crate) server: String,
    /// The server's own name of it.
    pub(crate) own: String,
    /// Further names that policies match.
    pub(crate) aliases: Arc<[Arc<str>]>,
    pub(crate) class: Class,
}

/// All tools that an agent sees.
pub(crate) async fn tools(session: &AgentSession) -> Vec<Listed> {
    let links = session.links();
    refresh_all(&links, Kind::Tools).await;
    let view = ListView::of(session, &links, Kind::Tools);
    let mut tools: Vec<_> = view.built_ins().chain(view.session_tools()).collect();
    for link in links.iter() {
        tools.extend(view.server_tools(link));
    }
    tools
}

/// Refreshes lists that are missing or old, and waits for servers that were never listed.
async fn refresh_all(links: &Links, kind: Kind) {
    let now = Instant::now();
    for link in links.iter() {
        refresh(link, kind, now);
    }
    for link in links.iter() {
        link.server().list_cache.wait_for_first_list(now).await;
    }
    let missing = links.iter().filter(|link| !link.server().list_cache.is_listed()).count();
    if missing > 0 {
        let list = kind.member();
        tracing::info!(list, missing, "list answered without servers that were never listed");
    }
}

/// The sections before the servers.
const OWN: [&str; 2] = [TOOLGATE, SESSIONS];

/// The position of a section or server in the whole list.
fn place_of(links: &Links, name: &str) -> Option<usize> {
    match OWN.iter().position(|own| *own == name) {
        Some(place) => Some(place),
        None => Some(OWN.len() + links.find(name)?.0),
    }
}

fn page(
    session: &AgentSession,
    links: &Links,
    kind: Kind,
    (first, mut entry): (usize, usize),
    id: &str,
) -> Pieces {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"{}":["#, kind.member());
    let mut pieces = vec![Bytes::from(head)];
    let (mut room, mut cursor) = (PAGE, None);
    let view = ListView::of(session, links, kind);
    let servers = links.iter().map(|link| link.server().name());
    for (place, name) in OWN.into_iter().chain(servers).enumerate().skip(first) {
        if room == 0 {
            cursor = Some(Cursor { server: name.to_owned(), entry });
            break;
        }
        let Some((text, next)) = view.at(place, entry, room) else { continue };
        entry = 0;
        if !text.is_empty() {
            if pieces.len() > 1 {
                pieces.push(Bytes::from_static(b","));
            }
            room = room.saturating_sub(text.len());
            pieces.push(text);
        }
        if let Some(entry) = next {
            cursor = Some(Cursor { server: name.to_owned(), entry });
            break;
        }
    }
    let tail = match cursor {
        Some(cursor) => format!(r#"],"nextCursor":{}}}}}"#, quote(&cursor.encode(kind))),
        None => "]}}".to_owned(),
    };
    pieces.push(Bytes::from(tail));
    pieces.into_iter().collect()
}

/// A list as one agent sees it.
struct ListView<'a> {
    session: &'a AgentSession,
    links: &'a Links,
    kind: Kind,
    grant: Arc<Grant>,
    now: Timestamp,
}

impl<'a> ListView<'a> {
    fn of(session: &'a AgentSession, links: &'a Links, kind: Kind) -> Self {
        Self { session, links, kind, grant: session.grant(), now: session.admission().now() }
    }

    /// The entries at a position of the whole list, from an index on, as far as they fit; `None` if
    /// the section has no list.
    fn at(&self, place: usize, entry: usize, room: usize) -> Option<(Bytes, Option<usize>)> {
        match place.checked_sub(OWN.len()) {
            Some(index) => self.server(self.links.iter().nth(index)?, entry, room),
            None if self.kind != Kind::Tools => None,
            None if place == 0 => {
                Some(builtin::list().page_of(entry, room, |name| self.shows_built_in(name)))
            }
            None => self.sessions(entry, room),
        }
    }

    fn sessions(&self, entry: usize, room: usize) -> Option<(Bytes, Option<usize>)> {
        let dial_in = self.session.dial_in()?;
        let tools = dial_in.driver.tools(&self.grant.sessions);
        Some(if self.grant.may_hide() || !tools.quarantined(dial_in).is_empty() {
            let is_shown = |shown: &str| !tools.hides(dial_in, &self.grant, shown, self.now);
            tools.list().page_of(entry, room, is_shown)
        } else {
            tools.list().page(entry, room)
        })
    }

    fn server(
        &self,
        link: &Arc<Link>,
        entry: usize,
        room: usize,
    ) -> Option<(Bytes, Option<usize>)> {
        let advertised = link.server().list_cache.of(link.client_profile())?;
        let list = advertised.list(self.kind);
        let quarantined = quarantined(link, list);
        let hides = !quarantined.is_empty() || self.grant.may_hide() || self.links.may_collide();
        Some(if hides {
            let is_shown = |own: &str| !quarantined.contains_key(own) && self.shows(link, own);
            list.page_of(entry, room, is_shown)
        } else {
            list.page(entry, room)
        })
    }

    fn shows_built_in(&self, name: &str) -> bool {
        builtin::is_shown(self.session, &self.grant, name, self.now)
    }

    fn shows(&self, link: &Arc<Link>, own: &str) -> bool {
        !link.server().is_hidden_from(&self.grant, self.kind, own, self.now)
            && !is_shadowed(self.session, self.links, self.kind, link, own)
    }

    fn built_ins(&self) -> impl Iterator<Item = Listed> {
        let shown = builtin::TABLE.iter().filter(|one| self.shows_built_in(one.name));
        shown.map(|one| Listed {
            shown: one.name.to_owned(),
            server: TOOLGATE.to_owned(),
            own: one.name.to_owned(),
            aliases: Arc::default(),
            class: one.class,
        })
    }

    fn session_tools(&self) -> Vec<Listed> {
        let Some(dial_in) = self.session.dial_in() else { return Vec::new() };
        let tools = dial_in.driver.tools(&self.grant.sessions);
        let shown =
            tools.names().filter(|(name, _)| !tools.hides(dial_in, &self.grant, name, self.now));
        let listed = shown.map(|(name, known)| Listed {
            shown: name.to_owned(),
            server: SESSIONS.to_owned(),
            own: known.original.to_string(),
            aliases: Arc::clone(&known.aliases),
            class: dial_in.class(known),
        });
        listed.collect()
    }

    fn server_tools(&self, link: &Arc<Link>) -> Vec<Listed> {
        let server = link.server();
        let Some(advertised) = server.list_cache.of(link.client_profile()) else {
            return Vec::new();
        };
        let list = advertised.list(self.kind);
        let quarantined = quarantined(link, list);
        let own = list.entries().map(|(own, _)| own);
        let own = own.filter(|own| !quarantined.contains_key(*own));
        let listed = own.filter(|own| self.shows(link, own)).map(|own| Listed {
            shown: server.naming.shown(self.kind, own),
            server: server.name().to_owned(),
            own: own.to_owned(),
            aliases: Arc::default(),
            class: server.class(own),
        });
        listed.collect()
    }
}

/// The quarantined tools of a server's list.
fn quarantined(link: &Link, list: &List) -> Arc<Quarantined> {
    list.quarantined(link.server().settings.pin, link.server().pins())
}

/// Whether another server, a session or a built-in owns the name.
fn is_shadowed(
    session: &AgentSession,
    links: &Links,
    kind: Kind,
    link: &Arc<Link>,
    own: &str,
) -> bool {
    if !links.may_collide() || !matches!(kind, Kind::Tools | Kind::Prompts) {
        return false;
    }
    let shown = link.server().naming.shown(kind, own);
    if kind == Kind::Tools
        && let Some(winner) = taken_by_own(session, &shown)
    {
        session.changes.report_shadowed(link.server().name(), winner, &shown);
        return true;
    }
    let winner = match route(links, kind, &shown) {
        Some((winner, _)) if Arc::ptr_eq(winner, link) => return false,
        Some((winner, _)) => winner.server().name(),
        None => owner_of(links, link, kind, &shown).unwrap_or(TOOLGATE),
    };
    session.changes.report_shadowed(link.server().name(), winner, &shown);
    true
}

/// The section before the servers that owns the name.
fn taken_by_own(session: &AgentSession, shown: &str) -> Option<&'static str> {
    if builtin::find(session, shown).is_some() {
        return Some(TOOLGATE);
    }
    let dial_in = session.dial_in()?;
    dial_in.driver.known(shown, &session.grant().sessions).map(|_| SESSIONS)
}
