//! Subscriptions and log levels of an agent, to renew them after a server was lost.
//!
//! Invariant: at most [`MAX_SUBSCRIPTIONS`] admitted subscriptions are remembered.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use toolgate_admission::call_request::{CallRequest, RawText, Subject};
use toolgate_policy::normal_uri;
use unicode_normalization::UnicodeNormalization;

use crate::log_level::Level;

/// How many subscriptions of one agent session are remembered.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// The subscriptions and the log level of one agent.
#[derive(Default)]
pub struct ServerSubscriptions(Mutex<State>);

#[derive(Default)]
struct State {
    /// Servers and the URIs of their resources, as the servers know them.
    subscriptions: BTreeSet<(String, String)>,
    /// The level of the last `logging/setLevel`.
    level: Option<Level>,
}

impl ServerSubscriptions {
    /// Remembers a subscription that was admitted. `uri` is the server's own.
    pub(crate) fn follow(&self, server: &str, uri: &str) {
        let mut state = self.0.lock();
        if state.subscriptions.len() < MAX_SUBSCRIPTIONS {
            state.subscriptions.insert((server.to_owned(), uri.to_owned()));
        }
    }

    /// Removes a subscription; returns whether it existed. `uri` is the server's own.
    pub(crate) fn unfollow(&self, server: &str, uri: &str) -> bool {
        self.0.lock().subscriptions.remove(&(server.to_owned(), uri.to_owned()))
    }

    /// Remembers the log level, which a server forgets when it is lost.
    pub fn note(&self, request: &CallRequest<'_>) {
        let Subject::Level(Some(RawText { text: Some(level), .. })) = &request.subject else {
            return;
        };
        if let Some(level) = Level::parse(level) {
            self.0.lock().level = Some(level);
        }
    }

    /// Whether the agent follows a resource that a server may regard as this one.
    pub(crate) fn follows_alike(&self, server: &str, uri: &str) -> bool {
        let like = alike(uri);
        let state = self.0.lock();
        let mut uris = state.subscriptions.iter().filter(|(whose, _)| whose == server);
        uris.any(|(_, other)| other == uri || alike(other) == like)
    }

    /// Whether the agent follows this resource.
    pub(crate) fn subscribed(&self, server: &str, uri: &str) -> bool {
        let key = (server.to_owned(), uri.to_owned());
        self.0.lock().subscriptions.contains(&key)
    }

    /// The log level that the agent has set.
    pub(crate) fn level(&self) -> Option<&'static str> {
        self.0.lock().level.map(Level::as_str)
    }

    /// The resources of a server that the agent follows.
    pub(crate) fn followed(&self, server: &str) -> Vec<String> {
        let state = self.0.lock();
        let its = state.subscriptions.iter().filter(|(whose, _)| whose == server);
        its.map(|(_, uri)| uri.clone()).collect()
    }
}

/// A URI reduced to what all servers agree on: the letters and digits of its normal form, without
/// case, query and fragment. Different resources may be reduced to the same text.
fn alike(uri: &str) -> String {
    let uri = normal_uri(uri);
    let uri = uri.split(['?', '#']).next().unwrap_or_default();
    uri.nfkc().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_resource_are_alike() {
        for other in [
            "FILE:///tmp/a",
            "file:/tmp/a",
            "file:////tmp//a/",
            "file://localhost/tmp/a",
            "file:///tmp/%61",
            "file:///tmp/%2561",
            "file:///tmp/./x/../a",
            "file:///tmp/a?x=1",
            "file:///tmp/a#f",
            "file:///TMP/A",
            "file:///tmp/\u{ff41}",
            "file:\\tmp\\a",
        ] {
            assert_eq!(alike(other), alike("file:///tmp/a"), "{other}");
        }
        for other in ["file:///tmp/b", "demo://tmp/a", "", "file:///tmp", "file:///tmp/aa"] {
            assert_ne!(alike(other), alike("file:///tmp/a"), "{other}");
        }
    }
}
