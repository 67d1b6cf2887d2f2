//! The path of one call to a session: its session is selected, then it takes the pipeline of every
//! call (`admission/src/pipeline.rs`).
//!
//! Invariant: a call without a session is answered and recorded like a denial. The policy decides its
//! name first, so that the answer does not reveal what exists.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolgate_admission::admit::Admission;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::call_context::{CallContext, CallSubject, CalledSession};
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::contained::Work;
use toolgate_admission::describe::describe;
use toolgate_admission::ended::{Ended, Withheld};
use toolgate_admission::holds::HeldCaller;
use toolgate_admission::pipeline::{self, Delivery, Sending};
use toolgate_admission::refused::Refused;
use toolgate_admission::reserved::SESSIONS;
use toolgate_admission::user_question::UserQuestion;
use toolgate_audit::{CallId, Effect, Outcome};
use toolgate_mcp::{Refusal, write};
use toolgate_session::{self as session, CallAnswer, CallTarget, KnownSessionTool, SessionFailure};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::held_agent::HeldAgent;
use toolgate_upstream::link::Agent;
use toolgate_upstream::reply::Reply;

use super::running_calls::RunningCall;
use super::{DialIn, Gate, RunningCalls, Sending as ToDriver, Unresolved};

/// A call to a session's tool, before its session is selected.
struct SessionCall {
    /// The calls that the agent can cancel.
    running: Arc<RunningCalls>,
    dial_in: Arc<DialIn>,
    /// The name that was called.
    shown: String,
    /// Whether the request has arguments; otherwise an empty object is decided.
    has_arguments: bool,
    reply: Reply,
    agent: HeldAgent,
}

/// The delivery of a call to a session.
struct ToSession {
    call: SessionCall,
    target: CallTarget,
    /// Whether the arguments were checked against the tool's schema.
    is_checked: bool,
    /// Cancels it.
    running_call: RunningCall,
}

/// Starts a call of the tool that the grant knows as `shown`.
pub(crate) fn start(
    (session, running): (&Arc<impl Agent>, &Arc<RunningCalls>),
    dial_in: &Arc<DialIn>,
    request: CallRequest<'_>,
    (shown, known): (&str, KnownSessionTool),
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    let has_arguments = request.arguments.is_some_and(|raw| raw != "null");
    let class = dial_in.class(&known);
    let KnownSessionTool { original, aliases, .. } = known;
    let mut context = describe(session, SESSIONS, &request, Some(&original), |_| class)?;
    context.aliases = aliases;
    let reply = Reply::new(buffer, request.id, AnswerKind::ToolResult);
    let call = SessionCall {
        running: Arc::clone(running),
        dial_in: Arc::clone(dial_in),
        shown: shown.to_owned(),
        has_arguments,
        reply: reply.with_call_id(Some(context.call_id)),
        agent: HeldAgent::new(session, buffer, request.progress_token),
    };
    let rounds = request.rounds.map(|rounds| rounds.rounds);
    Ok(pipeline::run(session.admission(), context, rounds, |admission, context| {
        call.prepare(admission, context)
    }))
}

impl SessionCall {
    /// Selects the session. A call that the policy would allow, as far as that is known without
    /// counters, is checked against the tool's schema before it is counted; a call that the policy
    /// refuses is not checked.
    async fn prepare(
        self,
        admission: Arc<Admission>,
        mut context: Arc<CallContext>,
    ) -> Option<(ToSession, Arc<CallContext>)> {
        let reach = &context.sender.grant.sessions;
        let target = match self.dial_in.driver.resolve(&self.shown, self.arguments(&context), reach)
        {
            Ok(target) => target,
            Err(unresolved) => {
                self.fail(&admission, &context, &unresolved).await;
                return None;
            }
        };
        if let Err(refused) = self.aim(&admission, &mut context, &target).await {
            self.reply.refuse(&refused);
            return None;
        }
        let is_checked = admission.would_admit(&context);
        if is_checked && let Err(failure) = self.check(&context, &target).await {
            let has_output_schema = target.tool.has_output_schema();
            let unresolved = Unresolved { failure, has_output_schema };
            self.fail(&admission, &context, &unresolved).await;
            return None;
        }
        let running_call = self.running.enter(self.reply.id());
        Some((ToSession { call: self, target, is_checked, running_call }, context))
    }

    /// Describes the call as one to this session; refuses it if the tool is quarantined.
    async fn aim(
        &self,
        admission: &Admission,
        context: &mut Arc<CallContext>,
        target: &CallTarget,
    ) -> Result<(), Refused> {
        let called = Arc::make_mut(context);
        called.session = Some(CalledSession::of(target));
        called.fingerprint = self.dial_in.facts(&target.tool).fingerprint;
        if let CallSubject::Tool(_, class) = &mut called.subject {
            *class = self.dial_in.class_of_kind(&target.kind, &target.tool);
        }
        if let Some(reason) = self.dial_in.quarantine(&target.kind, &target.tool)
            && !admission.refuses_name(context)
        {
            let (call_id, tool) = (context.call_id, &target.tool.name);
            let refused = Refused::quarantined(call_id, SESSIONS, tool, &reason.to_string());
            return Err(admission.quarantined(context, refused).await);
        }
        Ok(())
    }

    /// The raw arguments, if there are any.
    fn arguments<'w>(&self, context: &'w CallContext) -> Option<&'w str> {
        self.has_arguments.then_some(&*context.arguments)
    }

    async fn check(
        &self,
        context: &CallContext,
        target: &CallTarget,
    ) -> Result<(), SessionFailure> {
        self.dial_in.schemas.check(&context.sender.grant.label, target, &context.arguments).await
    }

    async fn fail(self, admission: &Admission, context: &CallContext, unresolved: &Unresolved) {
        let Unresolved { failure, has_output_schema } = unresolved;
        let recorded = admission.unroutable(context, failure.error_code(), &failure.text()).await;
        self.dial_in.metrics.unavailable.inc();
        match recorded {
            Ok(()) => {
                self.reply.result(&failure_result(failure, *has_output_schema, context.call_id));
            }
            Err(refused) => self.reply.refuse(&refused),
        }
    }
}

impl HeldCaller for ToSession {
    fn hold_progress(&self, waited: Duration, total: Duration, approval: &str) {
        self.call.agent.progress(waited, total, approval);
    }

    async fn agent_gone(&mut self) {
        tokio::select! {
            () = self.call.agent.left() => {}
            () = self.running_call.cancelled.cancelled() => {}
        }
    }

    fn ask_user(&self, params: &str) -> Option<UserQuestion> {
        self.call.agent.ask_user(params)
    }
}

impl Delivery for ToSession {
    /// Selects the session again: it may be gone, or have defined its tool anew.
    async fn renewed(
        &mut self,
        admission: &Admission,
        context: &Arc<CallContext>,
    ) -> Result<Arc<CallContext>, Refused> {
        let mut context = Arc::clone(context);
        let (call, reach) = (&self.call, &context.sender.grant.sessions);
        let resolved = call.dial_in.driver.resolve(&call.shown, call.arguments(&context), reach);
        match resolved {
            Ok(target) => {
                call.aim(admission, &mut context, &target).await?;
                (self.target, self.is_checked) = (target, false);
                Ok(context)
            }
            Err(Unresolved { failure, .. }) => {
                let (code, text) = (failure.error_code(), failure.text());
                Err(admission.no_longer_routable(&context, code, &text).await)
            }
        }
    }

    fn refuse(self, refused: &Refused) {
        self.call.reply.refuse(refused);
    }

    async fn send(self, Sending { context, permit, recheck, .. }: Sending<'_>) -> Ended {
        let Self { call, target, is_checked, running_call } = self;
        let has_output_schema = target.tool.has_output_schema();
        // Only if grants or policies have changed since the preparation.
        let unfit = if is_checked { None } else { call.check(context, &target).await.err() };
        let (mut ended, result) = if running_call.cancelled.is_cancelled() {
            (Ended::cancelled(Effect::NotStarted), None)
        } else if let Some(failure) = unfit {
            ended_by(Err(failure), has_output_schema, context.call_id)
        } else {
            let gate = Arc::new(Gate::new(recheck));
            let sending = ToDriver::new(target, permit, Arc::clone(&gate));
            let answer = wait(&call.dial_in, sending, &running_call.cancelled).await;
            match gate.refused().filter(|_| was_not_sent(&answer)) {
                Some(refused) => {
                    (Ended::refused(&refused, false), Some(refused.result().to_string()))
                }
                None => ended_by(answer, has_output_schema, context.call_id),
            }
        };
        drop(running_call);
        count(&call.dial_in, ended.outcome);
        let reply = call.reply;
        match result {
            None => reply.skip_answer(),
            Some(result) if ended.effect == Effect::Done && context.watches_result() => {
                let answer = write::result(reply.id(), &result);
                ended.withheld = Some(Withheld::new(result, || reply.answer(answer)));
            }
            Some(result) => reply.result(&result),
        }
        ended
    }
}

/// Sends the call and waits. A cancelled call still ends.
async fn wait(
    dial_in: &DialIn,
    sending: ToDriver,
    cancelled: &tokio_util::sync::CancellationToken,
) -> Result<CallAnswer, SessionFailure> {
    let mut sent = dial_in.driver.call(sending)?;
    let gone = || SessionFailure::Cancelled { effect: session::Effect::Unknown };
    tokio::select! {
        biased;
        answer = &mut sent.answer => return answer.map_err(|_| gone()),
        () = cancelled.cancelled() => dial_in.driver.cancel(sent.call),
    }
    sent.answer.await.map_err(|_| gone())
}

/// Whether the session has received nothing of the call.
fn was_not_sent(answer: &Result<CallAnswer, SessionFailure>) -> bool {
    let failure = match answer {
        Ok(answer) => answer.result.as_ref().err(),
        Err(failure) => Some(failure),
    };
    failure.is_some_and(|failure| failure.effect() == session::Effect::NotStarted)
}

/// The tool result of a failure, with the id of the call.
fn failure_result(failure: &SessionFailure, has_output_schema: bool, call_id: CallId) -> String {
    let mut result = failure.result(has_output_schema);
    if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.insert("call_id".to_owned(), call_id.to_string().into());
    }
    result.to_string()
}

/// How a call ended, and its raw result; no result if the agent has cancelled it.
fn ended_by(
    answer: Result<CallAnswer, SessionFailure>,
    has_output_schema: bool,
    call_id: CallId,
) -> (Ended, Option<String>) {
    let (result, cancelled) = match answer {
        Ok(answer) => (answer.result, answer.cancelled),
        Err(failure) => (Err(failure), false),
    };
    let failure = match result {
        Ok(result) => {
            let outcome = if result.is_error { Outcome::ToolError } else { Outcome::Ok };
            return (Ended::new(outcome, Effect::Done), Some(result.json));
        }
        Err(failure) => failure,
    };
    let effect = match failure.effect() {
        session::Effect::NotStarted => Effect::NotStarted,
        session::Effect::Unknown => Effect::Unknown,
    };
    if cancelled || matches!(failure, SessionFailure::Cancelled { .. }) {
        return (Ended::cancelled(effect), None);
    }
    let outcome = match failure {
        SessionFailure::Timeout { .. } => Outcome::Timeout,
        _ if effect == Effect::NotStarted => Outcome::Unavailable,
        _ => Outcome::Unknown,
    };
    let ended = Ended { code: Some(failure.error_code()), ..Ended::new(outcome, effect) };
    (ended, Some(failure_result(&failure, has_output_schema, call_id)))
}

fn count(dial_in: &DialIn, outcome: Outcome) {
    let metrics = &dial_in.metrics;
    match outcome {
        Outcome::Timeout => metrics.timeout.inc(),
        Outcome::Cancelled => metrics.cancelled.inc(),
        Outcome::Unavailable => metrics.unavailable.inc(),
        Outcome::Unknown => metrics.lost.inc(),
        _ => metrics.answered.inc(),
    };
}
