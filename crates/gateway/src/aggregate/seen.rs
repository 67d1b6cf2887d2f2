//! What an agent that sees all servers has to see now.

use std::sync::Arc;

use crate::downstream::agent::AgentSession;
use crate::downstream::change_tracking::Seen;
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
    let hidden_by = policy.and_then(|policy| policy.hash);
    Seen { lists: seen.collect(), hidden_by, of_sessions }
}
