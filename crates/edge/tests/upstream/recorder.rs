//! An inbox that writes down what it hears.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use toolgate_gateway::channel::{Inbox, Outbound, Progress};

/// What an inbox received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Message(String),
    Paused(Option<Duration>),
    Closed(String),
}

/// The reading end of an inbox.
pub(crate) struct Record(mpsc::UnboundedReceiver<Received>);

struct Recorder(mpsc::UnboundedSender<Received>);

/// An inbox that takes every message with a `result` or an `error` for the answer.
pub(crate) fn recorder() -> (Arc<dyn Inbox>, Record) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Arc::new(Recorder(sender)), Record(receiver))
}

impl Record {
    /// The next thing; `None` when nobody can speak any more.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        soon(self.0.recv()).await
    }

    pub(crate) async fn message(&mut self) -> String {
        match self.next().await {
            Some(Received::Message(body)) => body,
            other => panic!("expected a message, received {other:?}"),
        }
    }

    pub(crate) async fn closed(&mut self) -> String {
        match self.next().await {
            Some(Received::Closed(why)) => why,
            other => panic!("expected the end, received {other:?}"),
        }
    }

    /// What is there now, without waiting.
    pub(crate) fn now(&mut self) -> Vec<Received> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

impl Inbox for Recorder {
    fn message(&self, body: Bytes) -> Progress {
        let text = String::from_utf8(body.to_vec()).unwrap();
        let answer = text.contains("\"result\"") || text.contains("\"error\"");
        self.hear(Received::Message(text));
        if answer { Progress::Answered } else { Progress::Expecting }
    }

    fn paused(&self, retry: Option<Duration>) {
        self.hear(Received::Paused(retry));
    }

    fn closed(&self, why: &str) {
        self.hear(Received::Closed(why.to_owned()));
    }
}

impl Recorder {
    fn hear(&self, received: Received) {
        // A test that is over does not listen any more.
        drop(self.0.send(received));
    }
}

pub(crate) fn message(body: &str) -> Outbound {
    let body = Bytes::copy_from_slice(body.as_bytes());
    Outbound::closed(body.clone()).unwrap_or_else(|_| Outbound::of_agent(body, true))
}

pub(crate) fn notification(body: &str) -> Outbound {
    Outbound::of_agent(Bytes::copy_from_slice(body.as_bytes()), false)
}

/// Waits; a minute without result is a failure, not a measurement.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_mins(1), future).await.unwrap()
}
