//! What toolgate knows about tools.
//!
//! | to | use |
//! |---|---|
//! | judge the risk of a definition | [`classify`] |
//! | judge a name alone | [`Class::by_name`] |
//! | judge a tool of a session | [`classify_session`] |
//! | recommend a rule, write a policy | [`recommended()`], [`policy_document`] |
//! | tell what could go wrong | [`what_could_go_wrong`], [`attack_patterns`], [`trifecta()`] |
//! | find hidden characters, show them | [`hidden_text`], [`draw`] |
//! | recognise a definition, its changes, its new name | [`fingerprint()`], [`diff()`], [`former_name`] |
//! | find names that people confuse | [`shadowing`] |
//! | look up public servers, compare with them | [`Catalogue`] |
//! | read a dump of an MCP registry | [`read_registry`] |
//!
//! Invariant: pure. No clock, no files, no network, no model; the same definition gives the same
//! assessment, and every assessment names what led to it.
//! Start at [`classify`]; `name` and `prose` read words, `lexicon` holds them.

mod arguments;
mod attack;
mod catalogue;
mod class;
mod classify;
mod definition;
mod diff;
mod document;
mod fingerprint;
mod hazard;
mod hidden;
mod label;
mod lexicon;
mod name;
mod onec;
mod passive;
mod person;
mod prose;
mod prose_words;
mod recommend;
mod registry;
mod shadow;
mod signal;
mod trifecta;
mod words;

pub use attack::{AttackPattern, attack_patterns};
pub use catalogue::{
    BadCatalogue, Catalogue, CatalogueComparison, CatalogueMatch, CatalogueServer, CatalogueSignal,
    CatalogueTool,
};
pub use class::{Class, Level};
pub use classify::{Assessment, classify};
pub use definition::{Argument, Definition, Hints, NotADefinition};
pub use diff::{FieldChange, Piece, diff};
pub use document::{PolicyItem, escape_glob, policy_document, policy_key};
pub use fingerprint::{body_fingerprint, digest, fingerprint, former_name, is_renamed};
pub use hazard::what_could_go_wrong;
pub use hidden::{HiddenKind, HiddenText, draw, escape_invisible, hidden_text, strip_invisible};
pub use label::Labels;
pub use onec::{classify_session, curated, session_class};
pub use recommend::{Recommended, recommended};
pub use registry::{RegistryError, RegistryPackage, RegistryRemote, RegistryServer, read_registry};
pub use shadow::{Shadowing, likeness, shadowing};
pub use signal::{Place, Signal, What};
pub use trifecta::{Trifecta, trifecta};
