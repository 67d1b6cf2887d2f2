//! The state of the console: who is signed in, wrong tokens, recent activity.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_admin::Admin;

use crate::activity::Activity;
use crate::sign_ins::SignIns;
use crate::throttle::Throttle;

/// What the console needs to know of its listener.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConsoleSettings {
    /// Whether people reach it over TLS; cookies are then bound to this host.
    pub https: bool,
}

/// The console.
pub struct Console {
    pub(crate) admin: Arc<Admin>,
    pub(crate) settings: ConsoleSettings,
    pub(crate) sign_ins: Mutex<SignIns>,
    pub(crate) throttle: Mutex<Throttle>,
    pub(crate) activity: tokio::sync::Mutex<Activity>,
}

impl Console {
    /// A console of this API.
    pub fn new(admin: Arc<Admin>, settings: ConsoleSettings) -> Arc<Self> {
        Arc::new(Self {
            admin,
            settings,
            sign_ins: Mutex::default(),
            throttle: Mutex::default(),
            activity: tokio::sync::Mutex::default(),
        })
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}
