//! The events of one request, as an agent sees them.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use toolgate_gateway::event_buffer::{Begun, First, Next, Rejection};
use toolgate_gateway::{AgentSession, Attached, Call, RelayReader, Truncated};

const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// The events of one request.
pub(crate) struct Reply {
    events: mpsc::UnboundedReceiver<Seen>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The answer, and nothing but it, with its HTTP status.
    Body(String, u16),
    /// A message of a stream.
    Event(String),
    Pause(Option<Duration>),
    /// An answer of so many bytes begins; its pieces; that it breaks off.
    Begun(usize),
    Piece(String),
    Truncated,
}

/// The HTTP status that the edge would choose.
pub(crate) fn status(rejection: Option<Rejection>) -> u16 {
    match rejection {
        None => 200,
        Some(Rejection::InvalidRequest) => 400,
        Some(Rejection::UnknownMethod) => 404,
    }
}

impl Reply {
    /// Reads a call as the edge does: one body if it comes soon, else a stream.
    pub(crate) fn of(session: &Arc<AgentSession>, mut call: Call) -> Self {
        let session = Arc::clone(session);
        Self::reading(|events| async move {
            match call.begun().await {
                Begun::All(First::Answer(body, rejection)) => {
                    drop(events.send(Seen::Body(string(&body.into_bytes()), status(rejection))));
                }
                Begun::All(First::Stream) => {
                    let attached = session.stream(&call);
                    drop(call);
                    read(attached, events).await;
                }
                Begun::Relaying(relay_reader) => {
                    drop(call);
                    pass(relay_reader, events).await;
                }
            }
        })
    }

    pub(crate) fn reading<F, W>(work: F) -> Self
    where
        F: FnOnce(mpsc::UnboundedSender<Seen>) -> W,
        W: Future<Output = ()> + Send + 'static,
    {
        let (events, seen) = mpsc::unbounded_channel();
        tokio::spawn(work(events));
        Self { events: seen }
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Seen> {
        timeout(FOR_EVER, self.events.recv()).await.expect("no event")
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> String {
        match self.next().await {
            Some(Seen::Body(body, _) | Seen::Event(body)) => body,
            other => panic!("no message but {other:?}"),
        }
    }

    /// All events up to the end.
    pub(crate) async fn all(mut self) -> Vec<Seen> {
        let mut all = Vec::new();
        while let Some(seen) = self.next().await {
            all.push(seen);
        }
        all
    }

    /// The answer, if there is no other event.
    pub(crate) async fn answer(self) -> String {
        let all = self.all().await;
        match all.as_slice() {
            [Seen::Body(body, 200) | Seen::Event(body)] => body.clone(),
            other => panic!("not one answer but {other:?}"),
        }
    }

    /// The events so far, once the gateway is idle.
    pub(crate) async fn so_far(&mut self) -> Vec<String> {
        crate::script::settle().await;
        let seen = std::iter::from_fn(|| self.events.try_recv().ok());
        seen.map(|seen| match seen {
            Seen::Body(body, _) | Seen::Event(body) => body,
            Seen::Pause(_) => "paused".to_owned(),
            Seen::Begun(_) => "begun".to_owned(),
            Seen::Piece(piece) => piece,
            Seen::Truncated => "broken off".to_owned(),
        })
        .collect()
    }
}

async fn pass(mut relay_reader: RelayReader, events: mpsc::UnboundedSender<Seen>) {
    let announced = relay_reader.left();
    drop(events.send(Seen::Begun(announced)));
    loop {
        let seen = tokio::select! {
            next = poll_fn(|context| relay_reader.poll_next(context)) => match next {
                Some(Ok(piece)) => Seen::Piece(string(&piece)),
                Some(Err(Truncated)) => Seen::Truncated,
                None => return,
            },
            () = events.closed() => return,
        };
        let over = seen == Seen::Truncated;
        drop(events.send(seen));
        if over {
            return;
        }
    }
}

pub(crate) async fn read(mut attached: Attached, events: mpsc::UnboundedSender<Seen>) {
    loop {
        let seen = tokio::select! {
            next = attached.next() => match next {
                Next::Event(_, body) => Seen::Event(string(&body)),
                Next::Pause(retry) => Seen::Pause(retry),
                Next::Gap => panic!("messages were lost"),
                Next::End => return,
            },
            // The test dropped the reply: the agent has disconnected.
            () = events.closed() => return,
        };
        drop(events.send(seen));
    }
}

pub(crate) fn string(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap()
}
