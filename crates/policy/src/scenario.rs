//! Runs a document's own `tests` with a virtual clock and tells which rules none of them reached.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::{
    Call, Class, Effect, Identity, Ledger, Policy, SessionFacts, Verdict, decide,
    model::{Action, Entry, Expect, Scenario, Step, TestCall},
};

/// What came of a document's tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestReport {
    /// One for each test, in the order of the document.
    pub results: Vec<TestResult>,
    /// Rules that can refuse or hold and never decided a test's call, sorted.
    pub unreached: Vec<String>,
    /// How many such rules there are.
    pub rules: usize,
}

/// What came of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// Its name, or its place.
    pub name: String,
    /// Its line.
    pub line: usize,
    /// What was not as expected.
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
        let mut reached = BTreeSet::new();
        let results = self
            .document
            .tests
            .iter()
            .map(|scenario| TestResult {
                name: scenario.name.clone(),
                line: scenario.line,
                failure: self.run_one(scenario, &mut reached).err(),
            })
            .collect();
        let mut rules = BTreeSet::new();
        for entry in self.all_entries() {
            entry_rules(entry, &mut rules);
        }
        if !self.document.hide.is_empty() {
            rules.insert(self.words.hidden.to_string());
        }
        if self.document.repeat.is_some() {
            rules.insert(self.words.repeat.to_string());
        }
        let unreached = rules.difference(&reached).cloned().collect();
        TestReport { results, unreached, rules: rules.len() }
    }

    fn run_one(&self, scenario: &Scenario, reached: &mut BTreeSet<String>) -> Result<(), String> {
        let mut ledger = Ledger::default();
        // A Monday, so that the days of the week can be counted from it.
        let start = Timestamp::from_second(1_767_571_200).unwrap_or_default();
        let mut now = scenario.at.unwrap_or(start);
        for step in &scenario.steps {
            if let Some(after) = step.after {
                now = after.after(now);
            }
            self.run_step(step, &mut ledger, &mut now, reached)?;
        }
        Ok(())
    }

    fn run_step(
        &self,
        step: &Step,
        ledger: &mut Ledger,
        now: &mut Timestamp,
        reached: &mut BTreeSet<String>,
    ) -> Result<(), String> {
        let mut made = 0;
        let last = step.expect.len().saturating_sub(1);
        for (index, expect) in step.expect.iter().enumerate() {
            let count = match expect.count {
                Some(count) => count,
                // The last expectation without a count stands for all calls that are left.
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
                let verdict = self.run_call(&step.call, ledger, *now, reached);
                check(expect, &verdict)
                    .map_err(|why| format!("line {}, call {made}: {why}", step.line))?;
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
        reached.extend(decisive.map(ToString::to_string));
        let mut taken = verdict.reservations.clone();
        if is_any {
            // Whatever arguments are not the same arguments again.
            taken.retain(|one| one.rule != self.words.repeat);
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
fn check(expect: &Expect, verdict: &Verdict) -> Result<(), String> {
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
    Err(format!("expected {wanted}, got {got}{because}"))
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
