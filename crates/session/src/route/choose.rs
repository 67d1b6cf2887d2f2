//! Selects one of the sessions that serve a tool.

use std::sync::Arc;

use super::SessionFailure;
use crate::arguments::{Arguments, INFOBASE_NAME, KIND, invalid};
use crate::failure::{Candidate, MissingSession};
use crate::machine::{Session, SessionMachine};
use crate::reach::Reach;
use crate::schema::has_property;

/// The selected session.
pub(super) struct Choice<'a> {
    pub(super) uid: &'a Arc<str>,
    pub(super) session: &'a Session,
    /// Keys that were consumed.
    pub(super) selectors: Vec<&'static str>,
    pub(super) selected: bool,
}

impl SessionMachine {
    /// The fast path: the call names a session that serves the tool, and has no other selector.
    pub(super) fn named<'a>(
        &'a self,
        original: &str,
        arguments: &Arguments<'_>,
        reach: &Reach,
    ) -> Option<Choice<'a>> {
        let wanted = arguments.session_id().ok()??;
        let (uid, session) = self.by_uid.get_key_value(&*wanted)?;
        let plain = !arguments.has(INFOBASE_NAME) && !arguments.has(KIND);
        let serves = self.serves(uid, reach) && session.tools.contains_key(original);
        let selectors = Vec::new();
        (plain && serves).then_some(Choice { uid, session, selectors, selected: true })
    }

    pub(super) fn choose<'a>(
        &'a self,
        name: &str,
        original: &str,
        arguments: &Arguments<'_>,
        candidates: &[(&'a Arc<str>, &'a Session)],
        reach: &Reach,
    ) -> Result<Choice<'a>, SessionFailure> {
        let own = |key: &str| {
            let tools = candidates.iter().filter_map(|(_, session)| session.tools.get(original));
            tools.into_iter().any(|tool| has_property(&tool.input_schema, key))
        };
        let mut left = candidates.to_vec();
        let mut selectors = Vec::new();
        for key in [INFOBASE_NAME, KIND] {
            if !arguments.has(key) || own(key) {
                continue;
            }
            if let Some(wanted) = arguments.selector(key)? {
                selectors.push(key);
                left.retain(|(_, session)| is_selected(session, key, &wanted));
            }
        }
        if let Some(wanted) = arguments.session_id()? {
            return self.chosen(name, original, &wanted, &left, candidates, selectors, reach);
        }
        match left.as_slice() {
            [(uid, session)] => {
                let selected = !selectors.is_empty();
                Ok(Choice { uid, session, selectors, selected })
            }
            [] if candidates.is_empty() => Err(self.no_live_session(name, original, reach)),
            [] => Err(SessionFailure::UnknownSession { candidates: named(candidates) }),
            several => Err(SessionFailure::SessionIdRequired {
                tool: name.to_owned(),
                candidates: named(several),
            }),
        }
    }

    /// The session that the call names by its id.
    #[expect(clippy::too_many_arguments, reason = "one step of `choose`, with all that it knows")]
    fn chosen<'a>(
        &'a self,
        name: &str,
        original: &str,
        wanted: &str,
        left: &[(&'a Arc<str>, &'a Session)],
        candidates: &[(&'a Arc<str>, &'a Session)],
        selectors: Vec<&'static str>,
        reach: &Reach,
    ) -> Result<Choice<'a>, SessionFailure> {
        let known = self.by_uid.get_key_value(wanted);
        match known.filter(|_| self.reachable(wanted, reach).is_some()) {
            Some((uid, session)) => {
                let agrees = left.iter().any(|(other, _)| *other == uid);
                let candidate = candidates.iter().any(|(other, _)| *other == uid);
                if candidate && !agrees {
                    let with = selectors.join("` and `");
                    return Err(invalid(format!(
                        "`session_id` and `{with}` name different sessions"
                    )));
                }
                Ok(Choice { uid, session, selectors, selected: true })
            }
            None if candidates.is_empty() => Err(self.no_live_session(name, original, reach)),
            None => Err(SessionFailure::UnknownSession { candidates: named(candidates) }),
        }
    }

    fn no_live_session(&self, name: &str, original: &str, reach: &Reach) -> SessionFailure {
        if let Some(session) = self.hidden_server(original, reach) {
            return SessionFailure::NoLiveSession(session.missing(name).into());
        }
        let entries = self.showcase.visible(reach);
        let with = entries.filter(|entry| entry.tools.contains_key(original));
        let missing = with.map(|entry| {
            let publisher = entry.last_publisher(reach);
            MissingSession {
                tool: name.to_owned(),
                kind: entry.key.kind.clone(),
                config_id: entry.key.config_id.clone(),
                infobase_name: publisher.map(|known| known.infobase_name.clone()),
                host_id: publisher.map(|known| known.host_id.clone()),
                last_seen: publisher.map_or(entry.last_seen, |known| known.last_seen),
            }
        });
        match missing.max_by_key(|missing| missing.last_seen) {
            Some(missing) => SessionFailure::NoLiveSession(missing.into()),
            None => SessionFailure::UnknownTool { tool: name.to_owned() },
        }
    }
}

/// Whether a session has what a selector asks for. Names of infobases are compared without regard to
/// case, as 1C does.
fn is_selected(session: &Session, key: &str, wanted: &str) -> bool {
    if key == KIND {
        return session.card.kind == wanted;
    }
    fold_case(&session.card.infobase_name).eq(fold_case(wanted))
}

/// The characters of a text without their case. Upper case first, so that `ß` equals `SS`.
fn fold_case(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

fn named(sessions: &[(&Arc<str>, &Session)]) -> Vec<Candidate> {
    sessions.iter().map(|(uid, session)| session.candidate(uid)).collect()
}
