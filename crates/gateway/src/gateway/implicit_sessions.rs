//! Implicit agent sessions of clients of protocol 2026-07-28, which have none of their own.
//!
//! An implicit session is an ordinary agent session whose id no client receives. It is found by what
//! the client sends with every request, created when it is first needed, and ends when it is idle.
//!
//! Invariant: an implicit session serves one grant on one endpoint, and clients with the same
//! capabilities.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use toolgate_admission::access::{Acting, Grant};

use super::{Gateway, NotOpened};
use crate::downstream::agent::{AgentSession, public};
use crate::downstream::endpoint::Endpoint;
use crate::sessionless::{Client, Clients, ImplicitSession, opening};

/// All implicit sessions.
pub(super) type ImplicitSessions = HashMap<Key, (Weak<AgentSession>, Arc<Clients>)>;

/// Identifies the clients of an implicit session.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    grant: Arc<str>,
    /// The person who calls with the rights of the grant.
    acting: Option<Acting>,
    endpoint: Endpoint,
    /// The value of the header `Toolgate-Session`.
    session: Option<String>,
    /// The `params` of `initialize` for servers.
    opening: Bytes,
}

impl Gateway {
    /// The implicit session of this client.
    pub(crate) fn implicit(
        &self,
        endpoint: &Endpoint,
        caller: &Arc<Grant>,
        client: &Client<'_>,
    ) -> Result<ImplicitSession, NotOpened> {
        let key = Key {
            grant: Arc::clone(&caller.label),
            acting: caller.acting.clone(),
            endpoint: endpoint.clone(),
            session: client.session.map(str::to_owned),
            opening: opening(client.claims),
        };
        let mut implicit = self.implicit.lock();
        // A running call may hold one that has ended.
        let known = implicit.get(&key).and_then(|(session, clients)| {
            let session = self.session(endpoint, session.upgrade()?.id(), caller)?;
            Some(ImplicitSession::new(session, Arc::clone(clients)))
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
        let clients = Arc::new(Clients::new(&self.parked_calls));
        implicit.retain(|_, (session, _)| session.strong_count() > 0);
        implicit.insert(key, (Arc::downgrade(&session), Arc::clone(&clients)));
        Ok(ImplicitSession::new(session, clients))
    }
}
