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
use crate::sessionless::{Client, Clients, Standing, opening};

/// The standing sessions there are.
pub(super) type StandingSessions = HashMap<Key, (Weak<AgentSession>, Arc<Clients>)>;

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
    /// The agent session that stands for this client, and what is kept with it.
    pub(crate) fn standing(
        &self,
        endpoint: &Endpoint,
        caller: &Arc<Grant>,
        client: &Client<'_>,
    ) -> Result<Standing, NotOpened> {
        let key = Key {
            grant: Arc::clone(&caller.label),
            endpoint: endpoint.clone(),
            session: client.session.map(str::to_owned),
            opening: opening(client.claims),
        };
        let mut standing = self.standing.lock();
        // One that has ended may be held by a call that still runs.
        let known = standing.get(&key).and_then(|(session, clients)| {
            let session = self.session(endpoint, session.upgrade()?.id(), caller)?;
            Some(Standing::new(session, Arc::clone(clients)))
        });
        if let Some(known) = known {
            return Ok(known);
        }
        if self.draining.is_cancelled() {
            return Err(NotOpened::Stopping);
        }
        let place = self.take_place(&caller.label)?;
        let known_as = public(&format!("{}\n{}", caller.label, client.session.unwrap_or_default()));
        let session = self
            .new_session(endpoint, key.opening.clone(), caller, Some(known_as))
            .ok_or(NotOpened::NoIds)?;
        self.let_in(&session, place)?;
        let clients = Arc::new(Clients::new(&self.parking));
        standing.retain(|_, (session, _)| session.strong_count() > 0);
        standing.insert(key, (Arc::downgrade(&session), Arc::clone(&clients)));
        Ok(Standing::new(session, clients))
    }
}
