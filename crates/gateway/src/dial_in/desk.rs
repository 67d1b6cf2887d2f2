//! The desk: what the gateway keeps beside the sessions themselves.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use toolgate_policy::Class;
use toolgate_upstream::metrics::ServerMetrics;

use super::schema::Schemas;
use super::{Sessions, class};

/// What the gateway keeps beside the sessions.
pub(crate) struct Desk {
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(super) schemas: Schemas,
    /// The operator's word about single tools.
    classes: ArcSwap<HashMap<String, Class>>,
    pub(super) metrics: ServerMetrics,
}

impl Desk {
    pub(crate) fn new(sessions: Arc<dyn Sessions>, metrics: ServerMetrics) -> Self {
        let classes = ArcSwap::default();
        Self { sessions, schemas: Schemas::default(), classes, metrics }
    }

    /// The risk class of a tool, by the name that its clients use.
    pub(crate) fn class(&self, tool: &str) -> Class {
        self.classes.load().get(tool).copied().unwrap_or_else(|| class::class(tool))
    }

    pub(crate) fn set_classes(&self, classes: HashMap<String, Class>) {
        self.classes.store(Arc::new(classes));
    }
}
