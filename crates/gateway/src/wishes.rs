//! Wishes: what an agent asked of servers that they forget when they are lost.
//!
//! Invariant: at most [`MAX_SUBSCRIPTIONS`] subscriptions are remembered, and only such as were
//! admitted.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use toolgate_mcp::{Request, method, peek, text, write};

use crate::offers::Offer;
use crate::server::Server;

/// How many subscriptions of one agent session are remembered.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// What one agent wants to hear.
#[derive(Default)]
pub(crate) struct Wishes(Mutex<State>);

#[derive(Default)]
struct State {
    /// Servers and the URIs of their resources, as the servers know them.
    subscriptions: BTreeSet<(String, String)>,
    /// The `params` of the last `logging/setLevel`.
    level: Option<String>,
}

impl Wishes {
    /// Remembers a subscription that was admitted. `uri` is the server's own.
    pub(crate) fn follow(&self, server: &str, uri: &str) {
        let mut state = self.0.lock();
        if state.subscriptions.len() < MAX_SUBSCRIPTIONS {
            state.subscriptions.insert((server.to_owned(), uri.to_owned()));
        }
    }

    /// Remembers what needs no permit and a server forgets when it is lost: what is no longer
    /// followed (`uri` is the server's own), and the log level.
    pub(crate) fn note(&self, server: &str, request: &Request<'_>, uri: Option<&str>) {
        match request.method.as_ref() {
            method::RESOURCES_UNSUBSCRIBE => {
                if let Some(uri) = uri {
                    let key = (server.to_owned(), uri.to_owned());
                    self.0.lock().subscriptions.remove(&key);
                }
            }
            method::LOGGING_SET_LEVEL => {
                self.0.lock().level = request.params.map(str::to_owned);
            }
            _ => {}
        }
    }

    /// Whether the agent wants to hear of that resource.
    pub(crate) fn subscribed(&self, server: &str, uri: &str) -> bool {
        let key = (server.to_owned(), uri.to_owned());
        self.0.lock().subscriptions.contains(&key)
    }

    /// Which log messages the agent wants.
    pub(crate) fn level(&self) -> Option<String> {
        let state = self.0.lock();
        let level = peek(state.level.as_deref()?, &["level"]).ok()??;
        text(level).map(std::borrow::Cow::into_owned)
    }

    /// What a server that comes up again has to be asked once more, of what may still be followed.
    pub(crate) fn of(
        &self,
        server: &Server,
        offer: &Offer,
        may_follow: impl Fn(&str) -> bool,
    ) -> Vec<(&'static str, String)> {
        let state = self.0.lock();
        let level = state.level.clone().filter(|_| offer.can("logging"));
        let uris = state.subscriptions.iter().filter(|(whose, _)| whose == server.name());
        let uris = uris.filter(|(_, uri)| may_follow(uri)).map(|(_, uri)| {
            (method::RESOURCES_SUBSCRIBE, format!(r#"{{"uri":{}}}"#, write::quote(uri)))
        });
        level.into_iter().map(|level| (method::LOGGING_SET_LEVEL, level)).chain(uris).collect()
    }
}
