//! The interfaces of an agent session for the layers below it.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use toolgate_admission::access::Grant;
use toolgate_admission::admit::Admission;
use toolgate_admission::call_context::Sender;
use toolgate_admission::caller::Caller;
use toolgate_admission::list_kind::Kind;
use toolgate_mcp::Notification;
use toolgate_upstream::event_buffer::EventBuffer;
use toolgate_upstream::link::{Agent, Link, Server, ServerRequest};
use toolgate_upstream::list_cache::Watcher;
use toolgate_upstream::resubscribe::ServerSubscriptions;

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

    fn is_implicit(&self) -> bool {
        self.is_implicit()
    }

    fn general(&self) -> &Arc<EventBuffer> {
        self.general()
    }

    fn server_subscriptions(&self) -> &ServerSubscriptions {
        &self.server_subscriptions
    }

    fn ask(&self, asked: ServerRequest) -> Option<u64> {
        self.ask(asked)
    }

    fn drop_server_request(&self, number: u64) -> bool {
        self.drop_server_request(number)
    }

    fn withdraw_server_request(
        &self,
        link: &Weak<Link>,
        id: &str,
    ) -> Option<(u64, Arc<EventBuffer>)> {
        self.withdraw_server_request(link, id)
    }

    fn forget_server_requests(&self, link: &Weak<Link>, epoch: u64) -> usize {
        self.forget_server_requests(link, epoch)
    }

    fn receive_general(&self, server: &Server, notification: &Notification<'_>, body: &Bytes) {
        self.receive_general(server, notification, body);
    }
}

impl Watcher for AgentSession {
    fn lists_changed(self: Arc<Self>, kinds: &[Kind]) {
        Self::lists_changed(&self, kinds);
    }
}
