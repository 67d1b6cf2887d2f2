//! Sessions of programs that dial in, as the gateway is wired to them.

use std::collections::HashSet;
use std::sync::Arc;

use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::SESSIONS;
use toolgate_session::Reach;
use toolgate_upstream::link::Server;

use super::Gateway;
use crate::dial_in::{Desk, SessionClasses, Sessions};

impl Gateway {
    /// Programs can dial in from now on; to be said once, before the first agent comes.
    pub fn set_sessions(self: &Arc<Self>, sessions: Arc<dyn Sessions>) {
        let gateway = Arc::downgrade(self);
        sessions.on_change(Box::new(move |reach| {
            if let Some(gateway) = gateway.upgrade() {
                gateway.sessions_changed(reach);
            }
        }));
        let metrics = self.metrics.of_server(SESSIONS);
        self.desk.get_or_init(|| Arc::new(Desk::new(sessions, metrics)));
        self.reserve_names(self.servers().iter());
    }

    /// Tells the sessions which names are those of servers.
    pub(super) fn reserve_names<'a>(&self, servers: impl Iterator<Item = &'a Arc<Server>>) {
        let Some(desk) = self.desk.get() else { return };
        desk.sessions.set_servers(servers.map(|server| server.name().to_owned()).collect());
    }

    /// The operator's word about the risk of single session tools.
    pub fn set_session_classes(&self, classes: SessionClasses) {
        if let Some(desk) = self.desk.get() {
            desk.set_classes(classes);
        }
    }

    /// What is kept beside the sessions, where they can dial in.
    pub(crate) fn desk(&self) -> Option<&Arc<Desk>> {
        self.desk.get()
    }

    /// The sessions, where programs can dial in.
    pub fn sessions(&self) -> Option<&Arc<dyn Sessions>> {
        self.desk.get().map(|desk| &desk.sessions)
    }

    /// Whoever has this reach may see something else now.
    fn sessions_changed(&self, reach: &Reach) {
        let sessions: Vec<_> = self.sessions.read().values().cloned().collect();
        for session in sessions {
            if session.desk().is_some() && *session.grant().sessions == *reach {
                session.lists_changed(&[Kind::Tools]);
            }
        }
    }

    /// Says whose lists are looked at, so that nobody watches for others.
    pub(super) fn watch_sessions(&self) {
        let Some(desk) = self.desk.get() else { return };
        let sessions = self.sessions.read();
        let seeing = sessions.values().filter(|session| session.desk().is_some());
        let reaches: HashSet<Arc<Reach>> =
            seeing.map(|session| Arc::clone(&session.grant().sessions)).collect();
        drop(sessions);
        desk.sessions.watch(reaches.into_iter().collect());
    }
}
