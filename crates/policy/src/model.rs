//! A lowered document: checked, compiled where useful, every rule with its name.
//!
//! Invariant: every value of these types can be decided; anything else is reported as a problem
//! before.

mod condition;

use std::sync::Arc;

use jiff::{Timestamp, tz::TimeZone};

use crate::{Amount, Class, Span, Window, glob::Glob, path::Path};
pub(crate) use condition::{Condition, Op, Operand, Predicate, Test};

#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) shadow: Shadow,
    pub(crate) default_allow: bool,
    /// Lists tools under `(default deny)` too.
    pub(crate) list_all: bool,
    pub(crate) zone: TimeZone,
    pub(crate) zone_name: String,
    pub(crate) hide: Vec<ToolKey>,
    pub(crate) repeat: Option<Loop>,
    pub(crate) all_tools: Option<Entry>,
    /// Sorted by class.
    pub(crate) classes: Vec<(Class, Entry)>,
    /// Boxed, because there may be tens of thousands, and they are sorted.
    pub(crate) tools: Vec<(ToolKey, Box<Entry>)>,
    pub(crate) resources: Section,
    pub(crate) prompts: Section,
    pub(crate) methods: Section,
    pub(crate) tests: Vec<Scenario>,
}

/// Whether rules are enforced or only recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shadow {
    #[default]
    No,
    Always,
    Until(Timestamp),
}

impl Shadow {
    pub(crate) fn holds_at(self, now: Timestamp) -> bool {
        match self {
            Shadow::No => false,
            Shadow::Always => true,
            Shadow::Until(end) => now < end,
        }
    }
}

/// A key of `tools`, or an entry of `hide`.
#[derive(Clone, Debug)]
pub(crate) struct ToolKey {
    pub(crate) text: String,
    pub(crate) server: Option<Glob>,
    pub(crate) tool: Glob,
    /// A key with a server also matches a tool whose own name is the whole key.
    pub(crate) whole: Option<Glob>,
    pub(crate) folded: FoldedKey,
    pub(crate) span: Span,
}

/// The globs of a key for names that are folded.
#[derive(Clone, Debug)]
pub(crate) struct FoldedKey {
    tool: Glob,
    whole: Option<Glob>,
}

impl ToolKey {
    pub(crate) fn new(
        text: &str,
        server: Option<Glob>,
        tool: Glob,
        whole: Option<Glob>,
        span: Span,
    ) -> Self {
        let folded = FoldedKey { tool: tool.folded(), whole: whole.as_ref().map(Glob::folded) };
        Self { text: text.to_owned(), server, tool, whole, folded, span }
    }

    pub(crate) fn matches(&self, server: &str, tool: &str) -> bool {
        let whole = self.whole.as_ref().is_some_and(|glob| glob.matches(tool));
        whole || (self.is_of(server) && self.tool.matches(tool))
    }

    /// Whether it matches the folded name, but not the name.
    pub(crate) fn is_imitated(&self, server: &str, tool: &str, folded: &str) -> bool {
        let whole = self.folded.whole.as_ref().is_some_and(|glob| glob.matches(folded));
        (whole || (self.is_of(server) && self.folded.tool.matches(folded)))
            && !self.matches(server, tool)
    }

    fn is_of(&self, server: &str) -> bool {
        self.server.as_ref().is_none_or(|glob| glob.matches(server))
    }

    pub(crate) fn literals(&self) -> usize {
        self.tool.literals + self.server.as_ref().map_or(0, |glob| glob.literals)
    }

    /// Whether it matches one tool name only (on one server or on all).
    pub(crate) fn is_exact(&self) -> bool {
        self.tool.exact().is_some() && self.server.as_ref().is_none_or(|g| g.exact().is_some())
    }
}

/// An entry of `tools`, `classes` or `all_tools`.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// `/tools/close`: the entry's own name, also in counters.
    pub(crate) pointer: Arc<str>,
    /// Whether it allows the tools it matches under `default: deny`, unless it is in shadow.
    pub(crate) names: bool,
    /// The rule that is reported if the entry allows a tool.
    pub(crate) opens: Arc<str>,
    pub(crate) action: Option<Action>,
    /// `/tools/close/action`.
    pub(crate) action_rule: Arc<str>,
    pub(crate) reason: Option<String>,
    pub(crate) require: Vec<Predicate>,
    pub(crate) deny_if: Vec<Predicate>,
    pub(crate) approve: Option<Approve>,
    pub(crate) approve_if: Vec<Predicate>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) concurrency: Option<Concurrency>,
    pub(crate) repeats: Option<Repeats>,
    pub(crate) yields: Vec<Yield>,
    pub(crate) ends: Vec<Ends>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) shadow: Shadow,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Allow,
    Deny,
    Hide,
    RequireApproval,
}

#[derive(Clone, Debug)]
pub(crate) struct Approve {
    pub(crate) rule: Arc<str>,
    /// `None` for `0s`: the call does not wait.
    pub(crate) wait: Option<Window>,
    pub(crate) expires: Window,
    pub(crate) approvers: Vec<String>,
    pub(crate) people: u32,
    pub(crate) note: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    #[default]
    Grant,
    Identity,
    Session,
    Target,
    Global,
}

impl Scope {
    pub(crate) const ALL: [(&'static str, Scope); 5] = [
        ("grant", Scope::Grant),
        ("identity", Scope::Identity),
        ("session", Scope::Session),
        ("target", Scope::Target),
        ("global", Scope::Global),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, scope)| *scope == self).map_or("", |(name, _)| name)
    }
}

#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) rule: Arc<str>,
    /// As written, `{tool}` and `global.` included.
    pub(crate) counter: String,
    pub(crate) window: Window,
    pub(crate) max: Amount,
    pub(crate) scope: Scope,
    pub(crate) increment: Increment,
    pub(crate) sliding: bool,
    /// Days of Intercept counters are UTC days, whatever the document's time zone is.
    pub(crate) utc: bool,
    pub(crate) on_deny: Option<String>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Increment {
    Fixed(Amount),
    From(Path),
}

#[derive(Debug)]
pub(crate) struct Concurrency {
    pub(crate) rule: Arc<str>,
    pub(crate) max: u64,
    pub(crate) scope: Scope,
}

#[derive(Debug)]
pub(crate) struct Repeats {
    pub(crate) rule: Arc<str>,
    pub(crate) window: Window,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    pub(crate) max: u64,
    pub(crate) window: Window,
}

#[derive(Debug)]
pub(crate) struct Yield {
    pub(crate) kind: String,
    pub(crate) path: Path,
    pub(crate) shared: bool,
    pub(crate) by_identity: bool,
    pub(crate) keep: Window,
}

#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) kind: String,
    pub(crate) path: Path,
}

/// An Intercept rule, with Intercept's semantics.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) pointer: Arc<str>,
    pub(crate) name: String,
    pub(crate) kind: RuleKind,
    pub(crate) on_deny: Option<String>,
    pub(crate) conditions: Vec<RuleCondition>,
    pub(crate) limit: Option<Limit>,
    pub(crate) approve: Approve,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleKind {
    Evaluate,
    Deny,
    RequireApproval,
}

#[derive(Debug)]
pub(crate) struct RuleCondition {
    pub(crate) path: RulePath,
    pub(crate) op: Op,
    pub(crate) operand: Operand,
}

#[derive(Debug)]
pub(crate) enum RulePath {
    /// Names joined by dots; objects only.
    Args(Vec<String>),
    /// A counter of this or another entry.
    State { entry: String, counter: String, window: Window },
}

/// `resources`, `prompts` or `methods`.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// Its own default, or else the document's.
    pub(crate) default_allow: bool,
    pub(crate) allow: Vec<Pattern>,
    pub(crate) hide: Vec<Pattern>,
    pub(crate) deny: Vec<Pattern>,
}

/// One glob of a section.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) glob: Glob,
    /// For folded names and normalised URIs.
    pub(crate) read: Glob,
    pub(crate) text: String,
    /// `/resources/deny/0`.
    pub(crate) rule: Arc<str>,
    pub(crate) span: Span,
}

/// One of `tests`.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) at: Option<Timestamp>,
    pub(crate) steps: Vec<Step>,
    pub(crate) line: usize,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) after: Option<Window>,
    pub(crate) call: TestCall,
    pub(crate) expect: Vec<Expect>,
    pub(crate) line: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TestCall {
    pub(crate) server: Option<String>,
    pub(crate) tool: String,
    pub(crate) class: Option<Class>,
    /// `None` for any arguments.
    pub(crate) args: Option<String>,
    pub(crate) grant: Option<String>,
    pub(crate) identity: Option<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) client: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) infobase_name: Option<String>,
    pub(crate) host_id: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) agent_session: Option<String>,
    pub(crate) times: u64,
    pub(crate) every: Option<Window>,
}

#[derive(Clone, Debug)]
pub(crate) struct Expect {
    pub(crate) effect: crate::Effect,
    pub(crate) count: Option<u64>,
    /// An error code, or a rule.
    pub(crate) word: Option<String>,
}
