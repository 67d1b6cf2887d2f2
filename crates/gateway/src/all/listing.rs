//! Lists on `/mcp`: those of all servers, one after the other in the configured order.
//!
//! Invariant: the same offers give the same bytes, so that what an agent has cached stays good.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use toolgate_mcp::{Pieces, Request, peek, text, write};

use super::cursor::Cursor;
use super::freshen;
use super::route::route;
use crate::agent::AgentSession;
use crate::call::Work;
use crate::link::Link;
use crate::links::Links;
use crate::lists::Kind;
use crate::outlet::Outlet;
use crate::sight::Seen;

/// How large a page may become before the rest goes to the next.
const PAGE: usize = 16 * 1024 * 1024;

/// Starts listing; none if the agent's cursor leads nowhere.
pub(super) fn start(
    session: &Arc<AgentSession>,
    kind: Kind,
    request: &Request<'_>,
    outlet: &Arc<Outlet>,
) -> Option<Work> {
    let links = session.links();
    let given = request.params.and_then(|params| peek(params, &["cursor"]).ok().flatten());
    let from = match given.filter(|given| *given != "null") {
        None => (0, 0),
        Some(given) => {
            let cursor = Cursor::decode(kind, &text(given)?)?;
            (links.find(&cursor.server)?.0, cursor.entry)
        }
    };
    let (session, outlet) = (Arc::clone(session), Arc::clone(outlet));
    let id = request.id.to_owned();
    Some(Box::pin(async move {
        let now = Instant::now();
        for link in links.iter() {
            freshen(link, kind, now);
        }
        for link in links.iter() {
            link.server().offers.first_hearing().await;
        }
        session.sight.note_shown(kind, Seen::through(&links, kind, &session.grant()));
        outlet.answer(page(&session, &links, kind, from, &id), None);
    }))
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
    let (grant, now) = (session.grant(), session.admission().now());
    for link in links.iter().skip(first) {
        let server = link.server().name();
        if room == 0 {
            cursor = Some(Cursor { server: server.to_owned(), entry });
            break;
        }
        let Some(offer) = link.server().offers.of(link.audience()) else { continue };
        let list = offer.list(kind);
        let (text, next) = if grant.may_hide() || links.may_collide() {
            let is_shown = |own: &str| {
                !grant.hides(kind, link.server(), own, now)
                    && !is_shadowed(session, links, kind, link, own)
            };
            list.page_of(entry, room, is_shown)
        } else {
            list.page(entry, room)
        };
        entry = 0;
        if !text.is_empty() {
            if pieces.len() > 1 {
                pieces.push(Bytes::from_static(b","));
            }
            room = room.saturating_sub(text.len());
            pieces.push(text);
        }
        if let Some(entry) = next {
            cursor = Some(Cursor { server: server.to_owned(), entry });
            break;
        }
    }
    let tail = match cursor {
        Some(cursor) => format!(r#"],"nextCursor":{}}}}}"#, write::quote(&cursor.encode(kind))),
        None => "]}}".to_owned(),
    };
    pieces.push(Bytes::from(tail));
    pieces.into_iter().collect()
}

/// Whether a server before this one has taken the name.
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
    let shown = kind.shown(&link.server().naming, own);
    match route(links, kind, &shown) {
        Some((winner, _)) if !Arc::ptr_eq(winner, link) => {
            let (server, winner) = (link.server().name(), winner.server().name());
            session.sight.report_shadowed(server, winner, &shown);
            true
        }
        _ => false,
    }
}
