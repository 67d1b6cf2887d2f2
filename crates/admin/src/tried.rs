//! Policies that were parsed and have passed their own tests, so that neither is repeated when they
//! are activated, while other changes wait.
//!
//! Invariant: a policy is found only by everything that it was made from.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolgate_policy::Policy;

/// How many policies are remembered.
const KEPT: usize = 16;
/// How long the tests of a document may take.
const TESTS: Duration = Duration::from_secs(2);

/// Remembers policies that passed.
#[derive(Debug, Default)]
pub struct Tried(Mutex<VecDeque<Passed>>);

#[derive(Debug)]
struct Passed {
    name: String,
    text: String,
    servers: Vec<String>,
    policy: Arc<Policy>,
}

impl Tried {
    /// Remembers a policy of this name that passed with this text, while these servers were known.
    pub fn remember(&self, name: &str, text: &str, servers: &[String], policy: &Arc<Policy>) {
        let (name, text, servers) = (name.to_owned(), text.to_owned(), servers.to_vec());
        let mut passed = self.0.lock();
        passed.push_back(Passed { name, text, servers, policy: Arc::clone(policy) });
        if passed.len() > KEPT {
            passed.pop_front();
        }
    }

    /// The policy that passed with the same input.
    pub fn find(&self, name: &str, text: &str, servers: &[String]) -> Option<Arc<Policy>> {
        let passed = self.0.lock();
        let same = |it: &&Passed| it.name == name && it.servers == servers && it.text == text;
        passed.iter().rev().find(same).map(|it| Arc::clone(&it.policy))
    }
}

/// Returns true for two seconds: the time limit of a document's tests.
pub fn two_seconds() -> impl Fn() -> bool {
    let end = Instant::now() + TESTS;
    move || Instant::now() < end
}
