//! `/mcp`: every server behind one agent session.
//!
//! A request is told apart by its method: lists are answered from what is kept of each server
//! (`aggregate/listing.rs`), calls and reads go to the server that their name or URI speaks of, under the
//! name that the server knows; the answers come back with their URIs as they are shown here.
//!
//! Invariant: what one server does is not felt by a request to another: nothing here waits for a
//! server that the request does not concern, but for the first hearing after a start.
//!
//! Start at [`start`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::{Instant, sleep};
use toolgate_admission::clearance::Closed;
use toolgate_admission::expects::Expects;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::wanted::{BOTH, wanted};
use toolgate_mcp::{Notification, Refusal, Request, code, members, method, peek, text, write};
use toolgate_policy::Class;
use toolgate_session::KnownSessionTool;
use toolgate_upstream::event_buffer::Outlet;
use toolgate_upstream::forward::{forward, refuse_task};
use toolgate_upstream::link::{Ask, Link, Server};
use toolgate_upstream::log_level::Level;
use toolgate_upstream::names::{server_of_name, server_of_uri};
use toolgate_upstream::rewrite::push;
use toolgate_upstream::tasks;
use toolgate_upstream::work::Work;

use crate::dial_in;
use crate::downstream::agent::{AgentSession, Aggregate};

pub(crate) mod builtin;
pub(crate) mod cursor;
mod listed_tasks;
mod listing;
mod route;
mod welcome;

pub(crate) use listing::{Listed, tools};
pub(crate) use welcome::welcome;

use builtin::BuiltIn;
use route::route;

/// How old what is kept may be before a list asks for it anew, behind the scenes.
const FRESH: Duration = Duration::from_secs(30);
/// How long changes are gathered before the agent is told of them.
const GATHER: Duration = Duration::from_millis(200);

/// Serves the agent sessions that see all servers.
pub(crate) struct All;

impl Aggregate for All {
    fn start(
        &self,
        session: &Arc<AgentSession>,
        request: &Request<'_>,
        outlet: &Arc<Outlet>,
    ) -> Result<Work, Refusal> {
        start(session, request, outlet)
    }

    fn hear(
        &self,
        session: &AgentSession,
        server: &Server,
        notification: &Notification<'_>,
        body: &Bytes,
    ) {
        hear(session, server, notification, body);
    }

    fn tell_changed(&self, session: &Arc<AgentSession>) {
        tell_changed(session);
    }
}

/// Starts a request; whatever comes of it, a refusal too, is in `outlet` when the work is done.
fn start(
    session: &Arc<AgentSession>,
    request: &Request<'_>,
    outlet: &Arc<Outlet>,
) -> Result<Work, Refusal> {
    let answered = |body: Bytes| {
        outlet.answer(body, None);
        Ok(Box::pin(std::future::ready(())) as Work)
    };
    if let Some(kind) = Kind::listed_by(&request.method) {
        return match listing::start(session, kind, request, outlet) {
            Some(work) => Ok(work),
            None => answered(invalid(
                request.id,
                "this cursor is not one of ours; list again from the start",
            )),
        };
    }
    let routed = match request.method.as_ref() {
        method::PING => return answered(write::result(request.id, "{}")),
        method::LOGGING_SET_LEVEL => {
            return answered(if set_level(session, request) {
                write::result(request.id, "{}")
            } else {
                invalid(request.id, "`params.level` must be one of the log levels")
            });
        }
        method::TOOLS_CALL => by_name(session, request, Kind::Tools)?,
        method::PROMPTS_GET => by_name(session, request, Kind::Prompts)?,
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
            by_uri(session, request, request.params)?
        }
        method::COMPLETION_COMPLETE => by_reference(session, request)?,
        method::TASKS_LIST => return Ok(listed_tasks::list(session, request.id, outlet)),
        method::TASKS_GET | method::TASKS_RESULT | method::TASKS_UPDATE | method::TASKS_CANCEL => {
            match by_task(session, request) {
                Ok(routed) => routed,
                Err(refusal) => return refuse_task(session, "", request, refusal, outlet),
            }
        }
        _ => return unknown_method(session, request, outlet),
    };
    match routed {
        Routed::To { link, part, own } => {
            let related = tasks::related(session, link.server().name(), request.params)?;
            let mut changes = vec![(part, write::quote(&own))];
            changes.extend(related.map(|(part, own)| (part, write::quote(&own))));
            let changes: Vec<_> = changes.iter().map(|(part, own)| (*part, own.as_str())).collect();
            let is_task = tasks::is_about_one(&request.method);
            let ask = Ask {
                session: session.key(),
                request,
                changes: &changes,
                task: is_task.then_some(own.as_str()),
                mapped: true,
                withheld: false,
                call_id: None,
                newer: session.standing().is_some(),
                hides: None,
            };
            forward(session, &link, &ask, Some(&own), outlet)
        }
        Routed::ToBuiltIn(built_in) => builtin::start(session, built_in, request, outlet),
        Routed::ToSession { desk, shown, known } => {
            dial_in::start((session, &session.running), &desk, request, (&shown, known), outlet)
        }
        Routed::UnknownTool(shown) => unknown_tool(session, request, shown, outlet),
        Routed::Nowhere(answer) => answered(answer),
    }
}

/// A notification of a server that belongs to no request.
fn hear(session: &AgentSession, server: &Server, notification: &Notification<'_>, body: &Bytes) {
    match notification.method.as_ref() {
        method::RESOURCES_UPDATED => {
            let params = notification.params.unwrap_or("{}");
            let uri = peek(params, &["uri"]).ok().flatten();
            if let (Some(raw), Some(uri)) = (uri, uri.and_then(text)) {
                let shown = write::quote(&server.naming.shown_uri(&uri));
                push(session.general(), notification.raw, &[(raw, &shown)]);
            }
        }
        // A survey says whether anything has changed that this agent sees.
        changed if !Kind::changed_by(changed).is_empty() => {}
        _ => session.general().push(body.clone()),
    }
}

/// Tells the agent, a little later and once, if what it was shown is no longer what there is.
fn tell_changed(session: &Arc<AgentSession>) {
    let session = Arc::downgrade(session);
    tokio::spawn(async move {
        sleep(GATHER).await;
        let Some(session) = session.upgrade() else { return };
        let outdated = session.sight.take_outdated(&session);
        let mut told: Vec<_> = outdated.into_iter().map(Kind::changed).collect();
        told.dedup();
        for method in told {
            session.general().push(write::notification(method, None));
        }
    });
}

/// Asks for lists that are not known, or old, behind the scenes.
fn freshen(link: &Arc<Link>, kind: Kind, now: Instant) {
    match link.server().offers.of(link.audience()) {
        None => link.survey(&Kind::ALL),
        Some(offer) if offer.is_older(FRESH, now) && link.is_cheap() => link.survey(&[kind]),
        Some(_) => {}
    }
}

/// Where a request goes.
enum Routed<'a> {
    /// To this server, which knows `part` of the request as `own`.
    To { link: Arc<Link>, part: &'a str, own: String },
    /// To toolgate itself.
    ToBuiltIn(&'static BuiltIn),
    /// To one of the sessions that have this tool.
    ToSession { desk: Arc<dial_in::Desk>, shown: String, known: KnownSessionTool },
    /// Nowhere: there is no tool that is shown as this.
    UnknownTool(String),
    /// Nowhere; this is the answer.
    Nowhere(Bytes),
}

fn by_name<'a>(
    session: &AgentSession,
    request: &Request<'a>,
    kind: Kind,
) -> Result<Routed<'a>, Refusal> {
    let part = request.params.map(|params| peek(params, &["name"])).transpose()?.flatten();
    let (Some(part), Some(shown)) = (part, part.and_then(text)) else {
        return Ok(Routed::Nowhere(invalid(request.id, "`params.name` must be a string")));
    };
    if kind == Kind::Tools
        && let Some(routed) = by_own_name(session, &shown)
    {
        return Ok(routed);
    }
    let links = session.links();
    if let Some((link, own)) = route(&links, kind, &shown) {
        return Ok(Routed::To { link: Arc::clone(link), part, own: own.to_owned() });
    }
    if let Some((_, link)) = server_of_name(&shown).and_then(|server| links.find(server)) {
        freshen(link, kind, Instant::now() + FRESH);
    }
    if kind == Kind::Tools {
        return Ok(Routed::UnknownTool(shown.into_owned()));
    }
    let why = format!("there is no prompt `{shown}`; list the prompts again");
    Ok(Routed::Nowhere(invalid(request.id, &why)))
}

/// Names that come before those of servers: built-ins, then sessions.
fn by_own_name(session: &AgentSession, shown: &str) -> Option<Routed<'static>> {
    if let Some(built_in) = builtin::find(session, shown) {
        return Some(Routed::ToBuiltIn(built_in));
    }
    let desk = session.desk()?;
    let known = desk.sessions.known(shown, &session.grant().sessions)?;
    Some(Routed::ToSession { desk: Arc::clone(desk), shown: shown.to_owned(), known })
}

fn by_uri<'a>(
    session: &AgentSession,
    request: &Request<'a>,
    holder: Option<&'a str>,
) -> Result<Routed<'a>, Refusal> {
    let part = holder.map(|holder| peek(holder, &["uri"])).transpose()?.flatten();
    let (Some(part), Some(shown)) = (part, part.and_then(text)) else {
        return Ok(Routed::Nowhere(invalid(request.id, "the `uri` must be a string")));
    };
    let links = session.links();
    let link = server_of_uri(&shown).and_then(|server| links.find(server)).map(|(_, link)| link);
    let own = link.and_then(|link| link.server().naming.own_uri(&shown));
    Ok(match (link, own) {
        (Some(link), Some(own)) => Routed::To { link: Arc::clone(link), part, own },
        _ => Routed::Nowhere(unknown_resource(request.id, &shown)),
    })
}

fn by_task<'a>(session: &AgentSession, request: &Request<'a>) -> Result<Routed<'a>, Refusal> {
    let (server, (part, own)) = tasks::subject(session, request)?;
    let links = session.links();
    let (_, link) = links.find(&server).ok_or_else(tasks::no_such_task)?;
    Ok(Routed::To { link: Arc::clone(link), part, own })
}

/// A completion is for a prompt or for a template.
fn by_reference<'a>(session: &AgentSession, request: &Request<'a>) -> Result<Routed<'a>, Refusal> {
    let reference = request.params.map(|params| peek(params, &["ref"])).transpose()?.flatten();
    let Some(reference) = reference else {
        return Ok(Routed::Nowhere(invalid(request.id, "`params.ref` is missing")));
    };
    let [name, uri] = members(reference, ["name", "uri"])?;
    match (name, uri) {
        (Some(_), Some(_)) => Ok(Routed::Nowhere(invalid(request.id, BOTH))),
        (None, Some(_)) => by_uri(session, request, Some(reference)),
        (Some(_), None) => {
            by_name(session, &Request { params: Some(reference), ..request.clone() }, Kind::Prompts)
        }
        (None, None) => {
            Ok(Routed::Nowhere(invalid(request.id, "`params.ref` has neither `name` nor `uri`")))
        }
    }
}

/// Every server that keeps a log is told, now or when it comes up.
fn set_level(session: &Arc<AgentSession>, request: &Request<'_>) -> bool {
    let named = request.params.and_then(|params| text(peek(params, &["level"]).ok()??));
    let Some(level) = named.and_then(|level| Level::parse(&level)).map(Level::as_str) else {
        return false;
    };
    session.wishes.note(request);
    let body = format!(r#"{{"level":"{level}"}}"#);
    // Others are told with every request.
    let told = |link: &&Arc<Link>| link.is_up() && !link.speaks_modern();
    for link in session.links().iter().filter(told) {
        let offer = link.server().offers.of(link.audience());
        if offer.is_some_and(|offer| offer.can("logging")) {
            link.wish(method::LOGGING_SET_LEVEL, body.clone(), Closed::SET_LEVEL);
        }
    }
    true
}

/// No server is meant by it. The policy has the first word on the name all the same.
fn unknown_method(
    session: &Arc<AgentSession>,
    request: &Request<'_>,
    outlet: &Arc<Outlet>,
) -> Result<Work, Refusal> {
    let wanted = wanted(session, "", request, None, Class::by_name)?;
    let (admission, outlet) = (Arc::clone(session.admission()), Arc::clone(outlet));
    let id = request.id.to_owned();
    Ok(Box::pin(async move {
        let why = format!(
            "there is no method `{}` where all servers are shown; if it is one server's own, use \
             /mcp/<server>",
            wanted.method
        );
        let answer = match admission.unroutable(&wanted, "unknown_method", &why).await {
            Ok(()) => write::error(Some(&id), code::METHOD_NOT_FOUND, &why, None),
            Err(refused) => refused.answer(&id, Expects::Other),
        };
        outlet.answer(answer, None);
    }))
}

/// The policy has the first word on the name, so that the answer does not tell what there is.
fn unknown_tool(
    session: &Arc<AgentSession>,
    request: &Request<'_>,
    shown: String,
    outlet: &Arc<Outlet>,
) -> Result<Work, Refusal> {
    let links = session.links();
    let found = server_of_name(&shown).and_then(|server| links.find(server));
    let own = found.and_then(|(_, link)| link.server().naming.own_name(&shown));
    let (server, own) = match (found, own) {
        (Some((_, link)), Some(own)) => (link.server().name(), own),
        _ => ("", shown.as_str()),
    };
    let wanted = wanted(session, server, request, Some(own), Class::by_name)?;
    let (admission, outlet) = (Arc::clone(session.admission()), Arc::clone(outlet));
    let id = request.id.to_owned();
    Ok(Box::pin(async move {
        let refused = admission.unknown(wanted, &shown).await;
        outlet.answer(refused.answer(&id, Expects::ToolResult), None);
    }))
}

fn unknown_resource(id: &str, shown: &str) -> Bytes {
    let why = format!("there is no resource `{shown}`; use a URI as the lists show it");
    let data = json!({"uri": shown}).to_string();
    write::error(Some(id), code::RESOURCE_NOT_FOUND, &why, Some(&data))
}

fn invalid(id: &str, why: &str) -> Bytes {
    write::error(Some(id), code::INVALID_PARAMS, why, None)
}
