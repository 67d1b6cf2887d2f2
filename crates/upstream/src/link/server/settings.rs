//! The configuration of a server.

use std::collections::HashMap;
use std::time::Duration;

use toolgate_policy::Class;

use crate::pins::PinMode;
use crate::results::Results;

/// Whether agents share one channel to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instances {
    /// Each agent session has its own child or HTTP session.
    PerAgent,
    /// All agent sessions use one.
    Shared,
}

/// The configuration of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Its name, the `<server>` of `/mcp/<server>`.
    pub name: String,
    /// Whether agents share one channel.
    pub instances: Instances,
    /// How long a request may take.
    pub timeout: Duration,
    /// How long the start and the handshake may take.
    pub start_timeout: Duration,
    /// How long a handshake made on behalf of an agent that is already connected may take.
    pub reconnect_timeout: Duration,
    /// Tools with a timeout of their own.
    pub tool_timeouts: HashMap<String, Duration>,
    /// Tools whose risk class is configured.
    pub tool_classes: HashMap<String, Class>,
    /// Whether its tools are shown under their bare names on `/mcp`.
    pub bare_names: bool,
    /// How many requests may be in flight at once, for all agents together.
    pub max_requests: usize,
    /// Whether failed starts are delayed (children; an HTTP connection is cheap to try).
    pub backs_off: bool,
    /// What happens to new and changed definitions of its tools.
    pub pin: PinMode,
    /// Whether arguments are checked against the schemas of its tools.
    pub validate: bool,
    /// What happens to control and invisible characters in its tool results.
    pub results: Results,
}
