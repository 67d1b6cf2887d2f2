//! Problems of the YAML itself, independent of what the document is for.

use crate::Span;

/// A problem and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// What is wrong.
    pub kind: IssueKind,
    /// Where.
    pub span: Span,
}

/// Kinds of problems. [`Syntax`](Self::Syntax), [`TooDeep`](Self::TooDeep) and
/// [`TooManyNodes`](Self::TooManyNodes) leave no tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueKind {
    /// The text is not YAML; the parser's message.
    Syntax(String),
    /// Nested deeper than the rules allow.
    TooDeep,
    /// More nodes than the rules allow.
    TooManyNodes,
    /// A second document; it is not read.
    SecondDocument,
    /// A tag that the rules refuse.
    Tag,
    /// An anchor, refused by strict rules.
    Anchor,
    /// An alias, refused by strict rules. The tree has its source text, `*` included.
    Alias(String),
    /// An alias without an anchor before it.
    UnknownAlias(String),
    /// An alias inside its own anchor.
    RecursiveAlias,
    /// `<<`, which YAML 1.2 does not have.
    MergeKey,
    /// A key that is a list, a mapping or empty.
    KeyNotText,
    /// A key that its mapping has already, first on `first_line`.
    DuplicateKey {
        /// The key.
        name: String,
        /// The line of its first use, from 1.
        first_line: usize,
    },
}
