//! `limits`, `agent_sessions`: limits on input.

use std::time::Duration;

use crate::problem::code;
use crate::reader::{Reader, section};
use crate::value::{Period, Size, Whole, within};

/// Limits on requests, responses and connections. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Size of a request body from an agent.
    pub body: u64,
    /// Size of a response from a server.
    pub result: u64,
    /// Nesting depth of JSON.
    pub depth: u64,
    /// The header block of a request.
    pub headers: u64,
    /// Time for the header block to arrive.
    pub header_read: Duration,
    /// Total time for a request body to arrive.
    pub body_read: Duration,
    /// Connections at once, on each listener.
    pub connections: u64,
    /// Requests in flight per server.
    pub requests: u64,
}

/// Limits of agent sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSessionsConfig {
    /// Maximum number of agent sessions.
    pub max: u64,
    /// Maximum number of agent sessions of one grant.
    pub per_grant: u64,
    /// Idle time after which an agent session is closed.
    pub idle: Duration,
}

section! {
    foreign = &[("max_body", "did you mean `body`?"), ("timeout", "`timeout` is a key of a server")];
    /// Limits on requests, responses and connections. Sizes: `4MiB`, `512KiB`, or bytes.
    #[schemars(rename = "Limits")]
    struct RawLimits {
        /// Size of a request body from an agent.
        #[schemars(extend("default" = "4MiB"))]
        body: Size,
        /// Size of a response from a server.
        #[schemars(extend("default" = "64MiB"))]
        result: Size,
        /// Nesting depth of JSON.
        #[schemars(extend("default" = 64))]
        depth: Whole,
        /// Size of the header block of a request.
        #[schemars(extend("default" = "32KiB"))]
        headers: Size,
        /// Time for the header block to arrive.
        #[schemars(extend("default" = "10s"))]
        header_read: Period,
        /// Total time for a request body to arrive.
        #[schemars(extend("default" = "60s"))]
        body_read: Period,
        /// Connections per listener. One non-loopback address holds at most half of them.
        #[schemars(extend("default" = 4096))]
        connections: Whole,
        /// Requests in flight per server.
        #[schemars(extend("default" = 4096))]
        requests: Whole,
    }
}

section! {
    /// MCP sessions of agents.
    #[schemars(rename = "AgentSessions")]
    struct RawAgentSessions {
        /// Maximum number of agent sessions.
        #[schemars(extend("default" = 1024))]
        max: Whole,
        /// Maximum number of agent sessions of one grant. Default: a quarter of `max`.
        per_grant: Whole,
        /// Idle time after which an agent session is closed.
        #[schemars(extend("default" = "15m"))]
        idle: Period,
    }
}

impl RawLimits {
    pub(crate) fn lower(self, reader: &mut Reader<'_>) -> Limits {
        let sizes = (Size::kib(1), Size::mib(1024));
        let blocks = (Size::kib(1), Size::mib(1));
        let many = (Whole(1), Whole(1_000_000));
        let reading = (Period::millis(100), Period::secs(300));
        Limits {
            body: within(self.body, sizes, Size::mib(4), reader).0,
            result: within(self.result, sizes, Size::mib(64), reader).0,
            depth: within(self.depth, (Whole(8), Whole(512)), Whole(64), reader).0,
            headers: within(self.headers, blocks, Size::kib(32), reader).0,
            header_read: within(self.header_read, reading, Period::secs(10), reader).0,
            body_read: within(self.body_read, reading, Period::secs(60), reader).0,
            connections: within(self.connections, many, Whole(4096), reader).0,
            requests: within(self.requests, many, Whole(4096), reader).0,
        }
    }
}

impl RawAgentSessions {
    pub(crate) fn lower(self, reader: &mut Reader<'_>) -> AgentSessionsConfig {
        let idle = (Period::secs(1), Period::days(30));
        let many = (Whole(1), Whole(1_000_000));
        let max = within(self.max, many, Whole(1024), reader).0;
        let written = self.per_grant.as_ref().map(|at| at.span);
        let per_grant = within(self.per_grant, many, Whole((max / 4).max(1)), reader).0;
        if let Some(span) = written.filter(|_| per_grant > max) {
            let message = format!("`{per_grant}` is more than `agent_sessions.max`, {max}");
            let hint = "write at most `agent_sessions.max`";
            reader.error_hint(code::OUT_OF_RANGE, span, message, hint);
        }
        AgentSessionsConfig {
            max,
            per_grant,
            idle: within(self.idle, idle, Period::secs(900), reader).0,
        }
    }
}
