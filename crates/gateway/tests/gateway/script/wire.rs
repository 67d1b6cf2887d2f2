//! One channel of a scripted server, from the side of the gateway.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolgate_gateway::channel::{BoxFuture, Channel, Inbox, Outbound, SendError};
use toolgate_json::text;
use toolgate_mcp::method;

use super::{Kind, Sent};

pub(super) struct Wire {
    pub(super) kind: Kind,
    pub(super) welcome: Option<String>,
    pub(super) discover: Option<String>,
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) sent: mpsc::UnboundedSender<Sent>,
    pub(super) log: Mutex<Vec<String>>,
    pub(super) refusals: Mutex<VecDeque<SendError>>,
    pub(super) established: Mutex<Option<String>>,
    pub(super) listens: AtomicUsize,
    pub(super) dead: AtomicBool,
    pub(super) closing: CancellationToken,
}

impl Wire {
    async fn send(
        self: &Arc<Self>,
        message: Outbound,
        exchange: Arc<dyn Inbox>,
    ) -> Result<(), SendError> {
        crate::gate::watch(&message);
        let body = String::from_utf8(message.body().to_vec()).unwrap();
        if self.dead.load(Ordering::SeqCst) {
            return Err(SendError::NotSent("the script has ended".to_owned()));
        }
        if message.final_check().is_some_and(|check| !check.allows()) {
            return Err(SendError::NoLongerAllowed);
        }
        if let Some(error) = self.refusals.lock().pop_front() {
            return Err(error);
        }
        let (tell, verdict) = oneshot::channel();
        let verdict_of = Mutex::new(Some(tell));
        let heads = message.heads().clone();
        let sent = Sent { body, heads, wire: Arc::clone(self), exchange, verdict: verdict_of };
        let method = sent.part(&["method"]).and_then(text).unwrap_or_default();
        let unknown = || sent.say_error(-32601, "no such method");
        if method == method::DISCOVER && self.discover.is_none() && self.welcome.is_some() {
            // A server of an older protocol; tests look at what comes after.
            unknown();
            return Ok(());
        }
        self.log.lock().push(sent.body.clone());
        match (method.as_ref(), &self.welcome, &self.discover) {
            (method::INITIALIZE, Some(welcome), _) => {
                sent.answer(welcome);
                return Ok(());
            }
            (method::INITIALIZED, Some(_), _) => return Ok(()),
            (method::INITIALIZE, None, Some(_)) => {
                unknown();
                return Ok(());
            }
            // The first one is a probe; whoever asks again wants the test's own answer.
            (method::DISCOVER, _, Some(discover)) if self.log.lock().len() < 3 => {
                sent.answer(discover);
                return Ok(());
            }
            _ => {}
        }
        drop(method);
        // A test that has dropped its line looks at nothing any more.
        drop(self.sent.send(sent));
        if self.kind == Kind::Child && message.expects_answer() {
            // A fast child answers before its writer reports that the request was written.
            for _ in 0..16 {
                tokio::task::yield_now().await;
            }
        }
        if self.kind != Kind::Http || !message.expects_answer() {
            return Ok(());
        }
        let lost = |why: &str| Err(SendError::Lost(why.to_owned()));
        tokio::select! {
            verdict = verdict => verdict.unwrap_or_else(|_| lost("the script gave no answer")),
            () = self.closing.cancelled() => lost("closed before the answer"),
        }
    }

    pub(super) fn die(&self, why: &str) {
        if !self.dead.swap(true, Ordering::SeqCst) {
            self.inbox.closed(why);
        }
    }
}

/// The gateway's channel; it ends when it is dropped.
pub(super) struct Handle(pub(super) Arc<Wire>);

impl Channel for Handle {
    fn send(
        &self,
        message: Outbound,
        exchange: Arc<dyn Inbox>,
    ) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.0.send(message, exchange))
    }

    fn established(&self, version: &str) {
        *self.0.established.lock() = Some(version.to_owned());
    }

    fn exchange_per_request(&self) -> bool {
        self.0.kind == Kind::Http
    }

    fn ends_server(&self) -> bool {
        self.0.kind == Kind::Child
    }

    fn listen(&self) -> BoxFuture<'_, ()> {
        self.0.listens.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.closing.cancel();
        if self.0.kind == Kind::Child {
            self.0.die("the process was ended");
        }
        Box::pin(std::future::ready(()))
    }
}
