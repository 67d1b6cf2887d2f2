//! The machine: all sockets, sessions and calls.
//!
//! [`SessionMachine::handle`] is the only entry for changes: it takes an event and returns actions.
//! Queries are in `route.rs` (the target of a call), `catalog.rs` (the list for an agent) and
//! `list.rs` (the list for people).
//!
//! Invariant: no clock, no randomness, no I/O; equal inputs give equal outputs.
//! Invariant: a started call ends exactly once; a frame is never sent twice. Tested by
//! `machine/tests/` case by case and by `sim/` under a faulty network.
//! Start at [`SessionMachine::handle`], then `machine/join.rs`, `machine/call.rs`,
//! `machine/answer.rs`.

mod answer;
mod call;
mod join;
mod part;
mod room;
mod session;
mod socket;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub(crate) use self::session::Session;
use self::socket::Socket;
pub(crate) use self::socket::SocketOwner;
use crate::entry::ShowcaseEntry;
use crate::io::{
    CallAnswer, CallNumber, Input, Output, Outputs, SessionEvent, SessionEventKind, SocketId,
    ViewId,
};
use crate::parsed_frame::FrameParser;
use crate::pool::Pool;
use crate::reach::Reach;
use crate::settings::SessionSettings;
use crate::showcase::Showcase;
use crate::time::Millis;
use crate::timers::{Timer, Timers};

/// All sessions of the process.
#[derive(Debug)]
pub struct SessionMachine {
    pub(crate) settings: SessionSettings,
    pub(crate) now: Millis,
    pub(crate) sockets: BTreeMap<SocketId, Socket>,
    pub(crate) by_uid: BTreeMap<Arc<str>, Session>,
    /// The sessions that publish each tool name.
    pub(crate) serving: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    pub(crate) showcase: Showcase,
    /// The session of each call that has a slot or is queued.
    calls: HashMap<CallNumber, Arc<str>>,
    /// The call of each id on the wire.
    wires: HashMap<String, (Arc<str>, CallNumber)>,
    /// Numbers ids on the wire.
    sent: u64,
    /// Numbers sessions, to distinguish one from a later one with the same uid.
    lives: u64,
    timers: Timers,
    pool: Pool,
    views: BTreeMap<ViewId, View>,
    revision: u64,
    out: Vec<Output>,
}

/// A subscriber to list changes.
#[derive(Debug)]
struct View {
    reach: Arc<Reach>,
    /// The digest of the list at the last notification.
    digest: [u8; 32],
}

impl SessionMachine {
    /// Starts with the stored showcase.
    pub fn new(
        settings: SessionSettings,
        showcase: impl IntoIterator<Item = ShowcaseEntry>,
        now: Millis,
    ) -> Self {
        let pool = Pool::default();
        let showcase = showcase
            .into_iter()
            .map(|entry| ShowcaseEntry { tools: pool.share(&entry.tools), ..entry });
        let showcase = Showcase::new(showcase);
        let mut sessions = Self {
            settings,
            now,
            sockets: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            serving: BTreeMap::new(),
            showcase,
            calls: HashMap::new(),
            wires: HashMap::new(),
            sent: 0,
            lives: 0,
            timers: Timers::default(),
            pool,
            views: BTreeMap::new(),
            revision: 0,
            out: Vec::new(),
        };
        sessions.time_showcase();
        sessions
    }

    /// Parses frames for [`Input::Spoken`] without locking the machine.
    pub fn reader(&self) -> FrameParser {
        FrameParser { pool: self.pool.clone(), max_tools: self.settings.max_tools }
    }

    /// Handles an event; returns the actions.
    pub fn handle(&mut self, input: Input<'_>, now: Millis) -> Outputs {
        self.now = self.now.max(now);
        while let Some(timer) = self.timers.pop(self.now) {
            self.fire(timer);
        }
        match input {
            Input::Opened { socket, token, peer } => self.opened(socket, token, peer),
            Input::Frame { socket, text } => {
                let spoken = self.reader().read(text);
                self.spoken(socket, spoken);
            }
            Input::Spoken { socket, spoken } => self.spoken(socket, spoken),
            Input::Alive { socket } => self.alive(socket),
            Input::Closed { socket } => self.closed(socket),
            Input::Call(call) => self.admit(call),
            Input::Cancel { call } => self.cancel(call),
            Input::Unsent { call } => self.unsent(call),
            Input::Watch { view, reach } => {
                let digest = self.list_source(&reach).digest();
                self.views.insert(view, View { reach, digest });
            }
            Input::Unwatch { view } => {
                self.views.remove(&view);
            }
            Input::Revoke { token } => self.revoke(token),
            Input::Stop => self.stop(),
            Input::Wake => {}
        }
        self.done()
    }

    /// Sets the names of all active servers.
    pub fn set_servers(&mut self, servers: Vec<String>, now: Millis) -> Outputs {
        self.now = self.now.max(now);
        if self.settings.servers != servers {
            self.settings.servers = servers;
            self.lists_may_differ();
        }
        self.done()
    }

    /// Applies new settings; running calls retain their deadline. The servers stay those of
    /// [`SessionMachine::set_servers`].
    pub fn reconfigure(&mut self, settings: SessionSettings, now: Millis) -> Outputs {
        self.now = self.now.max(now);
        let servers = std::mem::take(&mut self.settings.servers);
        self.settings = SessionSettings { servers, ..settings };
        if !self.settings.showcase {
            self.showcase.clear();
        }
        self.time_showcase();
        let uids: Vec<Arc<str>> = self.by_uid.keys().cloned().collect();
        for uid in uids {
            self.time_idle(&uid);
            self.pump(&uid);
        }
        self.lists_may_differ();
        self.done()
    }

    /// Changes whenever any list may have changed; until then a list may be cached.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the collected actions.
    pub(crate) fn done(&mut self) -> Outputs {
        Outputs { list: std::mem::take(&mut self.out), wake_at: self.timers.next() }
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Socket(socket) => self.socket_due(socket),
            Timer::Grace(uid) => self.grace_over(&uid),
            Timer::Idle(uid) => self.idle_due(&uid),
            Timer::Call(call) => self.call_due(call),
            Timer::Lists => self.notify_views(),
            Timer::Showcase => self.evict(),
        }
    }

    /// Schedules the notification of views whose list has changed.
    pub(crate) fn lists_may_differ(&mut self) {
        self.revision += 1;
        if !self.timers.is_set(&Timer::Lists) {
            self.timers.set(Timer::Lists, self.now.after(self.settings.coalesce));
        }
    }

    fn notify_views(&mut self) {
        let views: Vec<(ViewId, Arc<Reach>)> =
            self.views.iter().map(|(id, view)| (*id, Arc::clone(&view.reach))).collect();
        for (id, reach) in views {
            let digest = self.list_source(&reach).digest();
            if let Some(view) = self.views.get_mut(&id)
                && view.digest != digest
            {
                view.digest = digest;
                self.out.push(Output::ListChanged { view: id });
            }
        }
    }

    fn evict(&mut self) {
        for key in self.showcase.evict(self.now, self.settings.showcase_life) {
            self.out.push(Output::Forget(key));
            self.lists_may_differ();
        }
        self.time_showcase();
    }

    /// Schedules the eviction of the oldest entry.
    pub(crate) fn time_showcase(&mut self) {
        match self.showcase.oldest() {
            Some(oldest) => {
                self.timers.set(Timer::Showcase, oldest.after(self.settings.showcase_life));
            }
            None => self.timers.clear(&Timer::Showcase),
        }
    }

    pub(crate) fn push(&mut self, output: Output) {
        self.out.push(output);
    }

    fn event(
        &mut self,
        what: SessionEventKind,
        session_id: Option<&Arc<str>>,
        socket: Option<SocketId>,
        text: impl Into<String>,
    ) {
        let session_id = session_id.cloned();
        self.out.push(Output::Event(SessionEvent { what, session_id, socket, text: text.into() }));
    }

    fn answer(&mut self, answer: CallAnswer) {
        self.out.push(Output::Answer(answer));
    }
}
