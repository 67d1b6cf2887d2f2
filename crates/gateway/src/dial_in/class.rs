//! Risk classes of session tools.
//!
//! A class set by the operator takes precedence. Otherwise the catalogue judges the definition;
//! curated classes of 1C tools are its floor.
//!
//! Invariant: if several kinds publish a tool and the called one is not known, the strictest class
//! applies.

use std::collections::HashMap;

use toolgate_catalog::{Class, Definition, classify_session, session_class};
use toolgate_session::{KnownSessionTool, Tool};

/// Classes set by the operator: for all kinds, and for kinds with their own settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionClasses {
    /// For kinds without their own settings.
    pub common: HashMap<String, Class>,
    /// For the others, complete.
    pub kinds: HashMap<String, HashMap<String, Class>>,
}

impl SessionClasses {
    /// The class of a tool that a grant knows, whichever kind of session is called.
    pub fn of(&self, known: &KnownSessionTool) -> Class {
        let classes =
            known.offered.iter().map(|offered| self.of_kind(&offered.kind, &offered.tool));
        classes.reduce(Class::raised).unwrap_or_else(|| session_class(&known.original))
    }

    /// The class of a tool of sessions of this kind.
    pub(super) fn of_kind(&self, kind: &str, tool: &Tool) -> Class {
        let set = self.kinds.get(kind).unwrap_or(&self.common).get(&*tool.name);
        set.copied().unwrap_or_else(|| by_itself(tool))
    }
}

/// The class of a tool that has no configured class.
fn by_itself(tool: &Tool) -> Class {
    match Definition::parse(tool.raw.get()) {
        Ok(definition) => classify_session(&definition).class,
        Err(_) => session_class(&tool.name),
    }
}
