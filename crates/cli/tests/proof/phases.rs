//! Where a kill met a call, found out afterwards from three records that know nothing of each
//! other: what the client saw, what the server executed, what the audit recorded.

use std::collections::HashSet;
use std::fmt;

use crate::audited::Audited;

/// What a client saw of one call.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) mark: String,
    pub(crate) tool: &'static str,
    pub(crate) end: End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The tool's answer came.
    Answered,
    /// A refusal came, with this code.
    Refused(String),
    /// Nothing came.
    Lost,
}

/// How many kills met a call between two steps.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Phases {
    pub(crate) before_commit: u64,
    pub(crate) before_send: u64,
    pub(crate) before_answer: u64,
    pub(crate) after_answer: u64,
}

impl Phases {
    /// One kill, and all calls that ran up to it.
    pub(crate) fn add(&mut self, round: &[Seen], executed: &HashSet<String>, audited: &Audited) {
        let mut met = [false; 4];
        for Seen { mark, end, .. } in round {
            let call = audited.calls.get(mark);
            let unknown =
                call.is_some_and(|call| call.outcomes.iter().any(|outcome| outcome == "unknown"));
            let phase = match (end, call.is_some(), executed.contains(mark), unknown) {
                (End::Lost, false, ..) => 0,
                (End::Lost, true, false, _) => 1,
                (End::Lost, true, true, true) => 2,
                (End::Lost, true, true, false) | (End::Answered, _, _, true) => 3,
                _ => continue,
            };
            met[phase] = true;
        }
        let [commit, send, answer, end] = met.map(u64::from);
        self.before_commit += commit;
        self.before_send += send;
        self.before_answer += answer;
        self.after_answer += end;
    }

    /// The phase that the fewest kills fell into.
    pub(crate) fn least(&self) -> u64 {
        let Self { before_commit, before_send, before_answer, after_answer } = *self;
        before_commit.min(before_send).min(before_answer).min(after_answer)
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before_commit, before_send, before_answer, after_answer } = self;
        write!(
            f,
            "before the commit {before_commit}, between commit and send {before_send}, between \
             send and answer {before_answer}, after the answer {after_answer}"
        )
    }
}
