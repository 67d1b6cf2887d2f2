//! Forwarding: the path of one request from an agent session to a server.
//!
//! A request that can do something takes the pipeline (`admission/src/pipeline.rs`), which admits
//! and records it. Requests of the closed list (lists, pings) are sent without a permit.
//!
//! Start at [`forward`].

use std::future::ready;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::timeout;
use toolgate_admission::admit::{Admission, Wanted, What};
use toolgate_admission::clearance::{Clearance, Closed, Heads};
use toolgate_admission::contained::{Work, contained};
use toolgate_admission::ended::Ended;
use toolgate_admission::expects::Expects;
use toolgate_admission::pipeline::{self, Delivery, Sending};
use toolgate_admission::refused::Refused;
use toolgate_admission::store_timeout::PATIENCE;
use toolgate_admission::task_book::Heard;
use toolgate_admission::wanted::{unreadable, wanted};
use toolgate_audit::{Effect, Outcome};
use toolgate_mcp::modern::annotations::PREFIX;
use toolgate_mcp::{Refusal, Request, method, peek, text, write};
use toolgate_policy::Class;

use crate::event_buffer::Outlet;
use crate::imitation::is_imitation;
use crate::link::{Agent, Ask, Link, Pending};
use crate::reply::Reply;

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
        return Ok(contained(async move || drop(pending.run(Clearance::Closed(closed)).await)));
    }
    let wanted =
        wanted(session, link.server().name(), ask.request, own, |tool| link.server().class(tool))?;
    let withheld = wanted.watches_result();
    let legs = session.take_steps(outlet.number());
    let mut unchecked = None;
    if let Some((_, newer)) = &legs {
        check_heads(link, &wanted, &newer.heads)?;
        let is_known = link.server().annotations.is_whole() || newer.heads.is_empty();
        let is_unchecked = !is_known && matches!(wanted.what, What::Tool(..));
        unchecked = is_unchecked.then(|| newer.heads.clone());
    }
    let task = ask.task.and_then(|own| Task::watched(&**session, link, own));
    let withheld = withheld || task.is_some();
    let call_id = Some(wanted.call_id);
    let pending = link.pending(&Ask { withheld, call_id, ..*ask }, outlet)?;
    let (pending, rounds) = match legs {
        Some((rounds, newer)) => (pending.with_newer(newer), Some(rounds)),
        None => (pending, None),
    };
    let (session, link) = (Arc::clone(session), Arc::clone(link));
    let admission = Arc::clone(session.admission());
    let delivery = ToServer { session, link, pending, unchecked, task };
    Ok(pipeline::run(&admission, wanted, rounds, |admission, wanted| {
        delivery.prepare(admission, wanted)
    }))
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
    let admission = Arc::clone(session.admission());
    let reply = Reply::new(outlet, request.id, Expects::of(&request.method));
    Ok(contained(async move || {
        match admission.unroutable(&wanted, "unknown_task", &refusal.message).await {
            Ok(()) => {
                let error = write::error(Some(reply.id()), refusal.code, &refusal.message, None);
                reply.answer(error);
            }
            Err(refused) => reply.refuse(&refused),
        }
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

/// The delivery of a call to a server.
struct ToServer<S> {
    session: Arc<S>,
    link: Arc<Link>,
    /// Owns the answer.
    pending: Pending,
    /// Headers that repeat arguments of a tool which its server has not listed yet.
    unchecked: Option<Heads>,
    /// The task it is about, if the call that created it waits for its result.
    task: Option<Task>,
}

/// A task that a request is about.
struct Task {
    server: Arc<str>,
    /// The server's own id.
    own: String,
    /// The grant and the agent session that ask.
    asker: (Arc<str>, u64),
}

impl<S: Agent> ToServer<S> {
    /// Stops a call whose name imitates another.
    async fn prepare(
        self,
        admission: Arc<Admission>,
        wanted: Arc<Wanted>,
    ) -> Option<(Self, Arc<Wanted>)> {
        if !is_imitation(&admission, &self.link, &wanted).await {
            return Some((self, wanted));
        }
        let name = Arc::clone(wanted.what.name().0);
        let refused = admission.unknown(Wanted::clone(&wanted), &name).await;
        self.pending.refuse(&refused);
        None
    }
}

impl<S: Agent> Delivery for ToServer<S> {
    fn refuse(self, refused: &Refused) {
        self.pending.refuse(refused);
    }

    async fn send(self, sending: Sending<'_>) -> Ended {
        let Self { session, link, pending, unchecked, task } = self;
        let Sending { admission, wanted, permit, recheck } = sending;
        if let (method::RESOURCES_SUBSCRIBE, What::Resource(uri)) = (&*wanted.method, &wanted.what)
        {
            session.wishes().follow(&wanted.server, uri);
        }
        // The call runs to its end without its agent session.
        drop(session);
        if let Some(heads) = unchecked {
            link.learn_tools_or_not().await;
            if let Err(refusal) = check_heads(&link, wanted, &heads) {
                pending.object(&refusal);
                return Ended::new(Outcome::Unavailable, Effect::NotStarted);
            }
        }
        let pending = pending.with_recheck(Arc::new(recheck));
        let ended = pending.run(Clearance::Permit(permit)).await;
        if let (Some(task), Some(withheld)) = (&task, &ended.withheld) {
            let is_result = &*wanted.method == method::TASKS_RESULT;
            task.record(admission, &withheld.result, is_result).await;
        }
        ended
    }
}

impl Task {
    /// The task `own` of a server, if the call that created it waits for its result.
    fn watched(session: &impl Agent, link: &Link, own: &str) -> Option<Self> {
        let (server, label) = (link.server().name(), Arc::clone(&session.grant().label));
        let is_watched = session.admission().tasks.is_watched(&label, server, own);
        let asker = (label, session.key());
        is_watched.then(|| Self { server: server.into(), own: own.to_owned(), asker })
    }

    /// The call that created a task is recorded before the agent receives the task's result.
    async fn record(&self, admission: &Admission, result: &str, is_result: bool) {
        let Self { server, own, asker: (label, key) } = self;
        let Some(mut heard) = Heard::of_answer(own, result, is_result) else { return };
        let (tell, mut recorded) = mpsc::channel(1);
        heard.recorded = Some(tell);
        let ends = heard.result.is_some();
        admission.tasks.hear((label, *key), server, own, &heard);
        drop(heard);
        // Nothing is ever sent: the channel closes when the last receiver of `heard` drops it.
        if ends && timeout(PATIENCE, recorded.recv()).await.is_err() {
            tracing::error!("the end of a task is not recorded yet");
        }
    }
}
