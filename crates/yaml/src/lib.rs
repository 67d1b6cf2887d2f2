//! A YAML 1.2 document (JSON included) as a tree in which every key and value has its position.
//!
//! [`parse`] builds the tree; [`Rules`] states its limits and how anchors, aliases and tags are
//! treated. Problems are reported as [`Issue`]s without a text: policies and `toolgate.yaml` word
//! them for their own readers.
//!
//! Invariant: depth and number of nodes are bounded, expanded aliases included.
//! Invariant: scalars keep their spelling; nothing becomes a binary float.

mod issue;
mod number;
mod parse;
mod tree;

pub use issue::{Issue, IssueKind};
pub use parse::{Rules, parse};
pub use tree::{Entry, Key, Kind, Node, Scalar, Span, Value};
