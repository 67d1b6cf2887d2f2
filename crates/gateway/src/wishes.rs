//! Wishes: what an agent asked of servers that they forget when they are lost.
//!
//! Invariant: at most [`MAX_SUBSCRIPTIONS`] subscriptions are remembered, and only such as were
//! admitted.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use toolgate_mcp::{Request, method, peek, text};

use crate::modern::Level;

/// How many subscriptions of one agent session are remembered.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// What one agent wants to hear.
#[derive(Default)]
pub(crate) struct Wishes(Mutex<State>);

#[derive(Default)]
struct State {
    /// Servers and the URIs of their resources, as the servers know them.
    subscriptions: BTreeSet<(String, String)>,
    /// The level of the last `logging/setLevel`, and nothing else of it.
    level: Option<Level>,
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
                let named = request.params.and_then(|params| peek(params, &["level"]).ok()?);
                if let Some(level) = named.and_then(text).and_then(|level| Level::parse(&level)) {
                    self.0.lock().level = Some(level);
                }
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
    pub(crate) fn level(&self) -> Option<&'static str> {
        self.0.lock().level.map(Level::as_str)
    }

    /// The resources of a server that the agent wants to hear of.
    pub(crate) fn followed(&self, server: &str) -> Vec<String> {
        let state = self.0.lock();
        let its = state.subscriptions.iter().filter(|(whose, _)| whose == server);
        its.map(|(_, uri)| uri.clone()).collect()
    }
}
