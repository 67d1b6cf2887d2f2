//! The suite's client part: toolgate as the client of the suite's servers.
//!
//! A client that passes on its own (`tests/peers/node22/leg.mjs`) is tested directly, then through
//! a toolgate whose only server is the suite's. OAuth scenarios are not run: toolgate sends the
//! configured `headers:` to a server and requests no token from an authorization server.

use anyhow::{Result, ensure};

use super::checks::Checks;
use super::differences::Differences;
use super::peers::Suite;
use super::{SESSIONFUL, SESSIONLESS};
use crate::gate::debug_binary;
use crate::peers::folder;
use crate::report::say;

/// The scenarios of a revision.
#[derive(Clone, Copy)]
pub(super) struct Leg {
    pub(super) name: &'static str,
    pub(super) revision: &'static str,
    scenarios: &'static [&'static str],
}

pub(super) const LEGS: &[Leg] = &[
    Leg {
        name: "client-sessionless",
        revision: SESSIONLESS,
        scenarios: &[
            "tools_call",
            "request-metadata",
            "sep-2322-client-request-state",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
        ],
    },
    Leg {
        name: "client-sessionful",
        revision: SESSIONFUL,
        scenarios: &[
            "initialize",
            "tools_call",
            "elicitation-sep1034-client-defaults",
            "sse-retry",
        ],
    },
];

impl Leg {
    pub(super) fn run(&self, suite: &Suite, differences: &Differences) -> Result<()> {
        let direct = self.walk(suite, "direct")?;
        let failed = direct.failed();
        ensure!(failed.is_empty(), "  the client itself fails:\n    {}", failed.join("\n    "));
        let through = self.walk(suite, "through")?;
        say(&format!("        {}: {}", self.name, through.summary()));
        differences.judge(self.name, &direct, &through)
    }

    fn walk(&self, suite: &Suite, way: &str) -> Result<Checks> {
        let mut checks = Checks::default();
        for scenario in self.scenarios {
            let name = format!("{}-{way}-{scenario}", self.name);
            let script = folder("node22").join("leg.mjs");
            let words = if way == "direct" {
                format!("{} direct", script.display())
            } else {
                let gate = suite.clean(&format!("{name}-gate"))?;
                let (toolgate, gate) = (debug_binary(), gate.display());
                format!("{} through {} {gate}", script.display(), toolgate.display())
            };
            suite.run_client(&name, self.revision, scenario, &words, &mut checks)?;
        }
        Ok(checks)
    }
}
