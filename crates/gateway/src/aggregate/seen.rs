//! What an agent has to see now.

use std::sync::Arc;

use crate::downstream::agent::AgentSession;
use crate::downstream::change_tracking::{One, Seen};
use toolgate_admission::list_kind::Kind;

/// What there is to see for this agent session.
pub(crate) fn seen(session: &AgentSession, kind: Kind) -> Seen {
    let (links, grant) = (session.links(), session.grant());
    let seen = links.iter().filter_map(|link| {
        let offer = link.server().offers.of(link.audience())?;
        let list = offer.list(kind);
        (!list.is_empty()).then(|| (link.server().name().to_owned(), Arc::downgrade(list)))
    });
    let policy = grant.policy.as_ref().filter(|_| grant.may_hide());
    let desk = session.desk().filter(|_| kind == Kind::Tools);
    let of_sessions = desk.map(|desk| {
        let showing = desk.sessions.showing(&grant.sessions);
        showing.digest(desk, &grant, session.admission().now())
    });
    let hidden_by = grant.hidden_by();
    let classes = links.iter().filter(|_| policy.is_some() && kind == Kind::Tools);
    let classes = classes.map(|link| link.server()).filter_map(|server| {
        let classes = &server.settings.tool_classes;
        (!classes.is_empty()).then(|| (server.name().to_owned(), classes.clone()))
    });
    Seen { lists: seen.collect(), hidden_by, classes: classes.collect(), of_sessions }
}

/// What decides which entries an agent of one server sees.
pub(crate) fn one(session: &AgentSession) -> One {
    let links = session.links();
    let link = links.first();
    One {
        grant: session.grant(),
        at: session.admission().now(),
        server: link.map(|link| Arc::downgrade(link.server())).unwrap_or_default(),
        has: link.and_then(|link| link.lists()),
    }
}
