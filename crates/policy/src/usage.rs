//! Usage, as far as decisions depend on it: counters, calls in flight, repeats, owned values, standing
//! exceptions. The store implements it.

use std::{fmt, sync::Arc};

use jiff::Timestamp;

use crate::{
    Amount, Code, Known, Period, Problem, Question,
    lower::{self, Reader},
    model::Test,
    problem::Findings,
    syntax,
};

/// The usage cannot be read; the call is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

/// One entry of a sliding log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// When it was taken.
    pub at: Timestamp,
    /// How much.
    pub amount: Amount,
}

/// The claim of a grant to own a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// Label of the grant that asks.
    pub grant: &'a str,
    /// Its identity's name.
    pub identity: Option<&'a str>,
    /// The server the value belongs to.
    pub server: &'a str,
    /// What kind of thing it is.
    pub kind: &'a str,
    /// The value in its one spelling: a JSON string, or an integer.
    pub value: &'a str,
    /// When.
    pub now: Timestamp,
}

/// The current usage.
pub trait Usage {
    /// The sum of a calendar counter in a window. A stored window that begins later is included, so
    /// that a clock that steps back refills nothing.
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable>;
    /// The entries of a sliding counter taken after an instant.
    fn taken(&self, counter: &str, after: Timestamp) -> Result<Vec<Taken>, Unavailable>;
    /// Calls in flight.
    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable>;
    /// When an identical call was last admitted.
    fn last_admitted(&self, call: &str) -> Result<Option<Timestamp>, Unavailable>;
    /// Whether the grant owns the value.
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable>;
    /// Standing exceptions that may concern the call. Their [`crate::Kept`] is compared beforehand.
    fn exceptions(&self) -> &[Arc<Exception>] {
        &[]
    }
}

/// Usage for a call that is already counted: no limit is spent and nothing is a repeat. Ownership and
/// exceptions are looked up.
#[derive(Clone, Copy)]
pub struct Counted<'a> {
    /// Whether the grant owns the value.
    pub owns: &'a dyn Fn(&Claim<'_>) -> Result<bool, Unavailable>,
    /// Standing exceptions that may concern the call.
    pub exceptions: &'a [Arc<Exception>],
}

/// Nothing has been used and nothing is owned: for explaining a document by itself.
pub const UNUSED: Counted<'static> = Counted { owns: &|_| Ok(false), exceptions: &[] };

impl Usage for Counted<'_> {
    fn used(&self, _: &str, _: Period) -> Result<Amount, Unavailable> {
        Ok(Amount::ZERO)
    }
    fn taken(&self, _: &str, _: Timestamp) -> Result<Vec<Taken>, Unavailable> {
        Ok(Vec::new())
    }
    fn in_flight(&self, _: &str) -> Result<u64, Unavailable> {
        Ok(0)
    }
    fn last_admitted(&self, _: &str) -> Result<Option<Timestamp>, Unavailable> {
        Ok(None)
    }
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        (self.owns)(claim)
    }
    fn exceptions(&self) -> &[Arc<Exception>] {
        self.exceptions
    }
}

/// Other usage, with these standing exceptions.
#[derive(Clone, Copy)]
pub struct Excepting<'a> {
    /// Everything else.
    pub usage: &'a dyn Usage,
    /// Standing exceptions that may concern the call.
    pub exceptions: &'a [Arc<Exception>],
}

impl Usage for Excepting<'_> {
    fn used(&self, counter: &str, period: Period) -> Result<Amount, Unavailable> {
        self.usage.used(counter, period)
    }
    fn taken(&self, counter: &str, after: Timestamp) -> Result<Vec<Taken>, Unavailable> {
        self.usage.taken(counter, after)
    }
    fn in_flight(&self, counter: &str) -> Result<u64, Unavailable> {
        self.usage.in_flight(counter)
    }
    fn last_admitted(&self, call: &str) -> Result<Option<Timestamp>, Unavailable> {
        self.usage.last_admitted(call)
    }
    fn owns(&self, claim: &Claim<'_>) -> Result<bool, Unavailable> {
        self.usage.owns(claim)
    }
    fn exceptions(&self) -> &[Arc<Exception>] {
        self.exceptions
    }
}

impl fmt::Debug for Excepting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Excepting").finish_non_exhaustive()
    }
}

impl fmt::Debug for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").finish_non_exhaustive()
    }
}

/// "Similar calls for an hour": lifts a hold, never a deny or a limit.
#[derive(Debug)]
pub struct Exception {
    /// Its id, for the audit.
    pub id: String,
    /// The grant it belongs to.
    pub grant: String,
    /// The server of its tool.
    pub server: String,
    /// The session called, for session tools; otherwise empty.
    pub session: String,
    /// The tool.
    pub tool: String,
    /// Fingerprint of the definition it was given for.
    pub fingerprint: Vec<u8>,
    /// Hash of the policy it was given under; it ends when the hash changes.
    pub policy_hash: String,
    /// What the rules asked of those who gave it: it lifts no hold that asks for more.
    pub question: Question,
    /// When it ends.
    pub expires: Timestamp,
    pub(crate) constraints: Vec<Test>,
}

/// The fields of an exception, except its constraints.
#[derive(Clone, Debug)]
pub struct ExceptionFacts {
    /// See [`Exception::id`].
    pub id: String,
    /// See [`Exception::grant`].
    pub grant: String,
    /// See [`Exception::server`].
    pub server: String,
    /// See [`Exception::session`].
    pub session: String,
    /// See [`Exception::tool`].
    pub tool: String,
    /// See [`Exception::fingerprint`].
    pub fingerprint: Vec<u8>,
    /// See [`Exception::policy_hash`].
    pub policy_hash: String,
    /// See [`Exception::question`].
    pub question: Question,
    /// See [`Exception::expires`].
    pub expires: Timestamp,
}

impl Exception {
    /// Without conditions on arguments.
    pub fn plain(facts: ExceptionFacts) -> Self {
        Self::with(facts, Vec::new())
    }

    /// Parses the constraints, a JSON or YAML list of conditions that must all hold.
    pub fn new(facts: ExceptionFacts, constraints: &str) -> Result<Self, Vec<Problem>> {
        let mut findings = Findings::new(constraints);
        let known = Known::default();
        let root = syntax::parse(constraints, &mut findings);
        let constraints = match &root {
            Some(root) => lower::conditions(&mut Reader::new(&mut findings, &known), root),
            None => Vec::new(),
        };
        if findings.has_errors() {
            let problems = findings.finish();
            return Err(problems.into_iter().filter(|p| p.code != Code::ClientName).collect());
        }
        Ok(Self::with(facts, constraints))
    }

    fn with(facts: ExceptionFacts, constraints: Vec<Test>) -> Self {
        Self {
            id: facts.id,
            grant: facts.grant,
            server: facts.server,
            session: facts.session,
            tool: facts.tool,
            fingerprint: facts.fingerprint,
            policy_hash: facts.policy_hash,
            question: facts.question,
            expires: facts.expires,
            constraints,
        }
    }
}
