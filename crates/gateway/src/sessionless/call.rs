//! A request of protocol 2026-07-28 while it runs, and the stream of what comes of it.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use toolgate_admission::admit::Sender;
use toolgate_admission::multi_round::{Legs, Retry};
use toolgate_admission::refused::Refused;
use toolgate_mcp::{Incoming, Limits, Message, parse_server};
use toolgate_store::Permit;
use toolgate_upstream::event_buffer::{First, Next};

use super::Standing;
use super::listen::Subscription;
use super::parking::{Asked, park};
use super::questions::Question;
use super::shape::Shape;
use crate::downstream::agent::{AgentSession, Attached};
use crate::downstream::call::Call;

/// A request on its way. Dropping it cancels it, unless it was answered.
pub struct ModernCall {
    call: Call,
    calling: Calling,
}

/// What comes of a request, message by message. Dropping it cancels the request, unless it was
/// answered or waits for its client.
pub struct ModernStream {
    going: Option<Going>,
    /// The call is about to wait for its client; this gives the message that says so.
    ending: Option<Ending>,
}

type Ending = Pin<Box<dyn Future<Output = Asked> + Send>>;

/// Everything about a request but where its messages are read.
pub(super) struct Calling {
    pub(super) shape: Shape,
    pub(super) interest: Interest,
    /// If its client may be asked something.
    pub(super) asking: Option<Asking>,
}

/// What is known of a call whose client may be asked something.
pub(super) struct Asking {
    pub(super) legs: Legs,
    /// What a retry must be for.
    pub(super) bound: String,
}

/// A call while its messages are read, or while it waits for its client.
pub(super) struct Going {
    attached: Attached,
    calling: Calling,
}

/// Somebody waits for something; dropped before it came, the server is told.
pub(super) struct Interest {
    standing: Standing,
    what: Option<What>,
}

enum What {
    /// The answer to the request of that id.
    Answer(String),
    /// Whatever there is to tell.
    Changes(Arc<Subscription>),
    /// An answer of ours.
    Ours,
}

// === impl ModernCall ===

impl ModernCall {
    pub(super) fn new(call: Call, calling: Calling) -> Self {
        Self { call, calling }
    }

    /// Waits for the answer, but only a while: then, or when something else comes first, it is to
    /// be read as a stream.
    pub async fn first(&mut self) -> First {
        match self.call.first().await {
            First::Answer(body, rejection) => {
                self.calling.interest.satisfied();
                let body = body.into_bytes();
                let sessionless = self.call.buffer().is_sessionless();
                match self.calling.shape.show(&body, sessionless) {
                    Some((shown, own)) => First::Answer(shown.into(), own.or(rejection)),
                    None => First::Answer(body.into(), rejection),
                }
            }
            First::Stream => First::Stream,
        }
    }

    /// Reads it as a stream.
    pub fn stream(self) -> ModernStream {
        let Self { call, calling } = self;
        let attached = calling.interest.standing.session.follow(&call);
        ModernStream::of(Going { attached, calling })
    }
}

// === impl ModernStream ===

impl ModernStream {
    pub(super) fn of(going: Going) -> Self {
        Self { going: Some(going), ending: None }
    }

    /// The next message; none if there are no more. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(ending) = &mut self.ending {
                let asked = ending.await;
                self.ending = None;
                match asked {
                    Asked::Parked(message) => return message,
                    Asked::Over(going) => self.going = Some(*going),
                }
            }
            let going = self.going.as_mut()?;
            match going.attached.next().await {
                Next::Event(_, body) => {
                    let sessionless = going.attached.reader.is_sessionless();
                    let wish = sessionless.then(|| Question::of_result(&body)).flatten();
                    if let Some(question) = wish.filter(|_| going.calling.asking.is_some()) {
                        self.ask(question);
                        continue;
                    }
                    if let Some((shown, _)) = going.calling.shape.show(&body, sessionless) {
                        return Some(shown);
                    }
                    self.hear(&body);
                }
                // Nobody can come back in this protocol, so we stay for as long as it takes.
                Next::Pause(_) => {}
                Next::Gap => {
                    tracing::warn!("an agent reads its stream too slowly and is disconnected");
                    return None;
                }
                Next::End => {
                    going.calling.interest.satisfied();
                    return None;
                }
            }
        }
    }

    /// The server itself has ended the request with a question.
    fn ask(&mut self, question: Question) {
        if let Some(going) = self.going.take() {
            self.ending = Some(Box::pin(park(going, question)));
        }
    }

    /// A question ends the request, if it may be asked; otherwise the server is told that it may
    /// not. Whatever else it is, it is not for the client.
    fn hear(&mut self, body: &Bytes) {
        let Ok(Incoming::One(Message::Request(request))) = parse_server(body, &Limits::default())
        else {
            return;
        };
        let Some(going) = self.going.take() else { return };
        let question = Question::of(going.session(), &request);
        if going.calling.asking.is_some() {
            self.ending = Some(Box::pin(park(going, question)));
        } else {
            drop(question);
            self.going = Some(going);
        }
    }
}

// === impl Going ===

impl Going {
    pub(super) fn session(&self) -> &Arc<AgentSession> {
        &self.standing().session
    }

    pub(super) fn standing(&self) -> &Standing {
        &self.calling.interest.standing
    }

    /// What a retry must be for.
    pub(super) fn bound(&self) -> &str {
        self.calling.asking.as_ref().map_or("", |asking| &asking.bound)
    }

    /// The id of the request, as the client spelled it.
    pub(super) fn id(&self) -> &str {
        self.calling.shape.id()
    }

    /// It is answered under another id from now on.
    pub(super) fn rename(&mut self, id: &str) {
        self.calling.shape.rename(id);
    }

    /// Its request ends with a question; false if it is over already.
    pub(super) async fn end_leg(&self) -> bool {
        match &self.calling.asking {
            Some(asking) => asking.legs.end().await,
            None => false,
        }
    }

    /// Gives the server the client's next request.
    pub(super) fn retry(&self, retry: Retry) {
        if let Some(asking) = &self.calling.asking {
            asking.legs.retry(retry);
        }
    }

    /// Whether it may go on; none if it is over.
    pub(super) async fn next_leg(&self, sender: Sender) -> Option<Result<Permit, Refused>> {
        self.calling.asking.as_ref()?.legs.go_on(sender).await
    }
}

// === impl Interest ===

impl Interest {
    pub(super) fn answer(standing: &Standing, id: String) -> Self {
        Self { standing: standing.clone(), what: Some(What::Answer(id)) }
    }

    pub(super) fn changes(standing: &Standing, subscription: Arc<Subscription>) -> Self {
        Self { standing: standing.clone(), what: Some(What::Changes(subscription)) }
    }

    pub(super) fn ours(standing: &Standing) -> Self {
        Self { standing: standing.clone(), what: Some(What::Ours) }
    }

    fn satisfied(&mut self) {
        if let Some(What::Answer(_)) = self.what {
            self.what = None;
        }
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        match self.what.take() {
            Some(What::Answer(id)) => self.standing.session.abandon(&id),
            Some(What::Changes(subscription)) => subscription.end(&self.standing),
            Some(What::Ours) | None => {}
        }
    }
}
