//! Wires the gateway to the sessions of programs that dial in.

use std::collections::HashSet;
use std::sync::Arc;

use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::SESSIONS;
use toolgate_session::Reach;
use toolgate_upstream::link::Server;
use toolgate_upstream::pins::PinMode;

use super::Gateway;
use crate::dial_in::{DialIn, SessionClasses, SessionDriver};

impl Gateway {
    /// Lets agents use the sessions of this driver; once, before the first agent session opens.
    pub fn set_dial_in(self: &Arc<Self>, driver: Arc<SessionDriver>) {
        let gateway = Arc::downgrade(self);
        driver.on_change(Box::new(move |reach| {
            if let Some(gateway) = gateway.upgrade() {
                gateway.dial_in_changed(reach);
            }
        }));
        let metrics = self.metrics.of_server(SESSIONS);
        let pins = self.pins.of(SESSIONS);
        self.dial_in.get_or_init(|| Arc::new(DialIn::new(driver, metrics, pins)));
        self.reserve_names(self.servers().iter());
    }

    /// Reserves the names of servers, so that no session tool is published under one.
    pub(super) fn reserve_names<'a>(&self, servers: impl Iterator<Item = &'a Arc<Server>>) {
        let Some(dial_in) = self.dial_in.get() else { return };
        dial_in.driver.set_servers(servers.map(|server| server.name().to_owned()).collect());
    }

    /// Sets the risk classes that the operator gave to session tools.
    pub fn set_session_classes(&self, classes: SessionClasses) {
        if let Some(dial_in) = self.dial_in.get() {
            dial_in.set_classes(classes);
        }
    }

    /// Sets what happens to new and changed definitions of session tools.
    pub fn set_session_pin(&self, pin: PinMode) {
        if let Some(dial_in) = self.dial_in.get() {
            dial_in.set_pin(pin);
        }
    }

    /// The sessions and what belongs to them, if programs can dial in.
    pub(crate) fn dial_in(&self) -> Option<&Arc<DialIn>> {
        self.dial_in.get()
    }

    /// The driver of the sessions, if programs can dial in.
    pub fn session_driver(&self) -> Option<&Arc<SessionDriver>> {
        self.dial_in.get().map(|dial_in| &dial_in.driver)
    }

    /// Compares the lists of agent sessions with this reach.
    fn dial_in_changed(&self, reach: &Reach) {
        let sessions: Vec<_> = self.sessions.read().values().cloned().collect();
        for session in sessions {
            if session.dial_in().is_some() && *session.grant().sessions == *reach {
                session.lists_changed(&[Kind::Tools]);
            }
        }
    }

    /// Limits reports of changes to the reaches of open agent sessions.
    pub(super) fn watch_dial_in(&self) {
        let Some(dial_in) = self.dial_in.get() else { return };
        let sessions = self.sessions.read();
        let seeing = sessions.values().filter(|session| session.dial_in().is_some());
        let reaches: HashSet<Arc<Reach>> =
            seeing.map(|session| Arc::clone(&session.grant().sessions)).collect();
        drop(sessions);
        dial_in.driver.watch(reaches.into_iter().collect());
    }
}
