//! The output of a run: lines on standard output, the time of each part and the closing table.
//!
//! Invariant: a part that was started is in the table, also if it failed.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Cases that run at a time; most of a case is waiting.
const AT_A_TIME: usize = 3;

/// Prints one line. A closed pipe is not an error.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        // The pipe is closed; the exit code still reports the result.
    }
}

/// The parts that ran so far, in order.
#[derive(Default)]
pub(crate) struct Report {
    parts: Vec<Part>,
}

struct Part {
    name: &'static str,
    took: Duration,
    failure: Option<String>,
}

impl Report {
    /// Runs one part, prints its name, its time and, if it failed, why.
    pub(crate) fn part(
        &mut self,
        name: &'static str,
        what: &str,
        run: impl FnOnce() -> Result<()>,
    ) {
        say(&format!("== {name}: {what}"));
        let start = Instant::now();
        let failure = run().err().map(|error| format!("{error:#}"));
        let took = start.elapsed();
        match &failure {
            None => say(&format!("== {name}: ok, {}\n", seconds(took))),
            Some(why) => say(&format!("== {name}: FAILED, {}\n{why}\n", seconds(took))),
        }
        self.parts.push(Part { name, took, failure });
    }

    pub(crate) fn failed(&self, name: &str) -> bool {
        self.parts.iter().any(|part| part.name == name && part.failure.is_some())
    }

    /// Prints the table of parts; an error if any of them failed.
    pub(crate) fn close(&self) -> Result<()> {
        say(&self.table());
        let failed: Vec<&str> =
            self.parts.iter().filter(|p| p.failure.is_some()).map(|p| p.name).collect();
        if failed.is_empty() {
            return Ok(());
        }
        bail!("failed: {}; run one again with `cargo xtask test --only PART`", failed.join(", "))
    }

    fn table(&self) -> String {
        let line = |name, result, time| format!("{name:<12} {result:<6} {:>8}", seconds(time));
        let parts = self.parts.iter().map(|part| {
            line(part.name, if part.failure.is_none() { "ok" } else { "FAILED" }, part.took)
        });
        let total = self.parts.iter().map(|part| part.took).sum();
        let head = "part         result     time".to_owned();
        let lines = std::iter::once(head).chain(parts).chain([line("total", "", total)]);
        lines.collect::<Vec<_>>().join(
            "
",
        )
    }
}

/// Runs cases of one part, a few at a time, and reports each result and the number of passed ones.
///
/// The cases start processes and share a machine. One that fails gets a second attempt, alone, and is
/// reported as FLAKY if it passes then.
pub(crate) fn each<C: Send>(
    cases: Vec<C>,
    name: impl Fn(&C) -> String + Sync,
    run: impl Fn(&C) -> Result<()> + Sync,
) -> Result<()> {
    let total = cases.len();
    let attempt = |case: &C| {
        let start = Instant::now();
        let result = run(case);
        (result, format!("{} in {}", name(case), seconds(start.elapsed())))
    };
    let mut failed = 0;
    for case in first_attempts(cases, &attempt) {
        match attempt(&case) {
            (Ok(()), what) => say(&format!("FLAKY   {what}: passed at the second attempt")),
            (Err(error), what) => {
                failed += 1;
                say(&format!("FAILED  {what}, twice\n{error:#}"));
            }
        }
    }
    say(&format!("{} passed, {failed} failed", total - failed));
    if failed > 0 {
        bail!("{failed} of {total} failed");
    }
    Ok(())
}

/// Runs every case once and returns those that failed.
fn first_attempts<C: Send>(
    cases: Vec<C>,
    attempt: &(impl Fn(&C) -> (Result<()>, String) + Sync),
) -> Vec<C> {
    let queue = Mutex::new(VecDeque::from(cases));
    let failed = Mutex::new(Vec::new());
    let work = || {
        // A closure, so that the lock is not held while the case runs.
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        while let Some(case) = next() {
            match attempt(&case) {
                (Ok(()), what) => say(&format!("ok      {what}")),
                (Err(error), what) => {
                    say(&format!("failed  {what}, a second attempt follows\n{error:#}"));
                    failed.lock().unwrap_or_else(PoisonError::into_inner).push(case);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_part_fails_the_run_and_is_named() {
        let mut report = Report::default();
        report.part("good", "does nothing", || Ok(()));
        report.part("bad", "fails", || bail!("no luck"));
        assert!(!report.failed("good"));
        assert!(report.failed("bad"));
        let error = report.close().unwrap_err().to_string();
        assert!(error.starts_with("failed: bad;"), "{error}");
        assert!(report.table().contains("bad          FAILED"), "{}", report.table());
    }

    #[test]
    fn a_case_that_fails_twice_fails_the_part_and_one_that_fails_once_does_not() {
        let ran = Mutex::new(Vec::new());
        let run = |case: &u32| {
            let mut ran = ran.lock().unwrap();
            ran.push(*case);
            anyhow::ensure!(*case != 7, "seven");
            anyhow::ensure!(*case != 8 || ran.iter().filter(|it| **it == 8).count() == 2, "eight");
            Ok(())
        };
        let error = each((0..20).collect(), u32::to_string, run).unwrap_err().to_string();
        assert_eq!(error, "1 of 20 failed");
        let mut ran = ran.into_inner().unwrap();
        ran.sort_unstable();
        let mut expected: Vec<u32> = (0..20).chain([7, 8]).collect();
        expected.sort_unstable();
        assert_eq!(ran, expected);
    }

    #[test]
    fn a_run_without_failures_is_ok() {
        let mut report = Report::default();
        report.part("good", "does nothing", || Ok(()));
        report.close().unwrap();
    }
}
