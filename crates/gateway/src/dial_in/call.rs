//! The path of one call to a session: found, then through the pipeline of every call
//! (`admission/src/pipeline.rs`).
//!
//! Invariant: a call without a session to go to is answered and recorded like a denial, and the
//! policy has the first word on its name, so that the answer does not reveal what exists.

use std::sync::Arc;

use serde_json::Value;
use toolgate_admission::admit::{Admission, Called, Wanted, What};
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::caller::Caller;
use toolgate_admission::contained::Work;
use toolgate_admission::ended::{Ended, Withheld};
use toolgate_admission::expects::Expects;
use toolgate_admission::pipeline::{self, Delivery, Sending};
use toolgate_admission::refused::Refused;
use toolgate_admission::reserved::SESSIONS;
use toolgate_admission::wanted::wanted;
use toolgate_audit::{CallId, Effect, Outcome};
use toolgate_mcp::{Refusal, write};
use toolgate_session::{self as session, CallAnswer, CallTarget, KnownSessionTool, SessionFailure};
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::reply::Reply;

use super::running::Entered;
use super::{DialIn, Gate, Running, Sending as ToDriver, Unresolved};

/// A call to a session's tool, before its session is found.
struct SessionCall {
    /// Where the agent can take it back.
    running: Arc<Running>,
    dial_in: Arc<DialIn>,
    /// The name that was called.
    shown: String,
    /// Whether the request has arguments; without, it is decided by an empty object.
    has_arguments: bool,
    reply: Reply,
}

/// The delivery of a call to a session.
struct ToSession {
    call: SessionCall,
    target: CallTarget,
    /// Whether the arguments were found to fit the tool's schema.
    is_checked: bool,
    /// Where the agent takes it back.
    entered: Entered,
}

/// Starts a call of the tool that the grant knows as `shown`.
pub(crate) fn start(
    (caller, running): (&dyn Caller, &Arc<Running>),
    dial_in: &Arc<DialIn>,
    request: &CallRequest<'_>,
    (shown, known): (&str, KnownSessionTool),
    buffer: &Arc<EventBuffer>,
) -> Result<Work, Refusal> {
    let has_arguments = request.arguments.is_some_and(|raw| raw != "null");
    let class = dial_in.class(&known);
    let KnownSessionTool { original, aliases, .. } = known;
    let mut wanted = wanted(caller, SESSIONS, request, Some(&original), |_| class)?;
    wanted.aliases = aliases;
    let reply = Reply::new(buffer, request.id, Expects::ToolResult);
    let call = SessionCall {
        running: Arc::clone(running),
        dial_in: Arc::clone(dial_in),
        shown: shown.to_owned(),
        has_arguments,
        reply: reply.with_call_id(Some(wanted.call_id)),
    };
    Ok(pipeline::run(caller.admission(), wanted, None, |admission, wanted| {
        call.prepare(admission, wanted)
    }))
}

impl SessionCall {
    /// Finds the session. The policy has the first word: a call that it would let pass, as far as
    /// that is known without counters, is checked against the tool's schema before it is counted; a
    /// call that it refuses is not checked.
    async fn prepare(
        self,
        admission: Arc<Admission>,
        mut wanted: Arc<Wanted>,
    ) -> Option<(ToSession, Arc<Wanted>)> {
        let reach = &wanted.sender.grant.sessions;
        let target = match self.dial_in.driver.resolve(&self.shown, self.arguments(&wanted), reach)
        {
            Ok(target) => target,
            Err(unresolved) => {
                self.go_nowhere(&admission, &wanted, &unresolved).await;
                return None;
            }
        };
        let called = Arc::make_mut(&mut wanted);
        called.session = Some(Called::of(&target));
        if let What::Tool(_, class) = &mut called.what {
            *class = self.dial_in.class_of_kind(&target.kind, &target.tool);
        }
        let is_checked = admission.would_admit(&wanted);
        if is_checked && let Err(failure) = self.check(&wanted, &target).await {
            let has_output_schema = target.tool.has_output_schema();
            let unresolved = Unresolved { failure, has_output_schema };
            self.go_nowhere(&admission, &wanted, &unresolved).await;
            return None;
        }
        let entered = self.running.enter(self.reply.id());
        Some((ToSession { call: self, target, is_checked, entered }, wanted))
    }

    /// The raw arguments, if there are any.
    fn arguments<'w>(&self, wanted: &'w Wanted) -> Option<&'w str> {
        self.has_arguments.then_some(&*wanted.arguments)
    }

    async fn check(&self, wanted: &Wanted, target: &CallTarget) -> Result<(), SessionFailure> {
        self.dial_in.schemas.check(&wanted.sender.grant.label, target, &wanted.arguments).await
    }

    async fn go_nowhere(self, admission: &Admission, wanted: &Wanted, unresolved: &Unresolved) {
        let Unresolved { failure, has_output_schema } = unresolved;
        let recorded = admission.unroutable(wanted, failure.error_code(), &failure.text()).await;
        self.dial_in.metrics.unavailable.inc();
        match recorded {
            Ok(()) => self.reply.result(&told(failure, *has_output_schema, wanted.call_id)),
            Err(refused) => self.reply.refuse(&refused),
        }
    }
}

impl Delivery for ToSession {
    fn refuse(self, refused: &Refused) {
        self.call.reply.refuse(refused);
    }

    async fn send(self, Sending { wanted, permit, recheck, .. }: Sending<'_>) -> Ended {
        let Self { call, target, is_checked, entered } = self;
        let has_output_schema = target.tool.has_output_schema();
        // Only if what is in force has changed since it was asked.
        let unfit = if is_checked { None } else { call.check(wanted, &target).await.err() };
        let (mut ended, result) = if entered.taken_back.is_cancelled() {
            (Ended::cancelled(Effect::NotStarted), None)
        } else if let Some(failure) = unfit {
            ended_by(Err(failure), has_output_schema, wanted.call_id)
        } else {
            let gate = Arc::new(Gate::new(recheck));
            let sending = ToDriver::new(target, permit, Arc::clone(&gate));
            let answer = wait(&call.dial_in, sending, &entered.taken_back).await;
            match gate.refused().filter(|_| was_not_sent(&answer)) {
                Some(refused) => {
                    (Ended::refused(&refused, false), Some(refused.result().to_string()))
                }
                None => ended_by(answer, has_output_schema, wanted.call_id),
            }
        };
        drop(entered);
        count(&call.dial_in, ended.outcome);
        let reply = call.reply;
        match result {
            None => reply.skip_answer(),
            Some(result) if ended.effect == Effect::Done && wanted.watches_result() => {
                let answer = write::result(reply.id(), &result);
                ended.withheld = Some(Withheld::new(result, || reply.answer(answer)));
            }
            Some(result) => reply.result(&result),
        }
        ended
    }
}

/// Sends and waits. A call that is taken back still ends, in its own time.
async fn wait(
    dial_in: &DialIn,
    sending: ToDriver,
    taken_back: &tokio_util::sync::CancellationToken,
) -> Result<CallAnswer, SessionFailure> {
    let mut sent = dial_in.driver.call(sending)?;
    let gone = || SessionFailure::Cancelled { effect: session::Effect::Unknown };
    tokio::select! {
        biased;
        answer = &mut sent.answer => return answer.map_err(|_| gone()),
        () = taken_back.cancelled() => dial_in.driver.cancel(sent.call),
    }
    sent.answer.await.map_err(|_| gone())
}

/// Whether the session has seen nothing of it.
fn was_not_sent(answer: &Result<CallAnswer, SessionFailure>) -> bool {
    let failure = match answer {
        Ok(answer) => answer.result.as_ref().err(),
        Err(failure) => Some(failure),
    };
    failure.is_some_and(|failure| failure.effect() == session::Effect::NotStarted)
}

/// What the agent is told of a failure; it names the rows that tell of it.
fn told(failure: &SessionFailure, has_output_schema: bool, call_id: CallId) -> String {
    let mut result = failure.result(has_output_schema);
    if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.insert("call_id".to_owned(), call_id.to_string().into());
    }
    result.to_string()
}

/// How a call ended, and its raw result; no result if the agent does not want one any more.
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
    (ended, Some(told(&failure, has_output_schema, call_id)))
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
