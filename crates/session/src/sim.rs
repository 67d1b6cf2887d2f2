//! The simulator: clients, agents and a faulty network against the machine, on virtual time.
//!
//! Everything follows from one number, the seed. Clients behave as real ones: some never read a
//! response and do not register again, some reconnect every few seconds, some answer late, twice,
//! or not at all. The network delays, loses and leaves sockets half open; both sides restart. After
//! every step `checker.rs`, which has its own model and shares no code with the machine, checks
//! every promise.
//!
//! Start at [`run`]; `client.rs` and `agent.rs` are the participants, `tests.rs` runs the seeds.

mod agent;
mod checker;
mod client;
mod misbehave;
mod model;
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use toolgate_dice::Dice;

use self::checker::{Checker, Observed};
use self::client::{Client, Profile};
use crate::{
    CallNumber, Input, KindSettings, Millis, Output, Reach, SessionCall, SessionMachine,
    SessionSettings, ShowcaseEntry, SocketId, SocketToken, ViewId,
};

/// How often each situation was reached.
pub(crate) type Stats = BTreeMap<&'static str, u64>;

/// How long the simulation runs, and how long it then has to settle.
const LIFE: u64 = 110_000;
const REST: u64 = 400_000;

/// Runs one simulation. The error states which promise was broken, and when.
pub(crate) fn run(seed: u64) -> Result<Stats, String> {
    let mut world = Simulation::new(seed);
    world.live()?;
    Ok(world.judge.stats)
}

struct Simulation {
    rng: Dice,
    now: Millis,
    agenda: BTreeMap<(Millis, u64), ScheduledEvent>,
    planned: u64,
    settings: SessionSettings,
    gate: SessionMachine,
    wake_at: Option<Millis>,
    clients: Vec<Client>,
    links: BTreeMap<SocketId, Link>,
    reaches: Vec<Arc<Reach>>,
    judge: Checker,
    sockets: u64,
    calls: u64,
    /// `TOOLGATE_TRACE=1` prints every step.
    trace: bool,
}

/// A scheduled event.
#[derive(Debug)]
enum ScheduledEvent {
    /// A client opens a socket.
    Connect(usize),
    /// A client does something unprompted.
    Whim(usize),
    /// A client has finished a call.
    Finish { client: usize, process: u32, wire: String, tag: u64 },
    /// A frame reaches the gate.
    ToGate(SocketId, String),
    /// A pong reaches the gate.
    Pong(SocketId),
    /// The gate learns that a socket is closed.
    GateHangs(SocketId),
    /// A frame reaches the client.
    ToClient(SocketId, String),
    /// The client notices that its socket is gone.
    ClientHangs(SocketId),
    /// An agent calls.
    Ask(usize),
    /// A resolved call is admitted.
    Admit(Box<SessionCall>),
    /// A call is cancelled.
    Cancel(CallNumber),
    /// The gate restarts.
    Restart { crash: bool },
}

/// The network between a client and the gate.
struct Link {
    client: usize,
    process: u32,
    /// Frames are lost in both directions without a notification.
    half_open: bool,
    /// The gate knows that it is closed.
    closed: bool,
    /// Frames arrive in order: the arrival of the last one.
    up: Millis,
    down: Millis,
    slowness: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Dice::new(seed);
        let settings = settings(&mut rng);
        let clients = client::population(&mut rng);
        let now = Millis(1_000_000);
        let reaches = agent::reaches();
        let gate = SessionMachine::new(settings.clone(), [], now);
        let mut world = Self {
            judge: Checker::new(&settings),
            rng,
            now,
            agenda: BTreeMap::new(),
            planned: 0,
            settings,
            gate,
            wake_at: None,
            clients,
            links: BTreeMap::new(),
            reaches,
            sockets: 0,
            calls: 0,
            trace: std::env::var_os("TOOLGATE_TRACE").is_some(),
        };
        for client in 0..world.clients.len() {
            let (first, misbehave) = (world.rng.below(5_000), world.rng.below(20_000));
            world.plan(first, ScheduledEvent::Connect(client));
            world.plan(misbehave, ScheduledEvent::Whim(client));
        }
        for agent in 0..world.reaches.len() {
            let first = world.rng.below(6_000);
            world.plan(first, ScheduledEvent::Ask(agent));
        }
        if world.rng.chance(60) {
            let (at, crash) = (world.rng.below(LIFE), world.rng.chance(50));
            world.plan(at, ScheduledEvent::Restart { crash });
        }
        world
    }

    fn live(&mut self) -> Result<(), String> {
        self.watch()?;
        let end = self.now.after(Duration::from_millis(LIFE + REST));
        loop {
            let planned = self.agenda.first_key_value().map(|((at, _), _)| *at);
            match (planned, self.wake_at) {
                (planned, Some(wake)) if planned.is_none_or(|at| wake <= at) => {
                    if wake > end {
                        break;
                    }
                    self.now = self.now.max(wake);
                    self.gate_sees(Input::Wake, &Observed::Nothing)?;
                }
                (Some(at), _) if at <= end => {
                    self.now = self.now.max(at);
                    if let Some((_, happening)) = self.agenda.pop_first() {
                        self.happen(happening)?;
                    }
                }
                _ => break,
            }
        }
        self.judge.at_rest().map_err(|what| self.blame(&what))
    }

    /// Whether clients and agents are still active, or the simulation settles.
    fn is_alive(&self) -> bool {
        self.now.0 < 1_000_000 + LIFE
    }

    fn happen(&mut self, happening: ScheduledEvent) -> Result<(), String> {
        match happening {
            ScheduledEvent::Connect(client) => self.connect(client),
            ScheduledEvent::Whim(client) => self.misbehave(client),
            ScheduledEvent::Finish { client, process, wire, tag } => {
                self.finish(client, process, &wire, tag);
                Ok(())
            }
            ScheduledEvent::ToGate(socket, text) => {
                let lost = self.links.get(&socket).is_none_or(|link| link.half_open || link.closed);
                if lost {
                    return Ok(());
                }
                let seen = Observed::frame(socket, &text);
                self.gate_sees(Input::Frame { socket, text: &text }, &seen)
            }
            ScheduledEvent::Pong(socket) => {
                if self.links.get(&socket).is_none_or(|link| link.half_open || link.closed) {
                    return Ok(());
                }
                self.gate_sees(Input::Alive { socket }, &Observed::Nothing)
            }
            ScheduledEvent::GateHangs(socket) => {
                match self.links.get_mut(&socket) {
                    Some(link) if !link.closed => link.closed = true,
                    _ => return Ok(()),
                }
                self.gate_sees(Input::Closed { socket }, &Observed::Closed(socket))
            }
            ScheduledEvent::ToClient(socket, text) => {
                if self.links.get(&socket).is_some_and(|link| !link.half_open) {
                    self.client_hears(socket, &text);
                }
                Ok(())
            }
            ScheduledEvent::ClientHangs(socket) => {
                self.client_hangs(socket);
                Ok(())
            }
            ScheduledEvent::Ask(agent) => self.ask(agent),
            ScheduledEvent::Admit(call) => {
                let seen = Observed::call(&call);
                self.gate_sees(Input::Call(*call), &seen)
            }
            ScheduledEvent::Cancel(call) => {
                self.gate_sees(Input::Cancel { call }, &Observed::Cancel(call))
            }
            ScheduledEvent::Restart { crash } => self.restart(crash),
        }
    }

    /// The only way into the machine: the checker observes it too.
    fn gate_sees(&mut self, input: Input<'_>, seen: &Observed) -> Result<(), String> {
        let outputs = self.gate.handle(input, self.now);
        self.wake_at = outputs.wake_at;
        if self.trace {
            println!("{} {seen:?}\n    {:?}", self.now.0 - 1_000_000, outputs.list);
        }
        let verdict = self.judge.observe(seen, &outputs.list, self.now, &self.gate);
        verdict.map_err(|what| self.blame(&what))?;
        for output in outputs.list {
            self.carry_out(output);
        }
        Ok(())
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Send { socket, frame } | Output::SendCall { socket, frame, .. } => {
                let text = String::from_utf8_lossy(&frame).into_owned();
                if let Some(wait) = self.delay(socket, false) {
                    self.plan(wait, ScheduledEvent::ToClient(socket, text));
                }
            }
            Output::Ping { socket } => {
                if let Some(wait) = self.delay(socket, true) {
                    self.plan(wait, ScheduledEvent::Pong(socket));
                }
            }
            Output::Close { socket, .. } => {
                let (gate, client) = (self.rng.below(1_500), self.rng.below(1_500));
                self.plan(gate, ScheduledEvent::GateHangs(socket));
                self.plan(client, ScheduledEvent::ClientHangs(socket));
            }
            _ => {}
        }
    }

    /// The arrival time of a frame that is sent now.
    fn delay(&mut self, socket: SocketId, up: bool) -> Option<u64> {
        let link = self.links.get_mut(&socket)?;
        let arrives = self.now.after(Duration::from_millis(self.rng.below(link.slowness)));
        let last = if up { &mut link.up } else { &mut link.down };
        *last = arrives.max(*last);
        Some(last.0 - self.now.0)
    }

    fn plan(&mut self, wait: u64, happening: ScheduledEvent) {
        self.planned += 1;
        let at = self.now.after(Duration::from_millis(wait));
        self.agenda.insert((at, self.planned), happening);
    }

    fn watch(&mut self) -> Result<(), String> {
        let (view, reach) = (ViewId(1), Arc::clone(&self.reaches[0]));
        self.judge.watches(self.gate.published(&reach).digest);
        self.gate_sees(Input::Watch { view, reach }, &Observed::Nothing)
    }

    fn restart(&mut self, crash: bool) -> Result<(), String> {
        if !crash {
            self.gate_sees(Input::Stop, &Observed::Stop)?;
        }
        let entries: Vec<ShowcaseEntry> =
            self.gate.showcase().map(|entry| ShowcaseEntry::clone(entry)).collect();
        self.gate = SessionMachine::new(self.settings.clone(), entries, self.now);
        self.wake_at = None;
        self.judge.restart(crash).map_err(|what| self.blame(&what))?;
        let sockets: Vec<SocketId> = self.links.keys().copied().collect();
        for socket in sockets {
            let open = self
                .links
                .get_mut(&socket)
                .is_some_and(|link| !std::mem::replace(&mut link.closed, true));
            if open {
                let notices = self.rng.below(3_000);
                self.plan(notices, ScheduledEvent::ClientHangs(socket));
            }
        }
        self.agenda.retain(|_, happening| !matches!(happening, ScheduledEvent::Admit(_)));
        self.watch()
    }

    fn blame(&self, what: &str) -> String {
        format!("at {} ms: {what}", self.now.0 - 1_000_000)
    }
}

/// Short times, so that a few minutes see everything.
fn settings(rng: &mut Dice) -> SessionSettings {
    let grace = 2_000 + rng.below(14_000);
    let common = KindSettings {
        queue: 2 + rng.below(7),
        late_answer: Duration::from_millis(rng.below(8_000)),
        timeout: Duration::from_millis(3_000 + rng.below(9_000)),
        ..KindSettings::default()
    };
    let server = KindSettings {
        reconnect_wait: Duration::from_millis(1_000 + rng.below(4_000)),
        timeout: Duration::from_millis(8_000 + rng.below(30_000)),
        no_deadline: true,
        ..common.clone()
    };
    SessionSettings {
        ping_interval: rng.chance(90).then(|| Duration::from_millis(2_000 + rng.below(4_000))),
        dead_after: Duration::from_millis(8_000 + rng.below(8_000)),
        register_within: Duration::from_millis(grace + 1_000),
        grace: Duration::from_millis(grace),
        rebind: rng.chance(90),
        common,
        kinds: BTreeMap::from([("server".to_owned(), server)]),
        ..SessionSettings::default()
    }
}

fn token(id: Option<u32>) -> Arc<SocketToken> {
    Arc::new(SocketToken { id, ..SocketToken::default() })
}

impl Profile {
    /// Whether it registers on every socket it opens.
    fn registers_again(self) -> bool {
        !matches!(self, Self::Thin)
    }
}
