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
use toolgate_mcp::modern::annotations::PREFIX;
use toolgate_mcp::{Refusal, Request, method, peek, text, write};
use toolgate_policy::Class;
use toolgate_store::Completion;
use toolgate_store::failpoint::{Failpoint, reach};

use crate::event_buffer::Outlet;
use crate::imitation::is_imitation;
use crate::link::{Agent, Ask, Link, Pending};
use crate::withheld::record_first;
use crate::work::Work;

/// Starts a request to the server at the other end of `link`. `own` is what the request is about,
/// if the server knows it under another name than the agent.
pub fn forward(
    session: &Arc<impl Agent>,
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
    let legs = session.take_steps(outlet.number());
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
    session: &Arc<impl Agent>,
    link: &Link,
    ask: &Ask<'_>,
    own: Option<&str>,
) -> Result<bool, Refusal> {
    let named = peek(ask.request.params.unwrap_or("{}"), &["uri"])?.and_then(text);
    let named = named.ok_or_else(|| unreadable(ask.request, "`params.uri` must be a string"))?;
    let uri = own.unwrap_or(&named);
    let followed = session.wishes().unfollow(link.server().name(), uri);
    Ok(followed && !link.is_left_to_others(ask.session, uri))
}

/// Answers a request about a task that its grant does not have. The policy has the first word on
/// the method.
pub fn refuse_task(
    session: &Arc<impl Agent>,
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
/// server is sent the headers themselves (`link/sessionless.rs`).
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
        session.wishes().follow(&wanted.server, uri);
    }
    if let Some((link, heads)) = before.unchecked {
        link.learn_tools_or_not().await;
        if let Err(refusal) = check_heads(&link, &wanted, &heads) {
            let (outcome, effect) = (Outcome::Unavailable, Effect::NotStarted);
            ticket.finish(Completion::new(outcome, effect, admission.now()));
            return pending.object(&refusal);
        }
    }
    let (label, key) = (Arc::clone(&session.grant().label), session.key());
    drop(session);
    let pending = pending.with_recheck(recheck);
    reach(Failpoint::BeforeSend);
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
    reach(Failpoint::AfterAnswer);
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
    let mut ending = Completion::new(ended.outcome, ended.effect, admission.now());
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
