//! Approvals as values: what an approval is bound to, its states, and who may answer it.
//!
//! Invariant: two calls have the same binding only if grant, target, tool, definition, arguments and
//! policy are all the same: every part enters the digest with its length.
//! Start at [`Binding::digest`] and [`Question::may_answer`].

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolgate_catalog::draw;
use toolgate_json::scan::compact;

use crate::{Digest, Hold};

/// The entry of `approvers` that means the user of the agent.
pub const REQUESTER: &str = "requester";

/// Everything that an approval is bound to. If one part changes, it is another approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding<'a> {
    /// Label of the grant.
    pub grant: &'a str,
    /// The server's name, `sessions` or `toolgate`.
    pub server: &'a str,
    /// The session called, for session tools.
    pub session: Option<&'a str>,
    /// The tool's own name.
    pub tool: &'a str,
    /// Fingerprint of its definition, if that is known.
    pub fingerprint: Option<[u8; 32]>,
    /// Digest of the arguments.
    pub arguments: Digest,
    /// Hash of the policy that holds the call.
    pub policy_hash: &'a str,
}

impl Binding<'_> {
    /// The digest under which the approval is found.
    pub fn digest(&self) -> Digest {
        let Self { grant, server, session, tool, fingerprint, arguments, policy_hash } = self;
        let parts: [Option<&[u8]>; 7] = [
            Some(grant.as_bytes()),
            Some(server.as_bytes()),
            session.map(str::as_bytes),
            Some(tool.as_bytes()),
            fingerprint.as_ref().map(<[u8; 32]>::as_slice),
            Some(&arguments.0),
            Some(policy_hash.as_bytes()),
        ];
        let mut hash = Sha256::new();
        for part in parts {
            let length =
                part.map_or(u64::MAX, |part| u64::try_from(part.len()).unwrap_or(u64::MAX));
            hash.update(length.to_be_bytes());
            hash.update(part.unwrap_or_default());
        }
        Digest(hash.finalize().into())
    }
}

/// Arguments for a person who decides about them: without blanks between tokens, with which an agent
/// could move a part of them out of sight, and with hidden characters drawn.
pub fn drawn_arguments(arguments: &str) -> String {
    draw(&compact(arguments)).into_owned()
}

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// It waits for a person.
    Pending,
    /// Enough people approved; the call can be sent once.
    Approved,
    /// A person denied it.
    Denied,
    /// It was not answered, or not used, in time.
    Expired,
    /// The call was sent.
    Consumed,
}

impl ApprovalState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Approved, Self::Denied, Self::Expired, Self::Consumed];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Consumed => "consumed",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether the approval has ended, so that its arguments are erased.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Approved)
    }
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the rules that hold a call require of those who answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Groups that may answer; if empty and `no_common_group` is false, every approver may.
    pub approvers: Vec<String>,
    /// The rules name groups that have no person in common. Approvals of earlier versions are stored
    /// with the other name.
    #[serde(alias = "nobody")]
    pub no_common_group: bool,
    /// How many different people must approve.
    pub people: u32,
    /// What the policy tells them.
    pub note: Option<String>,
}

/// A person who wants to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answerer<'a> {
    /// Their name.
    pub name: &'a str,
    /// Their groups.
    pub groups: &'a [String],
}

/// Why a person may not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MayNotAnswer {
    /// The rules name groups that have no person in common.
    #[error("the rules that hold this call name groups without a common person; change the policy")]
    NoCommonGroup,
    /// The person is in none of the groups.
    #[error("only {0} may answer this approval")]
    NotAsked(String),
    /// The person is the one on whose behalf the agent calls.
    #[error(
        "`{0}` is the identity of the grant that asks, and four eyes are required (`approvals.four_eyes`); \
         another person must answer"
    )]
    OwnCall(String),
}

impl Question {
    /// What a verdict requires.
    pub fn of(hold: &Hold) -> Self {
        Self {
            approvers: hold.approvers.clone(),
            no_common_group: hold.no_common_group,
            people: hold.people.max(1),
            note: hold.note.clone(),
        }
    }

    /// Whether the people who have answered this were enough for `hold`, too: as many of them are
    /// asked for, and each group that could answer here can answer there.
    pub(crate) fn covers(&self, hold: &Hold) -> bool {
        let may_answer = |group: &String| hold.approvers.contains(group);
        let of_groups = !self.approvers.is_empty() && self.approvers.iter().all(may_answer);
        !hold.no_common_group
            && hold.people <= self.people.max(1)
            && (hold.approvers.is_empty() || of_groups)
    }

    /// Whether the user of the agent may answer.
    pub fn asks_requester(&self) -> bool {
        self.approvers.iter().any(|group| group == REQUESTER)
    }

    /// Whether one answer of the user of the agent is all that is asked for. Only then may the
    /// agent's own client be asked.
    pub fn asks_only_requester(&self) -> bool {
        !self.no_common_group
            && self.people <= 1
            && matches!(&*self.approvers, [only] if only == REQUESTER)
    }

    /// Whether a person may answer an approval of a grant with this identity. `four_eyes` is the
    /// setting; by default it is on as soon as there is a second person or the rule names approvers.
    pub fn may_answer(
        &self,
        who: Answerer<'_>,
        identity: Option<&str>,
        four_eyes: Option<bool>,
        people: usize,
    ) -> Result<(), MayNotAnswer> {
        let is_requester = identity == Some(who.name);
        if self.no_common_group {
            return Err(MayNotAnswer::NoCommonGroup);
        }
        let in_group =
            |group: &String| who.groups.contains(group) || (group == REQUESTER && is_requester);
        if !self.approvers.is_empty() && !self.approvers.iter().any(in_group) {
            return Err(MayNotAnswer::NotAsked(self.asked()));
        }
        let four_eyes = four_eyes.unwrap_or(people >= 2 || !self.approvers.is_empty());
        if four_eyes && is_requester && !self.asks_requester() {
            return Err(MayNotAnswer::OwnCall(who.name.to_owned()));
        }
        Ok(())
    }

    /// Who is asked, in words.
    pub fn asked(&self) -> String {
        if self.no_common_group {
            return "no person (the rules exclude each other)".to_owned();
        }
        let groups = self.approvers.iter().map(|group| match group.as_str() {
            REQUESTER => "the user of this client".to_owned(),
            group => format!("the group `{group}`"),
        });
        let groups: Vec<String> = groups.collect();
        match (self.people, groups.is_empty()) {
            (0 | 1, true) => "an approver".to_owned(),
            (people, true) => format!("{people} approvers"),
            (0 | 1, false) => groups.join(" or "),
            (people, false) => format!("{people} people of {}", groups.join(" or ")),
        }
    }
}

#[cfg(test)]
mod tests;
