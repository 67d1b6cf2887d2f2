//! The way of one call to a session: found, admitted, sent, recorded.
//!
//! Invariant: a call that goes nowhere is answered and written down like a denial, and the policy
//! has the first word on its name, so that the answer does not tell what there is.
//! Invariant: an admitted call runs to its outcome row, whoever waits for it.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;
use toolgate_admission::admit::{Admission, Called, Wanted, What};
use toolgate_admission::caller::Caller;
use toolgate_admission::expects::Expects;
use toolgate_admission::recheck::Recheck;
use toolgate_admission::refused::Refused;
use toolgate_admission::reserved::SESSIONS;
use toolgate_admission::wanted::wanted;
use toolgate_audit::{CallId, Effect, Outcome};
use toolgate_mcp::{Refusal, Request, peek, write};
use toolgate_session::{self as session, CallAnswer, CallTarget, KnownSessionTool, SessionFailure};
use toolgate_store::Completion;
use toolgate_upstream::event_buffer::Outlet;
use toolgate_upstream::withheld::{Withheld, record_first};
use toolgate_upstream::work::Work;

use super::{Desk, Gate, Running, Sending, Unresolved};

/// A call to a session's tool.
struct SessionCall {
    admission: Arc<Admission>,
    /// Where the agent can take it back.
    running: Arc<Running>,
    desk: Arc<Desk>,
    wanted: Arc<Wanted>,
    /// The name that was called.
    shown: String,
    /// The raw arguments, if there are any.
    arguments: Option<String>,
    /// The agent's id of the request.
    id: String,
    outlet: Arc<Outlet>,
}

/// Starts a call of the tool that the grant knows as `shown`.
pub(crate) fn start(
    (caller, running): (&dyn Caller, &Arc<Running>),
    desk: &Arc<Desk>,
    request: &Request<'_>,
    (shown, known): (&str, KnownSessionTool),
    outlet: &Arc<Outlet>,
) -> Result<Work, Refusal> {
    let arguments = request.params.map(|params| peek(params, &["arguments"])).transpose()?;
    let arguments = arguments.flatten().filter(|raw| *raw != "null").map(str::to_owned);
    let class = desk.class(&known);
    let KnownSessionTool { original, aliases, .. } = known;
    let mut wanted = wanted(caller, SESSIONS, request, Some(&original), |_| class)?;
    wanted.aliases = aliases;
    let call = SessionCall {
        admission: Arc::clone(caller.admission()),
        running: Arc::clone(running),
        desk: Arc::clone(desk),
        wanted: Arc::new(wanted),
        shown: shown.to_owned(),
        arguments,
        id: request.id.to_owned(),
        outlet: Arc::clone(outlet),
    };
    Ok(Box::pin(call.run()))
}

impl SessionCall {
    async fn run(self) {
        let reach = &self.wanted.sender.grant.sessions;
        let resolved = self.desk.sessions.resolve(&self.shown, self.arguments.as_deref(), reach);
        match resolved {
            Ok(target) => self.decide(target).await,
            Err(unresolved) => self.go_nowhere(&unresolved).await,
        }
    }

    /// The policy has the first word. What it lets pass, as far as it can tell without counters,
    /// is checked before it is counted; what it refuses is not worth a check.
    async fn decide(mut self, target: CallTarget) {
        let wanted = Arc::make_mut(&mut self.wanted);
        wanted.session = Some(Called::of(&target));
        if let What::Tool(_, class) = &mut wanted.what {
            *class = self.desk.class_of_kind(&target.kind, &target.tool);
        }
        let admission = Arc::clone(&self.admission);
        let checked = admission.would_admit(&self.wanted);
        if checked && let Err(failure) = self.check(&target).await {
            let has_output_schema = target.tool.has_output_schema();
            return self.go_nowhere(&Unresolved { failure, has_output_schema }).await;
        }
        self.send(target, checked).await;
    }

    async fn check(&self, target: &CallTarget) -> Result<(), SessionFailure> {
        let asked = self.arguments.as_deref().unwrap_or("{}");
        self.desk.schemas.check(&self.wanted.sender.grant.label, target, asked).await
    }

    async fn go_nowhere(self, Unresolved { failure, has_output_schema }: &Unresolved) {
        let admission = &self.admission;
        let written =
            admission.unroutable(&self.wanted, failure.error_code(), &failure.text()).await;
        let answer = match written {
            Ok(()) => {
                let told = told(failure, *has_output_schema, self.wanted.call_id);
                write::result(&self.id, &told)
            }
            Err(refused) => refused.answer(&self.id, Expects::ToolResult),
        };
        self.desk.metrics.unavailable.inc();
        self.outlet.answer(answer, None);
    }

    async fn send(self, target: CallTarget, checked: bool) {
        let began = Instant::now();
        let has_output_schema = target.tool.has_output_schema();
        let admission = Arc::clone(&self.admission);
        let wanted = Arc::clone(&self.wanted);
        let entered = self.running.enter(&self.id);
        let gate = Arc::new(Gate::new(Recheck::of(&admission, &wanted)));
        let (permit, ticket) = match admission.admit(&wanted).await {
            Ok(admitted) => admitted.split(),
            Err(refused) => {
                return self.outlet.answer(refused.answer(&self.id, Expects::ToolResult), None);
            }
        };
        let sent = Instant::now();
        // Only if what is in force has changed since it was asked.
        let unfit = if checked { None } else { self.check(&target).await.err() };
        let ended = if entered.taken_back.is_cancelled() {
            Ended::taken_back()
        } else if let Some(failure) = unfit {
            Ended::of(Err(failure), has_output_schema, wanted.call_id)
        } else {
            let sending = Sending::new(target, permit, Arc::clone(&gate));
            let answer = wait(&self.desk, sending, &entered.taken_back).await;
            match gate.refused().filter(|_| was_not_sent(&answer)) {
                Some(refused) => Ended::refused(&refused),
                None => Ended::of(answer, has_output_schema, wanted.call_id),
            }
        };
        drop(entered);
        let mut ending = Completion::new(ended.outcome, ended.effect, admission.now());
        ending.error_code = ended.code.map(Into::into);
        ending.message.clone_from(&ended.message);
        ending.upstream_ms = u64::try_from(sent.elapsed().as_millis()).ok();
        ending.total_ms = u64::try_from(began.elapsed().as_millis()).ok();
        ended.count(&self.desk);
        let Some(result) = ended.result else {
            self.outlet.forgo();
            return ticket.finish(ending);
        };
        let answer = write::result(&self.id, &result);
        if ended.effect != Effect::Done || !wanted.watches_result() {
            self.outlet.answer(answer, None);
            return ticket.finish(ending);
        }
        ending.ownership = admission.ownership_of(&wanted, &result).await;
        let withheld = Withheld { answer: answer.into(), outlet: self.outlet, result };
        record_first(ticket, ending, withheld).await;
    }
}

/// Sends and waits. A call that is taken back still ends, in its own time.
async fn wait(
    desk: &Desk,
    sending: Sending,
    taken_back: &tokio_util::sync::CancellationToken,
) -> Result<CallAnswer, SessionFailure> {
    let mut sent = desk.sessions.call(sending)?;
    let gone = || SessionFailure::Cancelled { effect: session::Effect::Unknown };
    tokio::select! {
        biased;
        answer = &mut sent.answer => return answer.map_err(|_| gone()),
        () = taken_back.cancelled() => desk.sessions.cancel(sent.call),
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

/// How a call ended: for the record, and for the agent.
struct Ended {
    outcome: Outcome,
    effect: Effect,
    code: Option<&'static str>,
    /// The raw result; none if the agent does not want one any more.
    result: Option<String>,
    /// Why it was not written after all, for the row.
    message: Option<Arc<str>>,
}

impl Ended {
    fn of(
        answer: Result<CallAnswer, SessionFailure>,
        has_output_schema: bool,
        call_id: CallId,
    ) -> Self {
        let (result, cancelled) = match answer {
            Ok(answer) => (answer.result, answer.cancelled),
            Err(failure) => (Err(failure), false),
        };
        let failure = match result {
            Ok(result) => {
                let outcome = if result.is_error { Outcome::ToolError } else { Outcome::Ok };
                let result = Some(result.json);
                return Self { result, ..Self::new(outcome, Effect::Done) };
            }
            Err(failure) => failure,
        };
        let effect = match failure.effect() {
            session::Effect::NotStarted => Effect::NotStarted,
            session::Effect::Unknown => Effect::Unknown,
        };
        if cancelled || matches!(failure, SessionFailure::Cancelled { .. }) {
            return Self::new(Outcome::Cancelled, effect);
        }
        let outcome = match failure {
            SessionFailure::Timeout { .. } => Outcome::Timeout,
            _ if effect == Effect::NotStarted => Outcome::Unavailable,
            _ => Outcome::Unknown,
        };
        let result = Some(told(&failure, has_output_schema, call_id));
        Self { code: Some(failure.error_code()), result, ..Self::new(outcome, effect) }
    }

    /// The agent took it back before it was sent.
    fn taken_back() -> Self {
        Self::new(Outcome::Cancelled, Effect::NotStarted)
    }

    /// It is not allowed any more, and nothing of it was written.
    fn refused(refused: &Refused) -> Self {
        Self {
            code: Some(refused.code()),
            result: Some(refused.result().to_string()),
            message: Some(refused.said().into()),
            ..Self::new(Outcome::Unavailable, Effect::NotStarted)
        }
    }

    fn new(outcome: Outcome, effect: Effect) -> Self {
        Self { outcome, effect, code: None, result: None, message: None }
    }

    fn count(&self, desk: &Desk) {
        let metrics = &desk.metrics;
        match self.outcome {
            Outcome::Timeout => metrics.timeout.inc(),
            Outcome::Cancelled => metrics.cancelled.inc(),
            Outcome::Unavailable => metrics.unavailable.inc(),
            Outcome::Unknown => metrics.lost.inc(),
            _ => metrics.answered.inc(),
        };
    }
}
