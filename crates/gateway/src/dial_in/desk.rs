//! The desk: what the gateway keeps beside the sessions themselves.

use std::sync::Arc;

use arc_swap::ArcSwap;
use toolgate_policy::Class;
use toolgate_session::{KnownSessionTool, Tool};
use toolgate_upstream::metrics::ServerMetrics;

use super::Sessions;
use super::class::SessionClasses;
use super::schema::Schemas;

/// What the gateway keeps beside the sessions.
pub(crate) struct Desk {
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(super) schemas: Schemas,
    /// The operator's word about single tools.
    classes: ArcSwap<SessionClasses>,
    pub(super) metrics: ServerMetrics,
}

impl Desk {
    pub(crate) fn new(sessions: Arc<dyn Sessions>, metrics: ServerMetrics) -> Self {
        let classes = ArcSwap::default();
        Self { sessions, schemas: Schemas::default(), classes, metrics }
    }

    /// The risk class of a tool, whichever kind of session is called.
    pub(crate) fn class(&self, known: &KnownSessionTool) -> Class {
        self.classes.load().of(known)
    }

    /// The risk class of a tool of sessions of this kind.
    pub(crate) fn class_of_kind(&self, kind: &str, tool: &Tool) -> Class {
        self.classes.load().of_kind(kind, tool)
    }

    pub(crate) fn set_classes(&self, classes: SessionClasses) {
        self.classes.store(Arc::new(classes));
    }
}
