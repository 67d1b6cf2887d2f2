//! Runs a document's own `tests` with a virtual clock and reports the rules that no test reached.
//!
//! Invariant: tests have a budget of calls, and of whatever the caller measures. A test that exceeds
//! it fails, and so do those after it.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::{
    Call, Class, Effect, Identity, Ledger, Policy, SessionFacts, Verdict, decide,
    model::{Action, Entry, Expect, Scenario, Step, TestCall},
};

/// The most calls of all tests of a document.
const MAX_CALLS: u64 = 1_000_000;

/// How a verdict differs from what a test expects.
struct TestFailure(String);

/// The remaining budget of a document's tests.
struct Allowance<'a> {
    calls: u64,
    may_continue: &'a dyn Fn() -> bool,
    over: Option<&'static str>,
}

impl Allowance<'_> {
    /// Charges one call.
    fn call(&mut self) -> Result<(), TestFailure> {
        if self.over.is_none() {
            match self.calls.checked_sub(1) {
                None => self.over = Some("make more than 1,000,000 calls"),
                Some(_) if !(self.may_continue)() => self.over = Some("take too long"),
                Some(left) => self.calls = left,
            }
        }
        self.over.map_or(Ok(()), |why| {
            Err(TestFailure(format!("the tests of this document {why}; make fewer")))
        })
    }
}

/// The results of a document's tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestReport {
    /// One for each test, in the order of the document.
    pub results: Vec<TestResult>,
    /// Rules that can refuse or hold and never decided a test's call, sorted.
    pub unreached: Vec<String>,
    /// How many such rules there are.
    pub rules: usize,
}

/// The result of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// Its name, or its place.
    pub name: String,
    /// Its line.
    pub line: usize,
    /// The difference from what was expected.
    pub failure: Option<String>,
}

impl TestReport {
    /// Whether every test passed.
    pub fn passed(&self) -> bool {
        self.results.iter().all(|result| result.failure.is_none())
    }
}

impl Policy {
    /// Runs the document's `tests`. A document with a failing test must not become active.
    pub fn run_tests(&self) -> TestReport {
        self.run_tests_while(&|| true)
    }

    /// Runs the document's `tests` while `may_continue` is true; the remaining ones fail.
    pub fn run_tests_while(&self, may_continue: &dyn Fn() -> bool) -> TestReport {
        let mut allowance = Allowance { calls: MAX_CALLS, may_continue, over: None };
        let mut reached = BTreeSet::new();
        let results = self
            .document
            .tests
            .iter()
            .map(|scenario| TestResult {
                name: scenario.name.clone(),
                line: scenario.line,
                failure: self
                    .run_one(scenario, &mut allowance, &mut reached)
                    .err()
                    .map(|TestFailure(why)| why),
            })
            .collect();
        let mut rules = BTreeSet::new();
        for entry in self.all_entries() {
            entry_rules(entry, &mut rules);
        }
        if !self.document.hide.is_empty() {
            rules.insert(self.implicit.hidden.to_string());
        }
        if self.document.repeat.is_some() {
            rules.insert(self.implicit.repeat.to_string());
        }
        let unreached = rules.difference(&reached).cloned().collect();
        TestReport { results, unreached, rules: rules.len() }
    }

    fn run_one(
        &self,
        scenario: &Scenario,
        allowance: &mut Allowance<'_>,
        reached: &mut BTreeSet<String>,
    ) -> Result<(), TestFailure> {
        let mut ledger = Ledger::default();
        // A Monday, so that the days of the week can be counted from it.
        let start = Timestamp::from_second(1_767_571_200).unwrap_or_default();
        let mut now = scenario.at.unwrap_or(start);
        for step in &scenario.steps {
            if let Some(after) = step.after {
                now = after.after(now);
            }
            self.run_step(step, &mut ledger, &mut now, allowance, reached)?;
        }
        Ok(())
    }

    fn run_step(
        &self,
        step: &Step,
        ledger: &mut Ledger,
        now: &mut Timestamp,
        allowance: &mut Allowance<'_>,
        reached: &mut BTreeSet<String>,
    ) -> Result<(), TestFailure> {
        let mut made = 0;
        let last = step.expect.len().saturating_sub(1);
        for (index, expect) in step.expect.iter().enumerate() {
            let count = match expect.count {
                Some(count) => count,
                // The last expectation without a count applies to all remaining calls.
                None if index == last => step.call.times - made,
                None => 1,
            };
            for _ in 0..count {
                if made > 0
                    && let Some(every) = step.call.every
                {
                    *now = every.after(*now);
                }
                made += 1;
                allowance.call()?;
                let verdict = self.run_call(&step.call, ledger, *now, reached);
                check(expect, &verdict).map_err(|TestFailure(why)| {
                    TestFailure(format!("line {}, call {made}: {why}", step.line))
                })?;
            }
        }
        Ok(())
    }

    fn run_call(
        &self,
        call: &TestCall,
        ledger: &mut Ledger,
        now: Timestamp,
        reached: &mut BTreeSet<String>,
    ) -> Verdict {
        let (server, tool) = match (&call.server, call.tool.split_once('/')) {
            (Some(server), _) => (server.as_str(), call.tool.as_str()),
            (None, Some((server, tool))) => (server, tool),
            (None, None) => ("test", call.tool.as_str()),
        };
        let session = SessionFacts {
            kind: call.kind.as_deref(),
            infobase_name: call.infobase_name.as_deref(),
            host_id: call.host_id.as_deref(),
        };
        let identity = call
            .identity
            .as_deref()
            .or_else(|| (!call.groups.is_empty()).then_some("test"))
            .map(|name| Identity { name, groups: &call.groups });
        let is_any = call.args.is_none();
        let call = Call {
            grant: call.grant.as_deref().unwrap_or("test"),
            identity,
            client: call.client.as_deref(),
            session: Some(session),
            agent_session: Some(call.agent_session.as_deref().unwrap_or("test")),
            target: call.target.as_deref().unwrap_or(server),
            ..Call::new(
                server,
                tool,
                call.class.unwrap_or_else(|| Class::by_name(tool)),
                call.args.as_deref().unwrap_or("{}"),
            )
        };
        let verdict = decide(self, &call, ledger, now);
        let decisive = verdict.shadow.as_ref().map(|w| &w.rule).or(verdict.rule.as_ref());
        if let Some(rule) = decisive.filter(|rule| !reached.contains(&***rule)) {
            reached.insert(rule.to_string());
        }
        let mut taken = verdict.reservations.clone();
        if is_any {
            // Calls without `args` are treated as having different arguments.
            taken.retain(|one| one.rule != self.implicit.repeat);
        }
        if verdict.effect == Effect::Allow
            && let Ok(receipt) = ledger.admit(&taken, now)
        {
            ledger.settle(receipt);
        }
        verdict
    }
}

/// A document in shadow is tested as if enforced.
fn check(expect: &Expect, verdict: &Verdict) -> Result<(), TestFailure> {
    let would = verdict.shadow.as_ref();
    let effect = would.map_or(verdict.effect, |w| w.effect);
    let refusal = would.map_or(verdict.refusal, |w| w.refusal);
    let rule = would.map(|w| &w.rule).or(verdict.rule.as_ref());
    let code = refusal.map(crate::Refusal::as_str);
    let matches = effect == expect.effect
        && expect
            .word
            .as_deref()
            .is_none_or(|word| code == Some(word) || rule.is_some_and(|r| **r == *word));
    if matches {
        return Ok(());
    }
    let mut wanted = format!("{:?}", expect.effect).to_lowercase();
    if let Some(word) = &expect.word {
        wanted.push(' ');
        wanted.push_str(word);
    }
    let got = format!("{effect:?}").to_lowercase();
    let because = match (rule, code) {
        (Some(rule), Some(code)) => format!(" ({code}, {rule})"),
        (Some(rule), None) => format!(" ({rule})"),
        _ => String::new(),
    };
    Err(TestFailure(format!("expected {wanted}, got {got}{because}")))
}

/// Everything in an entry that can refuse or hold.
fn entry_rules(entry: &Entry, rules: &mut BTreeSet<String>) {
    if matches!(entry.action, Some(Action::Deny)) {
        rules.insert(entry.action_rule.to_string());
    }
    if matches!(entry.action, Some(Action::Hide)) {
        rules.insert("(hidden)".to_owned());
    }
    let predicates = entry.require.iter().chain(&entry.deny_if).chain(&entry.approve_if);
    rules.extend(predicates.map(|p| p.rule.to_string()));
    rules.extend(entry.approve.iter().map(|a| a.rule.to_string()));
    rules.extend(entry.limits.iter().map(|l| l.rule.to_string()));
    rules.extend(entry.concurrency.iter().map(|c| c.rule.to_string()));
    rules.extend(entry.repeats.iter().map(|r| r.rule.to_string()));
    rules.extend(entry.rules.iter().map(|r| r.pointer.to_string()));
}

#[cfg(test)]
mod tests;
