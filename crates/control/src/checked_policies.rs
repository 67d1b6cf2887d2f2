//! Policies that passed their check before they became active, so that it is not repeated under the
//! lock of changes.
//!
//! Invariant: a policy is found only by everything that its check depended on.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_policy::Policy;

/// How many policies are remembered.
const MAX: usize = 16;

/// Remembers policies that passed.
#[derive(Debug, Default)]
pub(crate) struct CheckedPolicies(Mutex<VecDeque<Passed>>);

#[derive(Debug)]
struct Passed {
    name: String,
    text: String,
    servers: Vec<String>,
    policy: Arc<Policy>,
}

impl CheckedPolicies {
    /// Remembers a policy that passed under this name, with this text and these known servers.
    pub(crate) fn remember(
        &self,
        name: &str,
        text: &str,
        servers: &[String],
        policy: &Arc<Policy>,
    ) {
        let (name, text, servers) = (name.to_owned(), text.to_owned(), servers.to_vec());
        let mut passed = self.0.lock();
        passed.push_back(Passed { name, text, servers, policy: Arc::clone(policy) });
        if passed.len() > MAX {
            passed.pop_front();
        }
    }

    /// The policy that passed like that.
    pub(crate) fn find(&self, name: &str, text: &str, servers: &[String]) -> Option<Arc<Policy>> {
        let passed = self.0.lock();
        let same = |it: &&Passed| it.name == name && it.servers == servers && it.text == text;
        passed.iter().rev().find(same).map(|it| Arc::clone(&it.policy))
    }
}
