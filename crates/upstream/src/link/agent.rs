//! An agent session as a link sees it.
//!
//! Links know agents only by this trait, so that they do not depend on agent sessions.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use toolgate_admission::caller::Caller;
use toolgate_mcp::Notification;

use super::server_request::ServerRequest;
use super::{Link, Server};
use crate::event_buffer::EventBuffer;
use crate::resubscribe::ServerSubscriptions;

/// One agent that uses a link.
pub trait Agent: Caller + 'static {
    /// The `params` of `initialize` that open a conversation on its behalf.
    fn opening(&self) -> &Bytes;

    /// Whether it sees one server, under the names that the server itself uses.
    fn sees_one_server(&self) -> bool;

    /// Whether it represents clients of protocol 2026-07-28.
    fn is_implicit(&self) -> bool;

    /// The stream of messages that belong to no request.
    fn general(&self) -> &Arc<EventBuffer>;

    /// Its subscriptions and log level, which servers forget when they are lost.
    fn server_subscriptions(&self) -> &ServerSubscriptions;

    /// Stores a request of a server; returns the id under which the agent receives it. `None` if
    /// too many are unanswered.
    fn ask(&self, asked: ServerRequest) -> Option<u64>;

    /// Drops the server request `number`; false if it was answered.
    fn drop_server_request(&self, number: u64) -> bool;

    /// The server cancels its request `id`; returns the number and stream under which the agent
    /// received it.
    fn withdraw_server_request(
        &self,
        link: &Weak<Link>,
        id: &str,
    ) -> Option<(u64, Arc<EventBuffer>)>;

    /// Forgets the requests that the server made over `link` in `epoch`; returns how many.
    fn forget_server_requests(&self, link: &Weak<Link>, epoch: u64) -> usize;

    /// Receives a notification that belongs to no request.
    fn receive_general(&self, server: &Server, notification: &Notification<'_>, body: &Bytes);
}
