//! Opens agent sessions: with one server, whose own answer the agent receives, or with all servers,
//! where toolgate answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_admission::access::Grant;
use toolgate_admission::answer_kind::AnswerKind;
use toolgate_admission::list_kind::Kind;
use toolgate_json::{entries, peek, text};
use toolgate_mcp::{Incoming, Limits, Message, Payload, Request, Version, parse_server};
use toolgate_upstream::era::Era;
use toolgate_upstream::link::{HandshakeOutcome, Instances, Link, Parties, Server};
use toolgate_upstream::rewrite::{refused, rewrite, with_error};

use super::{Gateway, NotOpened};
use crate::aggregate;
use crate::downstream::agent::{AgentSession, Opening};
use crate::downstream::endpoint::Endpoint;
use crate::downstream::size_limits::TooLong;

impl Gateway {
    /// Opens an agent session with the agent's `initialize`.
    pub async fn open(
        &self,
        endpoint: &Endpoint,
        request: &Request<'_>,
        caller: &Arc<Grant>,
    ) -> Result<(Arc<AgentSession>, Bytes), NotOpened> {
        let since = Instant::now();
        if self.draining.is_cancelled() {
            return Err(NotOpened::Stopping);
        }
        if let Some(long) = TooLong::of_message(&request.method, request.params) {
            let via = endpoint.via(caller);
            long.record(&self.admission, caller, &via, &request.method).await;
            return Err(NotOpened::Answer(refused(&long.refusal(Some(request.id)))));
        }
        let place = self.take_place(&caller.label)?;
        let params = Bytes::copy_from_slice(request.params.unwrap_or("{}").as_bytes());
        let session = self.new_session(endpoint, params, caller, None).ok_or(NotOpened::NoIds)?;
        // A stop cancels this and waits for it.
        let _counted = self.tasks.token();
        let opening = async {
            match endpoint {
                Endpoint::Server(name) => self.open_one(name, &session, request, since).await,
                Endpoint::All | Endpoint::Sessions => Ok(self.open_all(&session, request).await),
            }
        };
        let opened = self.draining.run_until_cancelled(opening).await;
        let answer = opened.ok_or(NotOpened::Stopping)??;
        self.let_in(&session, place)?;
        Ok((session, answer))
    }

    async fn open_one(
        &self,
        name: &str,
        session: &Arc<AgentSession>,
        request: &Request<'_>,
        since: Instant,
    ) -> Result<Bytes, NotOpened> {
        let server = self.server(name).ok_or(NotOpened::UnknownServer)?;
        let link = self.attach_one(&server, session);
        let opened = match server.settings.instances {
            Instances::PerAgent => link.open(since).await,
            Instances::Shared => link.opened(since).await,
        };
        match opened {
            Ok(HandshakeOutcome::Accepted(answer)) => Ok(welcome(session, request, &answer, &link)),
            Ok(HandshakeOutcome::Rejected(answer)) => {
                Err(NotOpened::Answer(with_id(&answer, request.id)))
            }
            Err(failure) => {
                let answer = failure.answer(server.name(), request.id, AnswerKind::Other, None);
                Err(NotOpened::Answer(answer))
            }
        }
    }

    /// Waits only for servers that were never listed, and not for long.
    async fn open_all(&self, session: &Arc<AgentSession>, request: &Request<'_>) -> Bytes {
        self.attach_all(session);
        let links = session.links();
        let now = Instant::now();
        for link in links.iter() {
            link.server().list_cache.wait_before_welcome(now).await;
        }
        let (version, answer) = aggregate::welcome(&links, request);
        session.set_version(version);
        answer
    }

    pub(super) fn take_place(&self, grant: &Arc<str>) -> Result<Place<'_>, NotOpened> {
        let (max, per_grant) = {
            let limits = self.limits.load();
            (limits.max, limits.per_grant)
        };
        let refused = |why| {
            self.metrics.refused_sessions.inc();
            Err(why)
        };
        let sessions = self.sessions.read();
        let opening = self.opening.fetch_add(1, Ordering::Relaxed) + 1;
        let mut place = Place { opening: &self.opening, of_grant: None };
        if sessions.len() + opening > max {
            return refused(NotOpened::TooMany(max));
        }
        drop(sessions);
        place.of_grant = OfGrant::take(&self.of_grants, grant, per_grant);
        if place.of_grant.is_none() {
            return refused(NotOpened::TooManyOfGrant(per_grant));
        }
        Ok(place)
    }

    /// Adds a session, with the current servers: a reload or a stop may have happened while it was
    /// being opened.
    pub(super) fn let_in(
        &self,
        session: &Arc<AgentSession>,
        mut place: Place<'_>,
    ) -> Result<(), NotOpened> {
        let _turn = self.applying.lock();
        if self.draining.is_cancelled() {
            return Err(NotOpened::Stopping);
        }
        match session.endpoint() {
            Endpoint::All | Endpoint::Sessions => {
                self.attach_all(session);
                session.changes.set_initial(session);
            }
            Endpoint::Server(name) => {
                let now = self.server(name);
                let links = session.links();
                let opened = links.first().map(|link| link.server());
                let same = |now: &Arc<Server>| opened.is_some_and(|it| Arc::ptr_eq(it, now));
                if !now.as_ref().is_some_and(same) {
                    if let Some(opened) = opened {
                        opened.retire();
                    }
                    self.attach_one(&now.ok_or(NotOpened::UnknownServer)?, session);
                }
                session.changes.set_initial(session);
            }
        }
        let mut sessions = self.sessions.write();
        sessions.insert(session.id().to_owned(), Arc::clone(session));
        place.of_grant.take().into_iter().for_each(OfGrant::keep);
        drop(place);
        self.metrics.agent_sessions.set(i64::try_from(sessions.len()).unwrap_or(i64::MAX));
        drop(sessions);
        self.watch_dial_in();
        Ok(())
    }

    pub(super) fn new_session(
        &self,
        endpoint: &Endpoint,
        params: Bytes,
        caller: &Arc<Grant>,
        implicit: Option<Arc<str>>,
    ) -> Option<Arc<AgentSession>> {
        let opening = Opening {
            id: self.ids.agent_session()?,
            key: self.next_key.fetch_add(1, Ordering::Relaxed),
            endpoint: endpoint.clone(),
            params,
            grant: Arc::clone(caller),
            dial_in: self.dial_in.get().cloned(),
            implicit,
            aggregate: &aggregate::All,
        };
        let (timer, admission) = (Arc::clone(&self.timer), Arc::clone(&self.admission));
        Some(AgentSession::new(opening, self.tasks.clone(), timer, admission))
    }

    /// Gives the session its link to `server`.
    pub(super) fn attach_one(
        &self,
        server: &Arc<Server>,
        session: &Arc<AgentSession>,
    ) -> Arc<Link> {
        let link = self.link(server, session);
        session.set_links(vec![Arc::clone(&link)]);
        link
    }

    /// Gives the session a link to every server; existing links stay. A server without a cached list
    /// is listed.
    pub(super) fn attach_all(&self, session: &Arc<AgentSession>) {
        if *session.endpoint() == Endpoint::Sessions {
            return;
        }
        let before = session.links();
        let (servers, grant) = (self.servers.load(), session.grant());
        let links: Vec<_> = servers
            .iter()
            .filter(|server| grant.may_reach(server.name()))
            .map(|server| {
                let known = before.find(server.name()).map(|(_, link)| link);
                match known.filter(|link| Arc::ptr_eq(link.server(), server)) {
                    Some(link) => Arc::clone(link),
                    None => self.refreshed_link(server, session),
                }
            })
            .collect();
        session.set_links(links);
    }

    fn refreshed_link(&self, server: &Arc<Server>, session: &Arc<AgentSession>) -> Arc<Link> {
        let link = self.link(server, session);
        link.keep_lists();
        let me: Weak<AgentSession> = Arc::downgrade(session);
        server.list_cache.watch(link.client_profile(), me);
        if !server.list_cache.has_own(link.client_profile()) {
            link.refresh_lists(&Kind::ALL);
        }
        link
    }

    fn link(&self, server: &Arc<Server>, session: &Arc<AgentSession>) -> Arc<Link> {
        match server.settings.instances {
            Instances::PerAgent => {
                let me: Weak<AgentSession> = Arc::downgrade(session);
                let parties = Parties::One(me);
                let opening = session.opening().clone();
                let era = if session.is_implicit() { Era::Sessionless } else { Era::Sessionful };
                Link::new(Arc::clone(server), parties, opening, era, self.tasks.clone())
            }
            Instances::Shared => {
                let me: Weak<AgentSession> = Arc::downgrade(session);
                server.shared_link(me, &self.tasks)
            }
        }
    }
}

/// Reserves the place of an agent session that is being opened.
pub(super) struct Place<'a> {
    opening: &'a AtomicUsize,
    of_grant: Option<OfGrant<'a>>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.opening.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The same for its grant.
struct OfGrant<'a> {
    all: &'a Mutex<HashMap<Arc<str>, usize>>,
    grant: Arc<str>,
    kept: bool,
}

impl<'a> OfGrant<'a> {
    fn take(
        all: &'a Mutex<HashMap<Arc<str>, usize>>,
        grant: &Arc<str>,
        most: usize,
    ) -> Option<Self> {
        let mut counts = all.lock();
        let count = counts.entry(Arc::clone(grant)).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Self { all, grant: Arc::clone(grant), kept: false })
    }

    /// The session is added: it keeps the place until it ends.
    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for OfGrant<'_> {
    fn drop(&mut self) {
        if !self.kept {
            release(self.all, &self.grant);
        }
    }
}

/// Removes one agent session of this grant.
pub(super) fn release(all: &Mutex<HashMap<Arc<str>, usize>>, grant: &Arc<str>) {
    let mut counts = all.lock();
    if let Some(count) = counts.get_mut(grant) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(grant);
        }
    }
}

/// The server's answer to `initialize`, for this agent.
fn welcome(session: &AgentSession, request: &Request<'_>, answer: &Bytes, link: &Link) -> Bytes {
    let Ok(Incoming::One(Message::Response(response))) = parse_server(answer, &Limits::default())
    else {
        return answer.clone();
    };
    let (Some(id), Payload::Result(result)) = (response.id, response.payload) else {
        return answer.clone();
    };
    let raw = peek(result, &["protocolVersion"]).ok().flatten();
    let mut version = raw.and_then(text).and_then(|version| Version::parse(&version));
    let mut changes = vec![(id, request.id.to_owned())];
    let capabilities = peek(result, &["capabilities"]).ok().flatten();
    let fewer = capabilities.filter(|_| link.is_sessionless()).and_then(without_extensions);
    if let (Some(all), Some(fewer)) = (capabilities, fewer) {
        changes.push((all, fewer));
    }
    if link.server().settings.instances == Instances::Shared {
        // The server agreed on a version with toolgate; this agent may support an older one.
        let wanted = request
            .params
            .and_then(|params| peek(params, &["protocolVersion"]).ok().flatten())
            .and_then(text)
            .and_then(|version| Version::parse(&version));
        version = version.min(wanted).or(version);
        if let (Some(raw), Some(version)) = (raw, version) {
            changes.push((raw, format!("\"{}\"", version.as_str())));
        }
    }
    if let Some(version) = version {
        session.set_version(version);
    }
    let changes: Vec<_> = changes.iter().map(|(part, with)| (*part, with.as_str())).collect();
    rewrite(response.raw, &changes).unwrap_or_else(|_| answer.clone())
}

/// The capabilities without `extensions`, which sessionful protocols do not have; `None` if there are
/// none.
fn without_extensions(capabilities: &str) -> Option<String> {
    let all = entries(capabilities).ok().flatten()?;
    let count = all.len();
    let kept = all.into_iter().filter(|(key, _)| text(key).as_deref() != Some("extensions"));
    let kept: Vec<_> = kept.map(|(key, value)| format!("{key}:{value}")).collect();
    (kept.len() < count).then(|| format!("{{{}}}", kept.join(",")))
}

/// The server's rejection of `initialize`, for this agent.
fn with_id(answer: &Bytes, id: &str) -> Bytes {
    let Ok(Incoming::One(Message::Response(response))) = parse_server(answer, &Limits::default())
    else {
        return answer.clone();
    };
    match (response.id, response.payload) {
        (Some(old), _) => rewrite(response.raw, &[(old, id)]).unwrap_or_else(|_| answer.clone()),
        (None, Payload::Error(error) | Payload::Result(error)) => with_error(id, error),
    }
}
