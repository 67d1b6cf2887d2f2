//! A running request of protocol 2026-07-28, and the stream of its messages.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use toolgate_admission::call_context::Sender;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::multi_round::{ClientRounds, NextRound, Retry};
use toolgate_mcp::{Incoming, Limits, Message, parse_server};
use toolgate_upstream::event_buffer::{First, Next};

use super::ImplicitSession;
use super::input_requests::InputRequest;
use super::listen::Subscription;
use super::parked_calls::{ParkOutcome, park};
use super::shape::Shape;
use crate::downstream::agent::{AgentSession, Attached};
use crate::downstream::call::Call;

/// A running request. Dropping it cancels the request, unless it was answered.
pub struct SessionlessCall {
    call: Call,
    state: CallState,
}

/// The messages of a request. Dropping it cancels the request, unless it was answered or is parked.
pub struct SessionlessStream {
    call: Option<RunningCall>,
    /// The call is being parked; the future returns the message for the client.
    ending: Option<Ending>,
}

type Ending = Pin<Box<dyn Future<Output = ParkOutcome> + Send>>;

/// The state of a request, without its stream.
pub(super) struct CallState {
    pub(super) shape: Shape,
    pub(super) cancel: CancelOnDrop,
    /// Set if its server may require input.
    pub(super) input: Option<InputRounds>,
}

/// A call whose server may require input.
pub(super) struct InputRounds {
    pub(super) rounds: ClientRounds,
    /// What the next round must be bound to.
    pub(super) bound: String,
}

/// A call that is read or parked.
pub(super) struct RunningCall {
    attached: Attached,
    state: CallState,
}

/// Cancels a request if it is dropped before the answer.
pub(super) struct CancelOnDrop {
    implicit: ImplicitSession,
    what: Option<Awaited>,
}

enum Awaited {
    /// The answer to the request of that id.
    Answer(String),
    /// Change notifications.
    Changes(Arc<Subscription>),
    /// An answer of toolgate itself.
    Ours,
}

// === impl SessionlessCall ===

impl SessionlessCall {
    pub(super) fn new(call: Call, state: CallState) -> Self {
        Self { call, state }
    }

    /// Waits briefly for the answer. After that, or if another message comes first, the request is read
    /// as a stream.
    pub async fn first(&mut self) -> First {
        match self.call.first().await {
            First::Answer(body, rejection) => {
                self.state.cancel.satisfied();
                let body = body.into_bytes();
                let sessionless = self.call.buffer().is_sessionless();
                match self.state.shape.show(&body, sessionless) {
                    Some((shown, own)) => First::Answer(shown.into(), own.or(rejection)),
                    None => First::Answer(body.into(), rejection),
                }
            }
            First::Stream => First::Stream,
        }
    }

    /// Reads it as a stream.
    pub fn stream(self) -> SessionlessStream {
        let Self { call, state } = self;
        let attached = state.cancel.implicit.session.follow(&call);
        SessionlessStream::of(RunningCall { attached, state })
    }
}

// === impl SessionlessStream ===

impl SessionlessStream {
    pub(super) fn of(call: RunningCall) -> Self {
        Self { call: Some(call), ending: None }
    }

    /// The next message; `None` at the end. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(ending) = &mut self.ending {
                let asked = ending.await;
                self.ending = None;
                match asked {
                    ParkOutcome::Parked(message) => return message,
                    ParkOutcome::Ended(call) => self.call = Some(*call),
                }
            }
            let call = self.call.as_mut()?;
            match call.attached.next().await {
                Next::Event(_, body) => {
                    let sessionless = call.attached.reader.is_sessionless();
                    let request = sessionless.then(|| InputRequest::of_result(&body)).flatten();
                    if let Some(question) = request.filter(|_| call.state.input.is_some()) {
                        self.park(question);
                        continue;
                    }
                    if let Some((shown, _)) = call.state.shape.show(&body, sessionless) {
                        return Some(shown);
                    }
                    self.receive(&body);
                }
                // This protocol cannot resume a stream, so it stays open.
                Next::Pause(_) => {}
                Next::Gap => {
                    tracing::warn!("agent disconnected: it reads its stream too slowly");
                    return None;
                }
                Next::End => {
                    call.state.cancel.satisfied();
                    return None;
                }
            }
        }
    }

    /// Parks the call: the server ended the request with `input_required`.
    fn park(&mut self, question: InputRequest) {
        if let Some(call) = self.call.take() {
            self.ending = Some(Box::pin(park(call, question)));
        }
    }

    /// A request of a sessionful server parks the call, if input is allowed; otherwise the server
    /// receives an error. Other messages are not for the client.
    fn receive(&mut self, body: &Bytes) {
        let Ok(Incoming::One(Message::Request(request))) = parse_server(body, &Limits::default())
        else {
            return;
        };
        let Some(call) = self.call.take() else { return };
        let question = InputRequest::of(call.session(), &request);
        if call.state.input.is_some() {
            self.ending = Some(Box::pin(park(call, question)));
        } else {
            drop(question);
            self.call = Some(call);
        }
    }
}

// === impl RunningCall ===

impl RunningCall {
    pub(super) fn session(&self) -> &Arc<AgentSession> {
        &self.implicit().session
    }

    pub(super) fn implicit(&self) -> &ImplicitSession {
        &self.state.cancel.implicit
    }

    /// What the next round must be bound to.
    pub(super) fn bound(&self) -> &str {
        self.state.input.as_ref().map_or("", |input| &input.bound)
    }

    /// The id of the request, as the client spelled it.
    pub(super) fn id(&self) -> &str {
        self.state.shape.id()
    }

    /// Continues with the next round: answer and progress belong to its request.
    pub(super) fn set_round(&mut self, request: &CallRequest<'_>) {
        self.state.shape.next_round(request);
    }

    /// Ends the round; false if the call has ended.
    pub(super) async fn end_round(&self) -> bool {
        match &self.state.input {
            Some(input) => input.rounds.end_round().await,
            None => false,
        }
    }

    /// Whether its answer is in its stream already.
    pub(super) fn has_ended(&self) -> bool {
        self.attached.reader.has_ended()
    }

    /// Sends the client's next request to the server.
    pub(super) fn retry(&self, retry: Retry) {
        if let Some(input) = &self.state.input {
            input.rounds.retry(retry);
        }
    }

    /// Has the next round decided; `None` if the call has ended.
    pub(super) async fn next_round(&self, sender: Sender) -> Option<NextRound> {
        self.state.input.as_ref()?.rounds.next_round(sender).await
    }
}

// === impl CancelOnDrop ===

impl CancelOnDrop {
    pub(super) fn answer(implicit: &ImplicitSession, id: String) -> Self {
        Self { implicit: implicit.clone(), what: Some(Awaited::Answer(id)) }
    }

    pub(super) fn changes(implicit: &ImplicitSession, subscription: Arc<Subscription>) -> Self {
        Self { implicit: implicit.clone(), what: Some(Awaited::Changes(subscription)) }
    }

    pub(super) fn ours(implicit: &ImplicitSession) -> Self {
        Self { implicit: implicit.clone(), what: Some(Awaited::Ours) }
    }

    fn satisfied(&mut self) {
        if let Some(Awaited::Answer(_)) = self.what {
            self.what = None;
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        match self.what.take() {
            Some(Awaited::Answer(id)) => self.implicit.session.abandon(&id),
            Some(Awaited::Changes(subscription)) => subscription.end(&self.implicit),
            Some(Awaited::Ours) | None => {}
        }
    }
}
