//! The definition of one tool, for people.
//!
//! Invariant: nothing here sends a request to a server; only cached lists are used.

use std::sync::Arc;

use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::{SESSIONS, TOOLGATE};
use toolgate_session::Reach;
use toolgate_upstream::list_cache::ClientProfile;
use toolgate_upstream::lists::definition;

use crate::aggregate::builtin;
use crate::gateway::Gateway;

impl Gateway {
    /// The definition of a tool as raw JSON: of a server under its own name, of a session under the
    /// name it is published under. `None` if it is not in the last list.
    pub fn tool_definition(&self, server: &str, tool: &str) -> Option<String> {
        match server {
            TOOLGATE => {
                let found = builtin::TABLE.iter().find(|one| one.name == tool)?;
                Some(found.definition.to_owned())
            }
            SESSIONS => {
                let published = self.dial_in()?.driver.tools(&Arc::new(Reach::default()));
                let found = published.list().entries().find(|(name, _)| *name == tool);
                found.map(|(_, json)| json.to_owned())
            }
            name => {
                let server = self.server(name)?;
                let listed = server.list_cache.of(&ClientProfile::default())?;
                let list = listed.list(Kind::Tools);
                let (own, shown) = list.entries().find(|(own, _)| *own == tool)?;
                definition(Kind::Tools, &server.naming, own, shown)
            }
        }
    }
}
