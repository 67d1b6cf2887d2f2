//! Agents: they call known tools, with and without selectors, and cancel some calls.

use std::sync::Arc;

use serde_json::json;

use super::client::TOOLS;
use super::{ScheduledEvent, Simulation};
use crate::{CallArguments, CallNumber, Glob, Reach, SessionCall};

/// What each agent may reach: everything, one base, one kind.
pub(super) fn reaches() -> Vec<Arc<Reach>> {
    let only = |glob: &str| Some(vec![Glob::lenient(glob)]);
    [
        Reach::default(),
        Reach { infobase_name: only("tr*"), ..Reach::default() },
        Reach { kind: only("server"), ..Reach::default() },
        Reach::default(),
    ]
    .into_iter()
    .map(Arc::new)
    .collect()
}

const UIDS: [&str; 6] = ["thin-1", "thin-2", "server-trade", "server-bp", "test-1", "nobody"];

impl Simulation {
    pub(super) fn ask(&mut self, agent: usize) -> Result<(), String> {
        if !self.is_alive() {
            return Ok(());
        }
        let wait = self.rng.below(1_600);
        self.plan(wait, ScheduledEvent::Ask(agent));
        self.calls += 1;
        let (call, name) = (CallNumber(self.calls), self.rng.pick(&TOOLS));
        let mut arguments = json!({"tag": self.calls});
        let selector = match self.rng.below(10) {
            0..=5 => Some(("session_id", self.rng.pick(&UIDS))),
            6 => Some(("infobase_name", self.rng.pick(&["trade", "bp", "zup"]))),
            7 => Some(("kind", self.rng.pick(&["client", "server", "test"]))),
            _ => None,
        };
        if let Some((key, value)) = selector {
            arguments[key] = value.into();
        }
        let endless = self.rng.chance(2);
        if endless {
            arguments["_v8_call_options"] = json!({"no_deadline": true});
        }
        let reach = Arc::clone(&self.reaches[agent]);
        let arguments = arguments.to_string();
        let found = self.gate.resolve(name, &CallArguments::read(Some(&arguments)), &reach);
        let verdict = self.judge.routed(name, selector, endless, &reach, &found);
        verdict.map_err(|what| self.blame(&what))?;
        if let Ok(target) = found {
            let random = self.rng.wide();
            // Deciding and recording takes time; meanwhile things change.
            let wait = if self.rng.chance(80) { 0 } else { self.rng.below(3_000) };
            self.plan(wait, ScheduledEvent::Admit(Box::new(SessionCall { call, target, random })));
            if self.rng.chance(12) || endless {
                let wait = wait + self.rng.below(9_000);
                self.plan(wait, ScheduledEvent::Cancel(call));
            }
        }
        Ok(())
    }
}
