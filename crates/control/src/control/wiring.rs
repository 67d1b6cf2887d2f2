//! From the configured servers to those that the gateway runs on.

use std::sync::Arc;

use toolgate_config::{Config, Limits, ServerConfig, Transport};
use toolgate_gateway::{AgentSessions, Server};

use super::{Control, State};
use crate::error::{NotActive, WiringError};
use crate::finding::Finding;

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

impl Control {
    /// The server of an entry that is not added yet, with a process of its own.
    pub async fn unadded_server(&self, name: &str, entry: &str) -> Result<Arc<Server>, NotUsable> {
        let (mut config, _) =
            self.added_servers().checked(name, entry).map_err(NotUsable::Entry)?;
        if let Transport::Stdio(stdio) = &mut config.transport {
            stdio.shared = false;
        }
        let state = self.state.lock().await;
        let limits = state.file.as_ref().map(|file| file.config.limits.clone());
        drop(state);
        let limits =
            limits.ok_or_else(|| NotUsable::Wiring("no configuration is active".into()))?;
        self.parts.wiring.server(&config, &limits).map_err(NotUsable::Wiring)
    }
}

/// Why an entry gives no server.
#[derive(Debug, thiserror::Error)]
pub enum NotUsable {
    /// The entry is not valid.
    #[error("the server's entry is not valid")]
    Entry(Vec<Finding>),
    /// The server cannot be created.
    #[error(transparent)]
    Wiring(WiringError),
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
