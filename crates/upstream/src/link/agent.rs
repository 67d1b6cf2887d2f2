//! An agent session as a link knows it.
//!
//! Links know agents by this trait alone, so that they depend on nothing that an agent session is
//! made of.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use toolgate_admission::caller::Caller;
use toolgate_mcp::Notification;

use super::asked::Asked;
use super::{Link, Server};
use crate::event_buffer::Outlet;
use crate::resubscribe::Wishes;

/// One agent that speaks through a link.
pub trait Agent: Caller + 'static {
    /// What opens a conversation with a server on its behalf: the `params` of `initialize`.
    fn opening(&self) -> &Bytes;

    /// Whether it sees one server, under the names that the server itself uses.
    fn sees_one_server(&self) -> bool;

    /// Whether it stands for clients of protocol 2026-07-28.
    fn is_standing(&self) -> bool;

    /// The stream of what belongs to no request.
    fn general(&self) -> &Arc<Outlet>;

    /// What it asked of servers that they forget when they are lost.
    fn wishes(&self) -> &Wishes;

    /// Remembers a server's request; the number is the id under which the agent is asked. None if
    /// too many have no answer yet.
    fn ask(&self, asked: Asked) -> Option<u64>;

    /// The call that asked this goes on without an answer; false if it had one.
    fn unask(&self, number: u64) -> bool;

    /// The server withdraws its request `id`: under which number, and where, the agent was asked.
    fn withdraw_asked(&self, link: &Weak<Link>, id: &str) -> Option<(u64, Arc<Outlet>)>;

    /// Forgets what was asked over that link in that epoch; how many questions those were.
    fn forget_asked(&self, link: &Weak<Link>, epoch: u64) -> usize;

    /// Receives a notification that belongs to no request.
    fn hear_general(&self, server: &Server, notification: &Notification<'_>, body: &Bytes);
}
