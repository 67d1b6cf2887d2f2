//! Which agent session stands for which client of protocol 2026-07-28, which has none of its own.
//!
//! A standing session is an agent session like any other, but for its id, which no client ever
//! learns. It is found by what the client sends with every request, and made when it is first
//! needed; it ends when nobody has used it for long.
//!
//! Invariant: a standing session serves one grant on one endpoint, and clients that can do the same.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use toolgate_admission::access::Grant;

use super::{Gateway, NotOpened};
use crate::downstream::agent::{AgentSession, public};
use crate::downstream::endpoint::Endpoint;
use crate::sessionless::{Client, Standing, opening};

/// The standing sessions there are.
pub(super) type StandingSessions = HashMap<Key, Weak<AgentSession>>;

/// Whom a standing session stands for.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    grant: Arc<str>,
    endpoint: Endpoint,
    /// The client's own word for what belongs together.
    session: Option<String>,
    /// How a conversation with a server is opened on its behalf.
    opening: Bytes,
}

impl Gateway {
    /// The agent session that stands for this client.
    pub(crate) fn standing_session(
        &self,
        endpoint: &Endpoint,
        caller: &Arc<Grant>,
        client: &Client<'_>,
    ) -> Result<Arc<AgentSession>, NotOpened> {
        let key = Key {
            grant: Arc::clone(&caller.label),
            endpoint: endpoint.clone(),
            session: client.session.map(str::to_owned),
            opening: opening(client.claims),
        };
        let mut standing = self.standing.lock();
        let known = standing.get(&key).and_then(Weak::upgrade);
        // One that has ended may be held by a call that still runs.
        if let Some(session) = known.and_then(|known| self.session(endpoint, known.id(), caller)) {
            return Ok(session);
        }
        if self.draining.is_cancelled() {
            return Err(NotOpened::Stopping);
        }
        let place = self.take_place(&caller.label)?;
        let known_as = public(&format!("{}\n{}", caller.label, client.session.unwrap_or_default()));
        let standing_for = Standing::new(known_as, Arc::clone(&self.parking));
        let session = self
            .new_session(endpoint, key.opening.clone(), caller, Some(Box::new(standing_for)))
            .ok_or(NotOpened::NoIds)?;
        self.let_in(&session, place)?;
        standing.retain(|_, session| session.strong_count() > 0);
        standing.insert(key, Arc::downgrade(&session));
        Ok(session)
    }
}
