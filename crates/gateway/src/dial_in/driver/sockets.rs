//! What the owners of sockets report to the driver, and the commands they receive.
//!
//! Invariant: a call is written only after its [`Gate`] has opened; otherwise the owner of the socket
//! reports it with [`SessionDriver::not_sent`].

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use toolgate_admission::auth_failures::Peer;
use toolgate_session::{CallNumber, Input, SessionEvent, SessionEventKind, SocketId, SocketToken};

use super::{SessionDriver, off_worker};
use crate::dial_in::{Gate, Note};

/// A text of more bytes than this takes long to parse.
const LONG: usize = 256 * 1024;

/// What the owner of a socket has to do.
#[derive(Debug)]
pub enum SocketCommand {
    /// Send a text frame.
    Text(Bytes),
    /// Send the frame of a call, if the call may still be written.
    Call {
        /// The call, for [`SessionDriver::not_sent`].
        call: CallNumber,
        /// The text.
        frame: Bytes,
        /// Decides whether the call may still be written.
        gate: Arc<Gate>,
    },
    /// Send a ping.
    Ping,
    /// Answer a ping with its payload.
    Pong(Vec<u8>),
    /// Close with this code and reason, and wait for the peer's close frame.
    Close(u16, &'static str),
    /// Close without waiting for the peer.
    Drop(u16, &'static str),
}

impl SessionDriver {
    /// Adds a socket of the program at `peer`; its commands go to `commands`.
    pub fn open_socket(
        &self,
        commands: mpsc::Sender<SocketCommand>,
        token: Arc<SocketToken>,
        peer: Option<Peer>,
    ) -> SocketId {
        let socket = SocketId(self.number());
        let mut evicted = None;
        {
            let mut state = self.state.lock();
            state.sockets.insert(socket, commands);
            state.unregistered.push_back(socket);
            if state.unregistered.len() > self.environment.max_unregistered
                && let Some(oldest) = state.unregistered.pop_front()
                && state.machine.is_anonymous(oldest)
            {
                let reason = "too many sockets without register";
                state.command(oldest, SocketCommand::Drop(4002, reason));
                evicted = Some(oldest);
            }
        }
        if evicted.is_some() {
            self.record(
                SessionEventKind::TooMany,
                evicted,
                "closed: too many have not registered".to_owned(),
            );
        }
        let peer = peer.map(|Peer(address)| address);
        self.handle(Input::Opened { socket, token, peer });
        socket
    }

    /// Removes a socket that is closed or lost.
    pub fn close_socket(&self, socket: SocketId) {
        self.state.lock().sockets.remove(&socket);
        self.handle(Input::Closed { socket });
    }

    /// Receives a text frame; true if it has answered a call. The text is parsed before the lock is
    /// taken, and a long one off the runtime's worker threads.
    pub fn receive_text(&self, socket: SocketId, text: &str) -> bool {
        let reader = self.state.lock().machine.reader();
        let spoken = off_worker(text.len() > LONG, || reader.read(text));
        self.handle(Input::Spoken { socket, spoken })
    }

    /// Receives any other frame, which shows that the peer is alive.
    pub fn receive_other(&self, socket: SocketId) {
        self.handle(Input::Alive { socket });
    }

    /// A call was not written, because its gate did not open.
    pub fn not_sent(&self, call: CallNumber) {
        self.handle(Input::Unsent { call });
    }

    /// Queues a command for a socket.
    pub fn command(&self, socket: SocketId, command: SocketCommand) {
        self.state.lock().command(socket, command);
    }

    /// Records an event that the machine does not see.
    pub fn record(&self, what: SessionEventKind, socket: Option<SocketId>, text: String) {
        let event = SessionEvent { what, session_id: None, socket, text };
        (self.environment.record)(Note::Event(event));
    }
}
