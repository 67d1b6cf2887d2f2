//! `/mcp`: every server behind one agent session.
//!
//! The method selects the path: lists are answered from the list caches of the servers
//! (`aggregate/listing.rs`), calls and reads go to the server that their name or URI names, under the
//! server's own name. URIs in the responses are mapped to the shown ones.
//!
//! Invariant: a request never waits for a server that it does not concern, except for the first list
//! after a start.
//!
//! Start at [`start`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::{Instant, sleep};
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_request::{CallRequest, RawText, Reference, Subject};
use toolgate_admission::clearance::Closed;
use toolgate_admission::contained::{Work, contained};
use toolgate_admission::describe::{BOTH, describe};
use toolgate_admission::list_kind::Kind;
use toolgate_json::{peek, quote, text};
use toolgate_mcp::{Notification, Refusal, code, method, write};
use toolgate_policy::Class;
use toolgate_session::KnownSessionTool;
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::forward::{forward, refuse_task};
use toolgate_upstream::link::{AgentRequest, Link, Server};
use toolgate_upstream::log_level::Level;
use toolgate_upstream::names::{server_of_name, server_of_uri};
use toolgate_upstream::reply::Reply;
use toolgate_upstream::rewrite::push;
use toolgate_upstream::tasks;

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

/// The age from which a cached list is refreshed in the background.
const FRESH: Duration = Duration::from_secs(30);
/// How long changes are coalesced before the agent is notified.
const GATHER: Duration = Duration::from_millis(200);

/// The protocol's requests about one task.
const TASKS: [&str; 4] =
    [method::TASKS_GET, method::TASKS_RESULT, method::TASKS_UPDATE, method::TASKS_CANCEL];

/// Serves agent sessions on `/mcp` and `/mcp/sessions`.
pub(crate) struct All;

impl Aggregate for All {
    fn start(
        &self,
        session: &Arc<AgentSession>,
        request: CallRequest<'_>,
        buffer: &Arc<EventBuffer>,
    ) -> Result<Work, Refusal> {
        start(session, request, buffer)
    }

    fn receive(
        &self,
        session: &AgentSession,
        server: &Server,
        notification: &Notification<'_>,
        body: &Bytes,
    ) {
        receive(session, server, notification, body);
    }

    fn notify_changed(&self, session: &Arc<AgentSession>) {
        notify_changed(session);
    }
}

/// Starts a request; when the work is done, its answer is in `buffer`.
fn start(
    session: &Arc<AgentSession>,
    request: CallRequest<'_>,
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    let answered = |body: Bytes| {
        buffer.answer(body, None);
        Ok(Box::pin(std::future::ready(())) as Work)
    };
    if let Some(kind) = Kind::listed_by(request.method) {
        return match listing::start(session, kind, &request, buffer) {
            Some(work) => Ok(work),
            None => answered(invalid(request.id, "invalid cursor; list again from the start")),
        };
    }
    let routed = match &request.subject {
        Subject::Tool(name) => by_name(session, request.id, name.as_ref(), Kind::Tools),
        Subject::Prompt(name) => by_name(session, request.id, name.as_ref(), Kind::Prompts),
        Subject::Resource(uri) => by_uri(session, request.id, uri.as_ref()),
        Subject::Reference(reference) => by_reference(session, request.id, reference),
        // Methods of single servers are not supported on `/mcp`.
        Subject::Task(_) if !TASKS.contains(&request.method) => {
            return unknown_method(session, &request, buffer);
        }
        Subject::Task(_) => match by_task(session, &request) {
            Ok(routed) => routed,
            Err(refusal) => return refuse_task(session, "", &request, refusal, buffer),
        },
        Subject::Level(level) => {
            return answered(if set_level(session, &request, level.as_ref()) {
                write::result(request.id, "{}")
            } else {
                invalid(request.id, "`params.level` must be one of the log levels")
            });
        }
        Subject::Method => match request.method {
            method::PING => return answered(write::result(request.id, "{}")),
            method::TASKS_LIST => return Ok(listed_tasks::list(session, request.id, buffer)),
            _ => return unknown_method(session, &request, buffer),
        },
    };
    match routed {
        Routed::To { link, part, own } => {
            let server = link.server().name();
            let related = tasks::related(session, server, request.related_task)?;
            let mut changes = vec![(part, quote(&own))];
            changes.extend(related.map(|(part, own)| (part, quote(&own))));
            let changes: Vec<_> = changes.iter().map(|(part, own)| (*part, own.as_str())).collect();
            let is_task = matches!(request.subject, Subject::Task(_));
            let ask = AgentRequest {
                own: Some(&own),
                changes: &changes,
                task: is_task.then_some(own.as_str()),
                mapped: true,
                hides: None,
            };
            forward(session, &link, request, &ask, buffer)
        }
        Routed::ToBuiltIn(built_in) => builtin::start(session, built_in, request, buffer),
        Routed::ToSession { dial_in, shown, known } => {
            dial_in::start((session, &session.running), &dial_in, request, (&shown, known), buffer)
        }
        Routed::Unknown(shown) => unknown_name(session, &request, shown, buffer),
        Routed::Nowhere(answer) => answered(answer),
    }
}

/// A notification of a server that belongs to no request.
fn receive(session: &AgentSession, server: &Server, notification: &Notification<'_>, body: &Bytes) {
    match notification.method.as_ref() {
        method::RESOURCES_UPDATED => {
            let params = notification.params.unwrap_or("{}");
            let uri = peek(params, &["uri"]).ok().flatten();
            if let (Some(raw), Some(uri)) = (uri, uri.and_then(text)) {
                let shown = quote(&server.naming.shown_uri(&uri));
                push(session.general(), notification.raw, &[(raw, &shown)]);
            }
        }
        // A list refresh finds out whether the list of this agent has changed.
        changed if !Kind::changed_by(changed).is_empty() => {}
        _ => session.general().push(body.clone()),
    }
}

/// Notifies the agent, a little later and once, if the lists it was shown have changed.
fn notify_changed(session: &Arc<AgentSession>) {
    let session = Arc::downgrade(session);
    tokio::spawn(async move {
        sleep(GATHER).await;
        let Some(session) = session.upgrade() else { return };
        let outdated = session.changes.take_outdated(&session);
        let mut methods: Vec<_> = outdated.into_iter().map(Kind::changed).collect();
        methods.dedup();
        for method in methods {
            session.general().push(write::notification(method, None));
        }
    });
}

/// Refreshes lists that are not known, or old, in the background. Tools are listed whenever an agent
/// lists them, because that shows changed definitions; where a process would have to be started for
/// it, toolgate lists them over one of its own (`gateway/own_lists.rs`).
fn refresh(link: &Arc<Link>, kind: Kind, now: Instant) {
    let Some(advertised) = link.server().list_cache.of(link.client_profile()) else {
        return link.refresh_lists(&Kind::ALL);
    };
    let is_judged = kind == Kind::Tools;
    if is_judged && link.is_up() {
        link.expect_new_tools();
    }
    if link.is_cheap() {
        if is_judged || advertised.is_older(FRESH, now) {
            link.refresh_lists(&[kind]);
        }
    } else if is_judged {
        link.want_listing();
    }
}

/// The destination of a request.
enum Routed<'a> {
    /// To this server; `part` of the request is replaced by its own name.
    To { link: Arc<Link>, part: &'a str, own: String },
    /// To toolgate itself.
    ToBuiltIn(&'static BuiltIn),
    /// To one of the sessions that publish this tool.
    ToSession { dial_in: Arc<dial_in::DialIn>, shown: String, known: KnownSessionTool },
    /// No tool or prompt has this name.
    Unknown(String),
    /// Answered without a destination.
    Nowhere(Bytes),
}

fn by_name<'a>(
    session: &AgentSession,
    id: &str,
    name: Option<&RawText<'a>>,
    kind: Kind,
) -> Routed<'a> {
    let Some(RawText { raw: part, text: Some(shown) }) = name else {
        return Routed::Nowhere(invalid(id, "`params.name` must be a string"));
    };
    if kind == Kind::Tools
        && let Some(routed) = by_own_name(session, shown)
    {
        return routed;
    }
    let links = session.links();
    if let Some((link, own)) = route(&links, kind, shown) {
        return Routed::To { link: Arc::clone(link), part, own: own.to_owned() };
    }
    if let Some((_, link)) = server_of_name(shown).and_then(|server| links.find(server)) {
        refresh(link, kind, Instant::now() + FRESH);
    }
    Routed::Unknown(shown.as_ref().to_owned())
}

/// Names that take precedence over those of servers: built-ins, then sessions.
fn by_own_name(session: &AgentSession, shown: &str) -> Option<Routed<'static>> {
    if let Some(built_in) = builtin::find(session, shown) {
        return Some(Routed::ToBuiltIn(built_in));
    }
    let dial_in = session.dial_in()?;
    let known = dial_in.driver.known(shown, &session.grant().sessions)?;
    Some(Routed::ToSession { dial_in: Arc::clone(dial_in), shown: shown.to_owned(), known })
}

fn by_uri<'a>(session: &AgentSession, id: &str, uri: Option<&RawText<'a>>) -> Routed<'a> {
    let Some(RawText { raw: part, text: Some(shown) }) = uri else {
        return Routed::Nowhere(invalid(id, "the `uri` must be a string"));
    };
    let links = session.links();
    let link = server_of_uri(shown).and_then(|server| links.find(server)).map(|(_, link)| link);
    let own = link.and_then(|link| link.server().naming.own_uri(shown));
    match (link, own) {
        (Some(link), Some(own)) => Routed::To { link: Arc::clone(link), part, own },
        _ => Routed::Nowhere(unknown_resource(id, shown)),
    }
}

fn by_task<'a>(session: &AgentSession, request: &CallRequest<'a>) -> Result<Routed<'a>, Refusal> {
    let (server, (part, own)) = tasks::subject(session, request)?;
    let links = session.links();
    let (_, link) = links.find(&server).ok_or_else(tasks::no_such_task)?;
    Ok(Routed::To { link: Arc::clone(link), part, own })
}

/// A completion is for a prompt or for a template.
fn by_reference<'a>(session: &AgentSession, id: &str, reference: &Reference<'a>) -> Routed<'a> {
    if reference.raw.is_none() {
        return Routed::Nowhere(invalid(id, "`params.ref` is missing"));
    }
    match (&reference.name, &reference.uri) {
        (Some(_), Some(_)) => Routed::Nowhere(invalid(id, BOTH)),
        (None, Some(uri)) => by_uri(session, id, Some(uri)),
        (Some(name), None) => by_name(session, id, Some(name), Kind::Prompts),
        (None, None) => Routed::Nowhere(invalid(id, "`params.ref` has neither `name` nor `uri`")),
    }
}

/// Sends the log level to every server with logging, now or when it connects.
fn set_level(
    session: &Arc<AgentSession>,
    request: &CallRequest<'_>,
    named: Option<&RawText<'_>>,
) -> bool {
    let named = named.and_then(|named| named.text.as_deref());
    let Some(level) = named.and_then(Level::parse).map(Level::as_str) else {
        return false;
    };
    session.server_subscriptions.note(request);
    let body = format!(r#"{{"level":"{level}"}}"#);
    // Sessionless servers receive it with every request.
    let is_connected = |link: &&Arc<Link>| link.is_up() && !link.is_sessionless();
    for link in session.links().iter().filter(is_connected) {
        let advertised = link.server().list_cache.of(link.client_profile());
        if advertised.is_some_and(|advertised| advertised.can("logging")) {
            link.request_detached(method::LOGGING_SET_LEVEL, body.clone(), Closed::SET_LEVEL);
        }
    }
    true
}

/// Rejects a method that belongs to no server; the policy decides it first.
fn unknown_method(
    session: &Arc<AgentSession>,
    request: &CallRequest<'_>,
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    let context = describe(session, "", request, None, Class::by_name)?;
    let admission = Arc::clone(session.admission());
    let reply = Reply::new(buffer, request.id, AnswerKind::Other);
    Ok(contained(async move || {
        let why = format!(
            "there is no method `{}` where all servers are shown; if it is one server's own, use \
             /mcp/<server>",
            context.method
        );
        match admission.unroutable(&context, "unknown_method", &why).await {
            Ok(()) => {
                let error = write::error(Some(reply.id()), code::METHOD_NOT_FOUND, &why, None);
                reply.answer(error);
            }
            Err(refused) => reply.refuse(&refused),
        }
    }))
}

/// Rejects a tool or prompt that does not exist. The policy decides the name first, so that answer and
/// row do not reveal what exists.
fn unknown_name(
    session: &Arc<AgentSession>,
    request: &CallRequest<'_>,
    shown: String,
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    let links = session.links();
    let found = server_of_name(&shown).and_then(|server| links.find(server));
    let own = found.and_then(|(_, link)| link.server().naming.own_name(&shown));
    let (server, own) = match (found, own) {
        (Some((_, link)), Some(own)) => (link.server().name(), own),
        _ => ("", shown.as_str()),
    };
    let context = describe(session, server, request, Some(own), Class::by_name)?;
    let admission = Arc::clone(session.admission());
    let reply = Reply::new(buffer, request.id, AnswerKind::of(request.method));
    Ok(contained(async move || {
        let refused = admission.unknown(context, &shown).await;
        reply.refuse(&refused);
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
