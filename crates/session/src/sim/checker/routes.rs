//! Calls go to the selected session, or are refused for the right reason.

use super::super::model::SessionModel;
use super::{Checker, Verdict, demand};
use crate::{CallTarget, Reach, SessionFailure};

impl Checker {
    /// Checks the target of a call, or its refusal.
    pub(in super::super) fn routed(
        &mut self,
        name: &str,
        selector: Option<(&str, &str)>,
        endless: bool,
        reach: &Reach,
        found: &Result<CallTarget, SessionFailure>,
    ) -> Verdict {
        let reachable = |uid: &str, s: &SessionModel| reach.allows(uid, &s.kind, &s.base);
        let serving: Vec<(&String, &SessionModel)> = self
            .books
            .sessions
            .iter()
            .filter(|(uid, s)| reachable(uid, s) && s.tools.contains_key(name))
            .collect();
        let fits = |(uid, s): &&(&String, &SessionModel)| match selector {
            Some(("session_id", wanted)) => uid.as_str() == wanted,
            Some(("infobase_name", wanted)) => s.base == wanted,
            Some((_, wanted)) => s.kind == wanted,
            None => true,
        };
        let left: Vec<&(&String, &SessionModel)> = serving.iter().filter(fits).collect();
        let named = selector.filter(|(key, _)| *key == "session_id").map(|(_, uid)| uid);
        let there = named.and_then(|uid| self.books.sessions.get_key_value(uid));
        let expected: &[&str] = match left.as_slice() {
            _ if serving.is_empty() => &["no_live_session", "unknown_tool", "session_mismatch"],
            [(_, s)] if endless && s.kind != "server" => &["invalid_arguments"],
            [(_, s)] if s.socket.is_none() && s.kind != "server" => {
                if selector.is_some() {
                    &["session_gone"]
                } else {
                    &["no_live_session"]
                }
            }
            [(_, s)] if s.queue.len() >= self.settings.of_kind(&s.kind).queue => &["session_busy"],
            [(uid, _)] => {
                let right = found.as_ref().is_ok_and(|target| *target.session_id == ***uid);
                demand!(right, "`{name}` with {selector:?} should go to `{uid}`: {found:?}");
                return Ok(());
            }
            [] if there.is_some_and(|(uid, s)| reachable(uid, s)) => &["session_mismatch"],
            [] => &["unknown_session"],
            _ => &["session_id_required"],
        };
        let code = found.as_ref().map_or_else(SessionFailure::error_code, |_| "let in");
        demand!(expected.contains(&code), "`{name}` with {selector:?}: {code}, not {expected:?}");
        self.count(expected[0]);
        Ok(())
    }
}
