//! Forwarding: the path of one request from an agent session to a server.
//!
//! A request that can do something takes the pipeline (`admission/src/pipeline.rs`), which admits
//! and records it. Requests of the closed list (lists, pings) are sent without a permit.
//!
//! Start at [`forward`].

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use toolgate_admission::admit::Admission;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_context::{CallContext, CallSubject};
use toolgate_admission::call_request::{CallRequest, RawText, Subject};
use toolgate_admission::clearance::{Clearance, Closed, Heads};
use toolgate_admission::contained::{Work, contained};
use toolgate_admission::describe::describe;
use toolgate_admission::ended::Ended;
use toolgate_admission::holds::HeldCaller;
use toolgate_admission::multi_round::MultiRound;
use toolgate_admission::pipeline::{self, Delivery, Sending};
use toolgate_admission::refused::Refused;
use toolgate_admission::store_timeout::STORE_TIMEOUT;
use toolgate_admission::task_book::TaskUpdate;
use toolgate_admission::user_question::UserQuestion;
use toolgate_audit::{Effect, Outcome};
use toolgate_mcp::sessionless::annotations::PREFIX;
use toolgate_mcp::{Refusal, method, write};
use toolgate_policy::Class;

use crate::event_buffer::EventBuffer;
use crate::held_agent::HeldAgent;
use crate::imitation::is_imitation;
use crate::link::{Agent, AgentRequest, CalledTool, Link, Owner, Pending, Usable};
use crate::pins::Reason;
use crate::reply::Reply;

/// Starts a request to the server at the other end of `link`.
pub fn forward(
    session: &Arc<impl Agent>,
    link: &Arc<Link>,
    request: CallRequest<'_>,
    ask: &AgentRequest<'_>,
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    if let Some(closed) = Closed::request(request.method) {
        return forward_closed(session, link, &request, ask, buffer, closed);
    }
    let server = link.server();
    let mut context =
        describe(session, server.name(), &request, ask.own, |tool| server.class(tool))?;
    if let CallSubject::Tool(tool, _) = &context.subject {
        context.fingerprint = link.fingerprint(tool);
    }
    let unchecked = match &request.rounds {
        Some(rounds) => match &rounds.sessionless.heads {
            Some(heads) => check_client(link, &context, heads)?,
            None => None,
        },
        None => None,
    };
    let task = ask.task.and_then(|own| Task::watched(&**session, link, own));
    let owner = Owner {
        held: context.watches_result() || task.is_some(),
        call_id: Some(context.call_id),
        ..owner(&**session)
    };
    let pending = link.pending(&request, ask, &owner, buffer)?;
    let token = request.progress_token.map(str::to_owned);
    let (pending, rounds) = match request.rounds {
        Some(MultiRound { rounds, sessionless }) => {
            (pending.with_sessionless(sessionless), Some(rounds))
        }
        None => (pending, None),
    };
    let (session, link) = (Arc::clone(session), Arc::clone(link));
    let admission = Arc::clone(session.admission());
    let agent = HeldAgent::new(&session, buffer, token.as_deref());
    let delivery = ToServer { session, link, pending, unchecked, task, agent, usable: None };
    Ok(pipeline::run(&admission, context, rounds, |admission, context| {
        delivery.prepare(admission, context)
    }))
}

/// Starts a request of the closed list, which needs no permit.
fn forward_closed(
    session: &Arc<impl Agent>,
    link: &Arc<Link>,
    request: &CallRequest<'_>,
    ask: &AgentRequest<'_>,
    buffer: &Arc<EventBuffer>,
    closed: Closed,
) -> Result<Work, Refusal> {
    if request.method == method::RESOURCES_UNSUBSCRIBE
        && !ends_subscription(session, link, request, ask.own)?
    {
        buffer.answer(write::result(request.id, "{}"), None);
        return Ok(Box::pin(ready(())));
    }
    if let Some(answer) = link.unstarted_answer(request) {
        buffer.answer(answer, None);
        return Ok(Box::pin(ready(())));
    }
    let pending = link.pending(request, ask, &owner(&**session), buffer)?;
    Ok(contained(async move || drop(pending.run(Clearance::Closed(closed)).await)))
}

/// Whose the requests of an agent session are.
fn owner(session: &impl Agent) -> Owner {
    let (session, is_sessionless) = (session.key(), session.is_implicit());
    Owner { session, is_sessionless, held: false, call_id: None }
}

/// Whether the server is told that this agent session ends a subscription: the session must have
/// subscribed to exactly that resource. A server that agents share cannot tell them apart, and must
/// not stop notifying others of what they follow.
fn ends_subscription(
    session: &Arc<impl Agent>,
    link: &Link,
    request: &CallRequest<'_>,
    own: Option<&str>,
) -> Result<bool, Refusal> {
    let Subject::Resource(Some(RawText { text: Some(named), .. })) = &request.subject else {
        return Err(request.unreadable("`params.uri` must be a string"));
    };
    let uri = own.unwrap_or(named);
    let followed = session.server_subscriptions().unfollow(link.server().name(), uri);
    Ok(followed && !link.others_follow(session.key(), uri))
}

/// Answers a request about a task that its grant does not own. The policy decides the method first.
pub fn refuse_task(
    session: &Arc<impl Agent>,
    server: &str,
    request: &CallRequest<'_>,
    refusal: Refusal,
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    let context = describe(session, server, request, None, |_| Class::Other)?;
    let admission = Arc::clone(session.admission());
    let reply = Reply::new(buffer, request.id, AnswerKind::of(request.method));
    Ok(contained(async move || {
        match admission.unroutable(&context, "unknown_task", &refusal.message).await {
            Ok(()) => {
                let error = write::error(Some(reply.id()), refusal.code, &refusal.message, None);
                reply.answer(error);
            }
            Err(refused) => reply.refuse(&refused),
        }
    }))
}

/// Checks what a client of protocol 2026-07-28 repeats in headers; the headers, if they can be
/// checked only once the server has listed its tools.
fn check_client(
    link: &Link,
    context: &CallContext,
    heads: &Heads,
) -> Result<Option<Heads>, Refusal> {
    check_heads(link, context, heads)?;
    let is_known = link.server().annotations.is_whole() || heads.is_empty();
    Ok((!is_known && matches!(context.subject, CallSubject::Tool(..))).then(|| heads.clone()))
}

/// Rejects headers that contradict the arguments, whatever protocol the server speaks. The headers
/// themselves are never forwarded (`link/sessionless.rs`).
fn check_heads(link: &Link, context: &CallContext, heads: &Heads) -> Result<(), Refusal> {
    let CallSubject::Tool(tool, _) = &context.subject else { return Ok(()) };
    let header = |name: &str| {
        let is_it = |head: &str| head.strip_prefix(PREFIX).is_some_and(|head| head == name);
        heads.iter().find(|(head, _)| is_it(head)).map(|(_, value)| value.as_str())
    };
    for one in link.server().annotations.of(tool).iter().flat_map(|known| known.iter()) {
        one.check(&context.arguments, header).map_err(|objection| Refusal {
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
    /// Headers that repeat arguments of a tool that its server has not listed yet.
    unchecked: Option<Heads>,
    /// The task it is about, if the call that created the task waits for its result.
    task: Option<Task>,
    agent: HeldAgent,
    /// Set once the definition of the tool was judged.
    usable: Option<Usable>,
}

/// A task that a request is about.
struct Task {
    server: Arc<str>,
    /// The server's own id.
    own: String,
    /// The grant and the agent session that ask.
    requester: (Arc<str>, u64),
}

impl<S: Agent> ToServer<S> {
    /// Why the tool is quarantined, if its list is current and nothing else refuses the call.
    fn known_quarantine(&mut self, admission: &Admission, context: &CallContext) -> Option<Reason> {
        let CallSubject::Tool(tool, _) = &context.subject else { return None };
        let reason = self.link.check_known(tool, &mut self.usable).err()?;
        (!admission.refuses_name(context)).then_some(reason)
    }

    /// The call with the fingerprint that the definition of its tool has now.
    fn with_fingerprint(&self, context: &Arc<CallContext>) -> Arc<CallContext> {
        let CallSubject::Tool(tool, _) = &context.subject else { return Arc::clone(context) };
        let fingerprint = self.link.fingerprint(tool);
        if fingerprint == context.fingerprint {
            return Arc::clone(context);
        }
        let mut renewed = CallContext::clone(context);
        renewed.fingerprint = fingerprint;
        Arc::new(renewed)
    }

    /// Stops a call whose name imitates another, one of a quarantined tool, and one that could create
    /// a task too many.
    async fn prepare(
        mut self,
        admission: Arc<Admission>,
        mut context: Arc<CallContext>,
    ) -> Option<(Self, Arc<CallContext>)> {
        // An approval is bound to the definition, so that must be known before the call is held:
        // the same call would not find the approval once the server has listed its tools.
        if context.fingerprint.is_none() && !self.link.knows_its_tools() && context.may_be_held() {
            self.link.learn_tools_or_not().await;
            context = self.with_fingerprint(&context);
        }
        let refused = if is_imitation(&admission, &self.link, &context).await {
            let name = Arc::clone(context.subject.name().0);
            admission.unknown(CallContext::clone(&context), &name).await
        } else if let Some(reason) = self.known_quarantine(&admission, &context) {
            let (tool, _) = context.subject.name();
            let refused = self.link.refused_tool(context.call_id, tool, &reason);
            admission.quarantined(&context, refused).await
        } else if matches!(context.subject, CallSubject::Tool(..))
            && admission.tasks.is_full(&context.sender.grant.label)
        {
            admission.too_many_tasks(&context).await
        } else {
            return Some((self, context));
        };
        self.pending.refuse(&refused);
        None
    }
}

impl<S: Agent> HeldCaller for ToServer<S> {
    fn hold_progress(&self, waited: Duration, total: Duration, approval: &str) {
        self.agent.progress(waited, total, approval);
    }

    async fn agent_gone(&mut self) {
        tokio::select! {
            () = self.agent.left() => {}
            () = self.pending.ended_early() => {}
        }
    }

    fn ask_user(&self, params: &str) -> Option<UserQuestion> {
        self.agent.ask_user(params)
    }
}

impl<S: Agent> Delivery for ToServer<S> {
    async fn renewed(
        &mut self,
        admission: &Admission,
        context: &Arc<CallContext>,
    ) -> Result<Arc<CallContext>, Refused> {
        let context = self.with_fingerprint(context);
        if let Some(reason) = self.known_quarantine(admission, &context) {
            let (tool, _) = context.subject.name();
            let refused = self.link.refused_tool(context.call_id, tool, &reason);
            return Err(admission.quarantined(&context, refused).await);
        }
        Ok(context)
    }

    fn refuse(self, refused: &Refused) {
        self.pending.refuse(refused);
    }

    async fn send(self, sending: Sending<'_>) -> Ended {
        let Self { session, link, pending, unchecked, task, agent: _, usable } = self;
        let Sending { admission, context, permit, recheck } = sending;
        if let (method::RESOURCES_SUBSCRIBE, CallSubject::Resource(uri)) =
            (&*context.method, &context.subject)
        {
            session.server_subscriptions().follow(&context.server, uri);
        }
        // The call runs to its end without its agent session.
        drop(session);
        if let Some(heads) = unchecked {
            link.learn_tools_or_not().await;
            if let Err(refusal) = check_heads(&link, context, &heads) {
                pending.object(&refusal);
                return Ended::new(Outcome::Unavailable, Effect::NotStarted);
            }
        }
        let validates = link.server().settings.validate;
        let called = match &context.subject {
            CallSubject::Tool(tool, _) => Some(CalledTool {
                tool: Arc::clone(tool),
                grant: Arc::clone(&context.sender.grant.label),
                arguments: validates.then(|| context.arguments.as_str().into()),
                usable,
            }),
            _ => None,
        };
        let pending = pending.with_recheck(Arc::new(recheck), called);
        let ended = pending.run(Clearance::Permit(permit)).await;
        if let (Some(task), Some(held)) = (&task, &ended.withheld) {
            let is_result = &*context.method == method::TASKS_RESULT;
            task.record(admission, &held.result, is_result).await;
        }
        ended
    }
}

impl Task {
    /// The task `own` of a server, if the call that created it waits for its result.
    fn watched(session: &impl Agent, link: &Link, own: &str) -> Option<Self> {
        let (server, label) = (link.server().name(), Arc::clone(&session.grant().label));
        let is_watched = session.admission().tasks.is_watched(&label, server, own);
        let requester = (label, session.key());
        is_watched.then(|| Self { server: server.into(), own: own.to_owned(), requester })
    }

    /// The call that created a task is recorded before the agent receives the task's result.
    async fn record(&self, admission: &Admission, result: &str, is_result: bool) {
        let Self { server, own, requester: (label, key) } = self;
        let Some(mut update) = TaskUpdate::of_answer(own, result, is_result) else { return };
        let (tell, mut recorded) = mpsc::channel(1);
        update.recorded = Some(tell);
        let ends = update.result.is_some();
        admission.task_updated((label, *key), server, own, &update);
        drop(update);
        // Nothing is ever sent: the channel closes when the last receiver of `update` drops it.
        if ends && timeout(STORE_TIMEOUT, recorded.recv()).await.is_err() {
            tracing::error!("end of a task not recorded in time");
        }
    }
}
