//! From the configured servers to those that the gateway runs on.

use std::sync::Arc;

use toolgate_config::{Config, Limits, ServerConfig};
use toolgate_gateway::{AgentSessions, Server};

use super::{Control, State};
use crate::error::{NotActive, WiringError};

/// Creates the servers that a configuration describes.
pub trait Wiring: Send + Sync {
    /// The server of this entry.
    fn server(&self, config: &ServerConfig, limits: &Limits) -> Result<Arc<Server>, WiringError>;
}

impl Control {
    /// The servers to run on; `None` if they are the same as before.
    pub(super) fn wire(
        &self,
        state: &State,
        config: &Config,
        servers: &[ServerConfig],
    ) -> Result<Option<Vec<Arc<Server>>>, NotActive> {
        let before = state.file.as_ref().map(|file| &file.config);
        let same_result = before.is_some_and(|old| old.limits.result == config.limits.result);
        let same_sessions = before.is_some_and(|old| old.agent_sessions == config.agent_sessions);
        if same_result && same_sessions && state.servers == servers {
            return Ok(None);
        }
        let mut wired = Vec::with_capacity(servers.len());
        for server in servers {
            let same = same_result && state.servers.contains(server);
            let running = if same { self.gateway().server(&server.name) } else { None };
            let create = || self.parts.wiring.server(server, &config.limits);
            wired.push(running.map_or_else(create, Ok).map_err(NotActive::Server)?);
        }
        Ok(Some(wired))
    }
}

/// The limits of agent sessions.
pub fn agent_sessions(config: &Config) -> AgentSessions {
    let size = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    let agent_sessions = &config.agent_sessions;
    AgentSessions {
        max: size(agent_sessions.max),
        per_grant: size(agent_sessions.per_grant),
        idle: agent_sessions.idle,
    }
}
