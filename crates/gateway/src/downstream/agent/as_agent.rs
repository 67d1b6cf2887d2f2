//! What an agent session is to the layers below it.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use toolgate_admission::access::Grant;
use toolgate_admission::admit::{Admission, Sender};
use toolgate_admission::caller::Caller;
use toolgate_admission::list_kind::Kind;
use toolgate_mcp::Notification;
use toolgate_upstream::event_buffer::Outlet;
use toolgate_upstream::link::{Agent, Asked, Link, Server};
use toolgate_upstream::list_cache::Watcher;
use toolgate_upstream::resubscribe::Wishes;

use super::AgentSession;

impl Caller for AgentSession {
    fn key(&self) -> u64 {
        self.key()
    }

    fn grant(&self) -> Arc<Grant> {
        self.grant()
    }

    fn sender(&self) -> Sender {
        self.sender()
    }

    fn admission(&self) -> &Arc<Admission> {
        self.admission()
    }
}

impl Agent for AgentSession {
    fn opening(&self) -> &Bytes {
        self.opening()
    }

    fn sees_one_server(&self) -> bool {
        self.endpoint().is_one()
    }

    fn is_standing(&self) -> bool {
        self.is_standing()
    }

    fn general(&self) -> &Arc<Outlet> {
        self.general()
    }

    fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    fn ask(&self, asked: Asked) -> Option<u64> {
        self.ask(asked)
    }

    fn unask(&self, number: u64) -> bool {
        self.unask(number)
    }

    fn withdraw_asked(&self, link: &Weak<Link>, id: &str) -> Option<(u64, Arc<Outlet>)> {
        self.withdraw_asked(link, id)
    }

    fn forget_asked(&self, link: &Weak<Link>, epoch: u64) -> usize {
        self.forget_asked(link, epoch)
    }

    fn hear_general(&self, server: &Server, notification: &Notification<'_>, body: &Bytes) {
        self.hear_general(server, notification, body);
    }
}

impl Watcher for AgentSession {
    fn lists_changed(self: Arc<Self>, kinds: &[Kind]) {
        Self::lists_changed(&self, kinds);
    }
}
