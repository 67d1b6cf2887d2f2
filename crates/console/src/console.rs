//! The state of the console: who is signed in, wrong tokens, recent activity.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use parking_lot::Mutex;
use toolgate_admin::Admin;

use crate::activity::Activity;
use crate::sign_ins::SignIns;
use crate::throttle::Throttle;

/// What the console needs to know of its listener.
#[derive(Debug, Clone, Default)]
pub struct ConsoleSettings {
    /// Whether its listener has TLS.
    pub https: bool,
    /// The address in links (`public_url`).
    pub public_url: Option<String>,
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

    /// Whether the person of this request has a TLS connection: to this listener, or to the proxy
    /// whose address is `public_url`. Cookies are then bound to the host.
    pub(crate) fn is_https(&self, headers: &HeaderMap) -> bool {
        let url = self.settings.public_url.as_deref().unwrap_or_default();
        let public = url.strip_prefix("https://").and_then(|rest| rest.split('/').next());
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_public =
            public.zip(host).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other));
        self.settings.https || is_public
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}
