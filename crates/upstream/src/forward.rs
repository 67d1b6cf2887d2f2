//! Forwarding: the path of one request from an agent session to a server.
//!
//! A request that can have an effect is admitted first, and its outcome is recorded last. Requests
//! on the closed list are sent without a permit.
//!
//! Invariant: an admitted request always reaches its outcome row, even if the agent leaves or the
//! request panics.
//!
//! Start at [`forward`].

use std::future::{poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use toolgate_admission::admit::{Admission, Wanted, What};
use toolgate_admission::clearance::{Clearance, Closed, Heads};
use toolgate_admission::expects::Expects;
use toolgate_admission::multi_round::{self, Steps, Ticking};
use toolgate_admission::recheck::Recheck;
use toolgate_admission::store_timeout::PATIENCE;
use toolgate_admission::task_book::Heard;
use toolgate_admission::task_call::keep;
use toolgate_admission::wanted::{unreadable, wanted};
use toolgate_audit::{Effect, Outcome};
use toolgate_json::{peek, text};
use toolgate_mcp::modern::annotations::PREFIX;
use toolgate_mcp::{Refusal, Request, method, write};
use toolgate_policy::Class;
use toolgate_store::Ending;
use toolgate_store::failpoint::{Point, reach};

use crate::event_buffer::EventBuffer;
use crate::held_answer::record_first;
use crate::imitation::is_imitation;
use crate::link::{Agent, AgentRequest, Link, Pending};
use crate::work::Work;

/// Starts a request to the server of `link`. `own` is the server's own name of the subject, if the
/// agent uses another one.
pub fn forward(
    session: &Arc<impl Agent>,
    link: &Arc<Link>,
    ask: &AgentRequest<'_>,
    own: Option<&str>,
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    if let Some(closed) = Closed::request(&ask.request.method) {
        if ask.request.method == method::RESOURCES_UNSUBSCRIBE
            && !ends_subscription(session, link, ask, own)?
        {
            buffer.answer(write::result(ask.request.id, "{}"), None);
            return Ok(Box::pin(ready(())));
        }
        if let Some(answer) = link.unstarted_answer(ask.request) {
            buffer.answer(answer, None);
            return Ok(Box::pin(ready(())));
        }
        let pending = link.pending(ask, buffer)?;
        return Ok(Box::pin(async move {
            pending.run(Clearance::Closed(closed)).await;
        }));
    }
    let wanted =
        wanted(session, link.server().name(), ask.request, own, |tool| link.server().class(tool))?;
    let held = wanted.watches_result();
    let rounds = session.take_steps(buffer.number());
    let mut unchecked = None;
    if let Some((_, sessionless)) = &rounds {
        check_heads(link, &wanted, &sessionless.heads)?;
        let is_known = link.server().annotations.is_whole() || sessionless.heads.is_empty();
        let heads = || (Arc::clone(link), sessionless.heads.clone());
        unchecked = (!is_known && matches!(wanted.what, What::Tool(..))).then(heads);
    }
    let task = ask.task.map(|own| (Arc::<str>::from(link.server().name()), own.to_owned()));
    let task = task.filter(|(server, own)| {
        session.admission().tasks.is_watched(&session.grant().label, server, own)
    });
    let held = held || task.is_some();
    let call_id = Some(wanted.call_id);
    let pending = link.pending(&AgentRequest { held, call_id, ..*ask }, buffer)?;
    let (pending, steps) = match rounds {
        Some((steps, sessionless)) => (pending.with_sessionless(sessionless), Some(steps)),
        None => (pending, None),
    };
    let before = Before { unchecked, task, link: Arc::clone(link) };
    let work = guarded(Arc::clone(session), Arc::new(wanted), pending, steps, before);
    Ok(contained(Box::pin(work)))
}

/// Whether to send the unsubscription: this agent session must have subscribed to exactly this
/// resource. A shared server does not tell agents apart and must keep sending updates to the
/// others.
fn ends_subscription(
    session: &Arc<impl Agent>,
    link: &Link,
    ask: &AgentRequest<'_>,
    own: Option<&str>,
) -> Result<bool, Refusal> {
    let named = peek(ask.request.params.unwrap_or("{}"), &["uri"])?.and_then(text);
    let named = named.ok_or_else(|| unreadable(ask.request, "`params.uri` must be a string"))?;
    let uri = own.unwrap_or(&named);
    let followed = session.server_subscriptions().unfollow(link.server().name(), uri);
    Ok(followed && !link.others_follow(ask.session, uri))
}

/// Answers a request about a task that its grant does not own. The policy decides the method first.
pub fn refuse_task(
    session: &Arc<impl Agent>,
    server: &str,
    request: &Request<'_>,
    refusal: Refusal,
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    let wanted = wanted(session, server, request, None, |_| Class::Other)?;
    let (admission, buffer) = (Arc::clone(session.admission()), Arc::clone(buffer));
    let (id, expects) = (request.id.to_owned(), Expects::of(&request.method));
    Ok(Box::pin(async move {
        let answer = match admission.unroutable(&wanted, "unknown_task", &refusal.message).await {
            Ok(()) => write::error(Some(&id), refusal.code, &refusal.message, None),
            Err(refused) => refused.answer(&id, expects),
        };
        buffer.answer(answer, None);
    }))
}

/// Rejects headers that contradict the arguments, whatever protocol the server speaks. The headers
/// themselves are never forwarded (`link/sessionless.rs`).
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

/// Contains a panic to this request: dropping its ticket records the outcome, and dropping the
/// pending request answers the agent. The work is boxed because it is large and would be moved with
/// every future that holds it.
fn contained(mut work: Work) -> Work {
    Box::pin(poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            tracing::error!("panic while handling a call; call aborted (please report this)");
            Poll::Ready(())
        })
    }))
}

/// What to do for a request before and after sending it.
struct Before {
    /// Where it goes.
    link: Arc<Link>,
    /// Headers that repeat arguments of a tool that its server has not listed yet.
    unchecked: Option<(Arc<Link>, Heads)>,
    /// The task it is about, if the call that created the task waits for its result.
    task: Option<(Arc<str>, String)>,
}

/// Admits, sends and records a request, in several rounds if the client must provide input.
async fn guarded(
    session: Arc<impl Agent>,
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
        session.server_subscriptions().follow(&wanted.server, uri);
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
                step = multi_round::next(&mut steps) => ticking.take(step).await,
            }
        }
    };
    reach(Point::AfterAnswer);
    let Some((ticket, wanted)) = ticking.last_leg(steps).await else { return };
    if let Some(made) = ended.task {
        if let Some(held) = ended.held {
            held.buffer.answer(held.answer, None);
        }
        // The call is in flight until its task ends.
        return keep(&admission, wanted, ticket, *made, began);
    }
    if let (Some((server, own)), Some(held)) = (&before.task, &ended.held) {
        let is_result = &*wanted.method == method::TASKS_RESULT;
        record_task(&admission, (&label, key), (server, own), &held.result, is_result).await;
    }
    let mut ending = Ending::new(ended.outcome, ended.effect, admission.now());
    ending.error_code = ended.code.map(Into::into);
    (ending.message, ending.stays_counted) = (ended.message, ended.stays_counted);
    ending.upstream_ms = u64::try_from(sent.elapsed().as_millis()).ok();
    ending.total_ms = u64::try_from(began.elapsed().as_millis()).ok();
    let Some(held) = ended.held else { return ticket.finish(ending) };
    ending.ownership = admission.ownership_of(&wanted, &held.result).await;
    record_first(ticket, ending, held).await;
}

/// Records the call that created a task before the agent sees its result.
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
    // Nothing is sent on this channel: it closes when the last receiver of `heard` drops it.
    if ends && timeout(PATIENCE, recorded.recv()).await.is_err() {
        tracing::error!("end of a task not recorded in time");
    }
}
