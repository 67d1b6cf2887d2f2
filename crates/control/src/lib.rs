//! The control plane: what is active and why. File and store, their precedence, the edits that the
//! audit records, the read model of the admin API, the safety checks of a start.
//!
//! Precedence, each rule tested where it is implemented:
//! * a policy or server of the file shadows one of the store of the same name (`policies`,
//!   `added_servers`);
//! * a revocation in the store overrides a grant or person of the file (`access`, `people`);
//! * a grant of the file cannot take the label of a stored one (`access`);
//! * the first grant of either side ends local mode (`local_mode`);
//! * a wrong policy of the file keeps the whole file from becoming active, one of the store denies
//!   everything to its grants (`policies`).
//!
//! Invariant: nothing becomes active that has an error; the previous state stays.
//! Invariant: every change is in the audit before it takes effect.
//!
//! Start at [`Control`].

mod access;
mod added_servers;
pub mod attention;
mod checked_policies;
mod control;
mod edits;
mod error;
mod finding;
mod inputs;
mod last_reload;
mod literal_secrets;
pub mod local_mode;
pub mod notice;
pub mod offline;
mod people;
mod plan;
mod policies;
pub mod policy_check;
mod read_model;
pub mod session_settings;
mod stdio_bridge;
mod surroundings;
#[cfg(test)]
mod test_config;
pub mod trusted;
pub mod unsafe_start;
mod view;
mod visible;

pub use access::LabelTaken;
pub use added_servers::{AddedServers, SERVERS};
pub use control::{AcceptedPolicy, Control, NotUsable, Parts, Summary, Wiring, agent_sessions};
pub use error::{NotAccepted, NotActive, NotChanged, WiringError};
pub use finding::Finding;
pub use inputs::{Inputs, Recording};
pub use last_reload::LastReload;
pub use local_mode::LocalMode;
pub use people::{People, Person};
pub use plan::{CounterReset, Difference, Outlook, Plan, ToolDecision};
pub use policies::{BUILT_IN, FileState, LOCAL, PolicyError, PolicyErrors, PolicyFiles};
pub use policy_check::{Checked, Rejected};
pub use stdio_bridge::{STDIO, StdioBridge};
pub use surroundings::ThisProcess;
pub use toolgate_config::Role;
pub use view::{
    FreezeItem, GrantItem, Origin, PersonItem, PolicyItem, PolicyState, PolicyText, ServerItem,
    View,
};
pub use visible::visible;
