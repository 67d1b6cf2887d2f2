//! Forwarding: the way of one request from an agent session to a server.
//!
//! A request that can do something is admitted first; what came of it is recorded last. The rest
//! goes straight on.
//!
//! Invariant: an admitted request runs to its outcome row, whoever waits for it, and whatever goes
//! wrong in it.
//!
//! Start at [`forward`].

use std::future::{poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use toolgate_audit::{Effect, Outcome};
use toolgate_mcp::modern::annotations::PREFIX;
use toolgate_mcp::{Refusal, Request, code, members, method, peek, text, write};
use toolgate_policy::{Class, Outcome as Ownership};
use toolgate_store::failpoint::{Point, reach};
use toolgate_store::{Ending, Ticket};

use crate::admission::{Admission, Wanted, What};
use crate::agent::AgentSession;
use crate::call::Work;
use crate::channel::Heads;
use crate::clearance::{Clearance, Closed};
use crate::ended::Withheld;
use crate::failure::Expects;
use crate::imitation::is_imitation;
use crate::legs::{self, Steps, Ticking};
use crate::link::{Ask, Link, Pending};
use crate::outlet::Outlet;
use crate::patience::{PATIENCE, finish_in_time};
use crate::recheck::Recheck;
use crate::tasks::{Heard, keep};

/// Starts a request to the server at the other end of `link`. `own` is what the request is about,
/// if the server knows it under another name than the agent.
pub(crate) fn forward(
    session: &Arc<AgentSession>,
    link: &Arc<Link>,
    ask: &Ask<'_>,
    own: Option<&str>,
    outlet: &Arc<Outlet>,
) -> Result<Work, Refusal> {
    if let Some(closed) = Closed::request(&ask.request.method) {
        if ask.request.method == method::RESOURCES_UNSUBSCRIBE
            && !ends_subscription(session, link, ask, own)?
        {
            outlet.answer(write::result(ask.request.id, "{}"), None);
            return Ok(Box::pin(ready(())));
        }
        if let Some(answer) = link.unstarted_answer(ask.request) {
            outlet.answer(answer, None);
            return Ok(Box::pin(ready(())));
        }
        let pending = link.pending(ask, outlet)?;
        return Ok(Box::pin(async move {
            pending.run(Clearance::Closed(closed)).await;
        }));
    }
    let wanted =
        wanted(session, link.server().name(), ask.request, own, |tool| link.server().class(tool))?;
    let withheld = wanted.watches_result();
    let legs = session.standing().and_then(|standing| standing.take_steps(outlet.number()));
    let mut unchecked = None;
    if let Some((_, newer)) = &legs {
        check_heads(link, &wanted, &newer.heads)?;
        let is_known = link.server().annotations.is_whole() || newer.heads.is_empty();
        let heads = || (Arc::clone(link), newer.heads.clone());
        unchecked = (!is_known && matches!(wanted.what, What::Tool(..))).then(heads);
    }
    let task = ask.task.map(|own| (Arc::<str>::from(link.server().name()), own.to_owned()));
    let task = task.filter(|(server, own)| {
        session.admission().tasks.is_watched(&session.grant().label, server, own)
    });
    let withheld = withheld || task.is_some();
    let call_id = Some(wanted.call_id);
    let pending = link.pending(&Ask { withheld, call_id, ..*ask }, outlet)?;
    let (pending, steps) = match legs {
        Some((steps, newer)) => (pending.with_newer(newer), Some(steps)),
        None => (pending, None),
    };
    let before = Before { unchecked, task, link: Arc::clone(link) };
    let work = guarded(Arc::clone(session), Arc::new(wanted), pending, steps, before);
    Ok(contained(Box::pin(work)))
}

/// Whether the server is to be told that this agent session follows a resource no longer: it must
/// have followed exactly that one. A server that agents share tells them apart by nothing, and must
/// not stop telling others of what they follow.
fn ends_subscription(
    session: &AgentSession,
    link: &Link,
    ask: &Ask<'_>,
    own: Option<&str>,
) -> Result<bool, Refusal> {
    let named = peek(ask.request.params.unwrap_or("{}"), &["uri"])?.and_then(text);
    let named = named.ok_or_else(|| unreadable(ask.request, "`params.uri` must be a string"))?;
    let uri = own.unwrap_or(&named);
    let followed = session.wishes.unfollow(link.server().name(), uri);
    Ok(followed && !link.is_left_to_others(ask.session, uri))
}

/// Answers a request about a task that its grant does not have. The policy has the first word on
/// the method.
pub(crate) fn refuse_task(
    session: &Arc<AgentSession>,
    server: &str,
    request: &Request<'_>,
    refusal: Refusal,
    outlet: &Arc<Outlet>,
) -> Result<Work, Refusal> {
    let wanted = wanted(session, server, request, None, |_| Class::Other)?;
    let (admission, outlet) = (Arc::clone(session.admission()), Arc::clone(outlet));
    let (id, expects) = (request.id.to_owned(), Expects::of(&request.method));
    Ok(Box::pin(async move {
        let answer = match admission.unroutable(&wanted, "unknown_task", &refusal.message).await {
            Ok(()) => write::error(Some(&id), refusal.code, &refusal.message, None),
            Err(refused) => refused.answer(&id, expects),
        };
        outlet.answer(answer, None);
    }))
}

/// Headers that contradict the arguments are refused, whatever protocol the server speaks. No
/// server is sent the headers themselves (`link/newer.rs`).
fn check_heads(link: &Link, wanted: &Wanted, heads: &Heads) -> Result<(), Refusal> {
    let What::Tool(tool, _) = &wanted.what else { return Ok(()) };
    let header = |name: &str| {
        let is_it = |head: &str| head.strip_prefix(PREFIX).is_some_and(|head| head == name);
        heads.iter().find(|(head, _)| is_it(head)).map(|(_, value)| value.as_str())
    };
    for one in link.server().annotations.of(tool).iter().flat_map(|known| known.iter()) {
        one.check(&wanted.arguments, header).map_err(|objection| Refusal {
            code: objection.code,
            message: objection.message,
            id: None,
        })?;
    }
    Ok(())
}

/// A panic ends this request and nothing else: what it held says so as it is dropped, the ticket to
/// the record and the pending request to the agent. The work comes in a box: it is large, and each
/// future that holds it would be moved with it.
fn contained(mut work: Work) -> Work {
    Box::pin(poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            tracing::error!("toolgate made a mistake; the call it was made in is given up");
            Poll::Ready(())
        })
    }))
}

/// What a request that can do something is about. What a policy decides by must be there in the
/// form it has: a server may read a word where there is none (a list of one name, say).
pub(crate) fn wanted(
    session: &AgentSession,
    server: &str,
    request: &Request<'_>,
    own: Option<&str>,
    class: impl FnOnce(&str) -> toolgate_policy::Class,
) -> Result<Wanted, Refusal> {
    let params = request.params.unwrap_or("{}");
    let is_method = !DECIDED_BY_PARAMS.contains(&request.method.as_ref());
    if !params.starts_with('{') && !is_method {
        return Err(unreadable(request, "`params` must be an object"));
    }
    let [name, arguments] =
        if is_method { [None, None] } else { members(params, ["name", "arguments"])? };
    let is_call = request.method == method::TOOLS_CALL;
    if is_call && arguments.is_some_and(|raw| !raw.starts_with('{') && raw != "null") {
        return Err(unreadable(request, "`params.arguments` must be an object"));
    }
    // A server may have something to say of a request without a name; a policy says it first.
    let named = |found: Option<&str>, what: &str| -> Result<Arc<str>, Refusal> {
        let word = found.map(|raw| {
            text(raw).ok_or_else(|| unreadable(request, &format!("`{what}` must be a string")))
        });
        let word = word.transpose()?.unwrap_or_default();
        Ok(own.map_or_else(|| word.into(), Into::into))
    };
    let what = match request.method.as_ref() {
        method::TOOLS_CALL => {
            let tool = named(name, "params.name")?;
            let class = class(&tool);
            What::Tool(tool, class)
        }
        method::PROMPTS_GET => What::Prompt(named(name, "params.name")?),
        method::COMPLETION_COMPLETE => {
            check_reference(request, params)?;
            match (peek(params, &["ref", "name"])?, peek(params, &["ref", "uri"])?) {
                (Some(_), Some(_)) => return Err(unreadable(request, BOTH)),
                (None, uri @ Some(_)) => What::Resource(named(uri, "params.ref.uri")?),
                (name, None) => What::Prompt(named(name, "params.ref.name")?),
            }
        }
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE => {
            What::Resource(named(peek(params, &["uri"])?, "params.uri")?)
        }
        other => What::Method(other.into()),
    };
    let began = session.admission().now();
    let call_id = session.admission().call_id(began).ok_or_else(|| Refusal {
        code: code::INTERNAL_ERROR,
        message: "no id could be made for this call, so nothing was sent; see the log".to_owned(),
        id: None,
    })?;
    Ok(Wanted {
        sender: session.sender(),
        server: server.into(),
        what,
        aliases: Arc::default(),
        session: None,
        method: request.method.as_ref().into(),
        arguments: arguments.unwrap_or("{}").to_owned(),
        call_id,
        began,
    })
}

/// Methods that a policy decides by what they are about; every other one by its name.
const DECIDED_BY_PARAMS: [&str; 5] = [
    method::TOOLS_CALL,
    method::PROMPTS_GET,
    method::RESOURCES_READ,
    method::RESOURCES_SUBSCRIBE,
    method::COMPLETION_COMPLETE,
];

/// A reference is what its type says: a server may go by either.
fn check_reference(request: &Request<'_>, params: &str) -> Result<(), Refusal> {
    let Some(reference) = peek(params, &["ref"])? else { return Ok(()) };
    if !reference.starts_with('{') {
        return Err(unreadable(request, "`params.ref` must be an object"));
    }
    let [kind, name, uri] = members(reference, ["type", "name", "uri"])?;
    let Some(kind) = kind else { return Ok(()) };
    match (text(kind).as_deref(), name, uri) {
        (Some("ref/prompt"), _, None) | (Some("ref/resource"), None, _) => Ok(()),
        (_, Some(_), Some(_)) => Err(unreadable(request, BOTH)),
        _ => Err(unreadable(
            request,
            "`params.ref.type` must be `ref/prompt` with a `name`, or `ref/resource` with a `uri`",
        )),
    }
}

/// What is refused because a policy decides by it, and a server might read it otherwise.
pub(crate) const BOTH: &str = "`params.ref` has both `name` and `uri`; send the one that is meant";

fn unreadable(request: &Request<'_>, why: &str) -> Refusal {
    let id = Some(request.id.to_owned());
    Refusal { code: code::INVALID_PARAMS, message: why.to_owned(), id }
}

/// What is left to do for a request beyond sending it.
struct Before {
    /// Where it goes.
    link: Arc<Link>,
    /// Headers that repeat arguments of a tool which its server has not listed yet.
    unchecked: Option<(Arc<Link>, Heads)>,
    /// The task it is about, if the call that created it waits for its result.
    task: Option<(Arc<str>, String)>,
}

/// Admits, sends, records; leg by leg, if its client is asked something meanwhile.
async fn guarded(
    session: Arc<AgentSession>,
    wanted: Arc<Wanted>,
    pending: Pending,
    mut steps: Option<Steps>,
    before: Before,
) {
    let began = Instant::now();
    let admission = Arc::clone(session.admission());
    if is_imitation(&admission, &before.link, &wanted).await {
        let name = Arc::clone(wanted.what.name().0);
        let refused = admission.unknown(Wanted::clone(&wanted), &name).await;
        return pending.refuse(&refused);
    }
    drop(before.link);
    let recheck = Arc::new(Recheck::of(&admission, &wanted));
    let (permit, ticket) = match admission.admit(&wanted).await {
        Ok(admitted) => admitted.split(),
        Err(refused) => return pending.refuse(&refused),
    };
    if let (method::RESOURCES_SUBSCRIBE, What::Resource(uri)) = (&*wanted.method, &wanted.what) {
        session.wishes.follow(&wanted.server, uri);
    }
    if let Some((link, heads)) = before.unchecked {
        link.learn_tools_or_not().await;
        if let Err(refusal) = check_heads(&link, &wanted, &heads) {
            let (outcome, effect) = (Outcome::Unavailable, Effect::NotStarted);
            ticket.finish(Ending::new(outcome, effect, admission.now()));
            return pending.object(&refusal);
        }
    }
    let (label, key) = (Arc::clone(&session.grant().label), session.key());
    drop(session);
    let pending = pending.with_recheck(recheck);
    reach(Point::BeforeSend);
    let sent = Instant::now();
    let mut ticking = Ticking { admission: Arc::clone(&admission), wanted, ticket: Some(ticket) };
    let ended = {
        let mut run = pin!(pending.run(Clearance::Permit(permit)));
        loop {
            tokio::select! {
                biased;
                ended = &mut run => break ended,
                step = legs::next(&mut steps) => ticking.take(step).await,
            }
        }
    };
    reach(Point::AfterAnswer);
    let Some((ticket, wanted)) = ticking.last_leg(steps).await else { return };
    if let Some(made) = ended.task {
        if let Some(withheld) = ended.withheld {
            withheld.outlet.answer(withheld.answer, None);
        }
        // It is in flight until its task ends.
        return keep(&admission, wanted, ticket, *made, began);
    }
    if let (Some((server, own)), Some(withheld)) = (&before.task, &ended.withheld) {
        let is_result = &*wanted.method == method::TASKS_RESULT;
        record_task(&admission, (&label, key), (server, own), &withheld.result, is_result).await;
    }
    let mut ending = Ending::new(ended.outcome, ended.effect, admission.now());
    ending.error_code = ended.code.map(Into::into);
    (ending.message, ending.stays_counted) = (ended.message, ended.stays_counted);
    ending.upstream_ms = u64::try_from(sent.elapsed().as_millis()).ok();
    ending.total_ms = u64::try_from(began.elapsed().as_millis()).ok();
    let Some(withheld) = ended.withheld else { return ticket.finish(ending) };
    ending.ownership = admission.ownership_of(&wanted, &withheld.result).await;
    record_first(ticket, ending, withheld).await;
}

/// The call that created a task is recorded before the agent sees its result.
async fn record_task(
    admission: &Admission,
    who: (&str, u64),
    (server, own): (&str, &str),
    result: &str,
    is_result: bool,
) {
    let Some(mut heard) = Heard::of_answer(own, result, is_result) else { return };
    let (tell, mut recorded) = mpsc::channel(1);
    heard.recorded = Some(tell);
    let ends = heard.result.is_some();
    admission.tasks.hear(who, server, own, &heard);
    drop(heard);
    // Nothing is ever sent: it ends when the last one that was told has let go of it.
    if ends && timeout(PATIENCE, recorded.recv()).await.is_err() {
        tracing::error!("the end of a task is not recorded yet");
    }
}

/// Who owns what must be known before the agent can use it.
pub(crate) async fn record_first(ticket: Ticket, ending: Ending, withheld: Withheld) {
    let nothing = ending.ownership == Ownership::default();
    let written = if nothing {
        ticket.finish(ending);
        Ok(())
    } else {
        finish_in_time(ticket, ending).await
    };
    if let Err(error) = written {
        tracing::error!(%error, "who owns what a result gave is not written; until it is, it belongs to nobody");
    }
    withheld.outlet.answer(withheld.answer, None);
}
