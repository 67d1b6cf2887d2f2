//! The target of a call, selected before it is decided, counted and started.
//!
//! Invariant: no guessing. With several candidates, a call without selector is refused, even if all
//! but one of them are disconnected.
//! Invariant: a session outside the grant's reach does not exist here.

mod choose;

use std::sync::Arc;
use std::time::Duration;

use self::choose::Choice;
use crate::arguments::{Arguments, OPTIONS, invalid};
use crate::failure::SessionFailure;
use crate::machine::Session;
use crate::machine::SessionMachine;
use crate::names::{KindDefinition, KnownSessionTool, offer};
use crate::reach::Reach;
use crate::target::CallTarget;
use crate::tool::Tool;

/// The arguments of a call, parsed once before any lookup.
#[derive(Debug)]
pub struct CallArguments<'a>(Result<Arguments<'a>, SessionFailure>);

impl<'a> CallArguments<'a> {
    /// Parses raw arguments; missing ones are an empty object.
    pub fn read(raw: Option<&'a str>) -> Self {
        Self(Arguments::read(raw))
    }

    fn arguments(&self) -> Result<&Arguments<'a>, SessionFailure> {
        self.0.as_ref().map_err(Clone::clone)
    }
}

impl SessionMachine {
    /// Selects the target of a call. Changes nothing; pass the target to [`crate::Input::Call`]
    /// once the call is admitted.
    pub fn resolve(
        &self,
        name: &str,
        asked: &CallArguments<'_>,
        reach: &Reach,
    ) -> Result<CallTarget, SessionFailure> {
        let unknown = || SessionFailure::UnknownTool { tool: name.to_owned() };
        let original = self.original(name, reach).ok_or_else(unknown)?;
        if let Ok(arguments) = asked.arguments()
            && let Some(choice) = self.named(&original, arguments, reach)
        {
            return self.target(name, &original, arguments, &choice);
        }
        let candidates: Vec<(&Arc<str>, &Session)> = self.servers_of(&original, reach).collect();
        if candidates.is_empty() && !self.is_known(&original, reach) {
            return Err(unknown());
        }
        let arguments = asked.arguments()?;
        let choice = self.choose(name, &original, arguments, &candidates, reach)?;
        self.target(name, &original, arguments, &choice)
    }

    /// The tool that a grant knows by this name, if any. Policies match it by its original name and
    /// by every published name.
    pub fn known(&self, name: &str, reach: &Reach) -> Option<KnownSessionTool> {
        let original = self.original(name, reach)?;
        let known = self.is_served(&original, reach) || self.is_known(&original, reach);
        let aliases = self.aliases(&original, name);
        known.then(|| KnownSessionTool {
            offered: self.offered(&original, reach).into(),
            original,
            aliases,
        })
    }

    /// The definitions of a tool by the kinds of sessions within reach: connected, idle, and those
    /// in the showcase.
    fn offered(&self, original: &str, reach: &Reach) -> Vec<KindDefinition> {
        let mut offered = Vec::new();
        let uids = self.serving.get(original).into_iter().flatten();
        for session in uids.filter_map(|uid| self.reachable(uid, reach)) {
            if let Some(tool) = session.tools.get(original) {
                offer(&mut offered, &session.card.kind, tool);
            }
        }
        for entry in self.showcase.visible(reach) {
            if let Some(tool) = entry.tools.get(original) {
                offer(&mut offered, &entry.key.kind, tool);
            }
        }
        offered
    }

    fn target(
        &self,
        name: &str,
        original: &str,
        arguments: &Arguments<'_>,
        choice: &Choice<'_>,
    ) -> Result<CallTarget, SessionFailure> {
        let (uid, session) = (choice.uid, choice.session);
        let tool = session.tools.get(original).ok_or_else(|| SessionFailure::SessionMismatch {
            session_id: Arc::clone(uid),
            tool: name.to_owned(),
        })?;
        let target = CallTarget {
            session_id: Arc::clone(uid),
            kind: session.card.kind.clone(),
            infobase_name: session.card.infobase_name.clone(),
            host_id: session.card.host_id.clone(),
            published: name.to_owned(),
            tool: Arc::clone(tool),
            arguments: arguments.forwarded(&choice.selectors),
            allowed: self.allowed(uid, session, tool, arguments)?,
            selected: choice.selected,
            identifier_keys: self.settings.of_kind(&session.card.kind).identifier_keys,
            life: session.life,
        };
        self.refusal(&target).map_or(Ok(target), Err)
    }

    /// The sessions within reach that serve a tool, including disconnected ones.
    pub(crate) fn servers_of<'a>(
        &'a self,
        original: &str,
        reach: &'a Reach,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Session)> {
        let uids = self.serving.get(original).into_iter().flatten();
        uids.filter(|uid| self.serves(uid, reach))
            .filter_map(|uid| Some((uid, self.by_uid.get(uid)?)))
    }

    /// Whether a session within reach serves a tool.
    pub(crate) fn is_served(&self, original: &str, reach: &Reach) -> bool {
        self.servers_of(original, reach).next().is_some()
    }

    /// Whether a grant sees the tools of a session, even if it is disconnected.
    pub(crate) fn serves(&self, uid: &str, reach: &Reach) -> bool {
        self.reachable(uid, reach).is_some_and(|session| !session.hidden)
    }

    pub(crate) fn reachable(&self, uid: &str, reach: &Reach) -> Option<&Session> {
        let session = self.by_uid.get(uid)?;
        reach.allows(uid, &session.card.kind, &session.card.infobase_name).then_some(session)
    }

    /// Why a call cannot start now, if so.
    pub(crate) fn refusal(&self, target: &CallTarget) -> Option<SessionFailure> {
        let uid = &target.session_id;
        let session = self.by_uid.get(uid).filter(|session| session.life == target.life);
        let Some(session) = session else { return Some(target.gone()) };
        if let Err(failure) = session.publishes(uid, &target.tool, &target.published) {
            return Some(failure);
        }
        let kind = self.settings.of_kind(&session.card.kind);
        if session.socket.is_none() && kind.reconnect_wait.is_zero() {
            return Some(session.away(uid, &target.published, target.selected));
        }
        (session.queue.len() >= kind.queue).then(|| session.busy(uid))
    }

    /// Whether the showcase, or a hidden session, has the tool.
    fn is_known(&self, original: &str, reach: &Reach) -> bool {
        self.showcase.visible(reach).any(|entry| entry.tools.contains_key(original))
            || self.hidden_server(original, reach).is_some()
    }

    fn hidden_server(&self, original: &str, reach: &Reach) -> Option<&Session> {
        let uids = self.serving.get(original).into_iter().flatten();
        uids.into_iter().find_map(|uid| self.reachable(uid, reach))
    }

    fn allowed(
        &self,
        uid: &str,
        session: &Session,
        tool: &Tool,
        arguments: &Arguments<'_>,
    ) -> Result<Option<Duration>, SessionFailure> {
        let kind = &session.card.kind;
        if arguments.no_deadline()? {
            return if self.settings.of_kind(kind).no_deadline {
                Ok(None)
            } else {
                let what = format!("`{OPTIONS}.no_deadline` is not allowed for kind `{kind}`");
                Err(invalid(what))
            };
        }
        Ok(Some(self.settings.deadline(uid, kind, tool)))
    }
}
