//! Room for the sessions of one token, and for their lists of tools.
//!
//! Invariant: lists that several sessions share take room once.

use std::collections::HashSet;
use std::sync::Arc;

use super::SessionMachine;
use super::session::Session;
use crate::tool::Tools;

/// A list of fewer bytes always has room.
const SMALL_LIST: usize = 64 * 1024;

impl SessionMachine {
    /// Why a new session may not begin: those of its token that have left, and are kept until their
    /// grace is over, take all the room there is for them. A program that registers and leaves in a
    /// loop, under ever new uids, stops here. One that comes back is always let in.
    pub(super) fn too_many_away(
        &self,
        uid: &Arc<str>,
        token: Option<u32>,
        new: &Arc<Tools>,
    ) -> Option<String> {
        if self.by_uid.contains_key(uid) {
            return None;
        }
        let room = self.settings.away;
        let (mut count, mut bytes, mut known) = (0, 0, HashSet::from([Arc::as_ptr(new)]));
        let of_token = |session: &&Session| session.socket.is_none() && session.token == token;
        for session in self.by_uid.values().filter(of_token) {
            count += 1;
            if known.insert(Arc::as_ptr(&session.tools)) {
                bytes += session.bytes;
            }
        }
        let full = count >= room.entries || bytes >= room.bytes;
        let grace = self.settings.grace.as_secs();
        full.then(|| {
            format!(
                "{count} sessions of this token have left within {grace} s and are kept; come back \
                 under the same `client_uid`, say `session.bye` before leaving, or retry later"
            )
        })
    }

    /// Why a large list of tools is rejected: the different lists of the other sessions of its token
    /// take all the room that there is.
    pub(super) fn lists_full(
        &self,
        uid: &Arc<str>,
        token: Option<u32>,
        new: &Arc<Tools>,
    ) -> Option<String> {
        let (bytes, room) = (definitions_len(new), self.settings.lists);
        if bytes < SMALL_LIST {
            return None;
        }
        let mut known = HashSet::from([Arc::as_ptr(new)]);
        let others = self.by_uid.iter().filter(|(other, session)| {
            *other != uid && session.token == token && known.insert(Arc::as_ptr(&session.tools))
        });
        let held: usize = others.map(|(_, session)| session.bytes).sum();
        (held + bytes > room).then(|| {
            format!(
                "`tools` has {bytes} bytes, and the lists of the other sessions of this token have \
                 {held}; {room} are the limit for all of them"
            )
        })
    }
}

/// How many bytes the definitions have.
pub(super) fn definitions_len(tools: &Tools) -> usize {
    tools.values().map(|tool| tool.raw.get().len()).sum()
}
