//! What the agent of the demo does, and the audit rows that prove what the demo prints.
//!
//! Invariant: a sentence is printed only after the rows that it describes were read from the audit.

use std::time::Duration;

use anyhow::{Context as _, bail};
use http::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_control::visible;

use super::gateway::DemoGateway;
use crate::listing::text;
use crate::{print, tool};

/// How often the looping agent may read in a minute.
pub(super) const LIMIT: usize = 5;

/// Looks until something is known that happens in the background: lists of servers, some rows.
const TRIES: usize = 200;
const WAIT: Duration = Duration::from_millis(50);

pub(super) struct Tour<'a> {
    gateway: &'a DemoGateway,
    /// The number of the last row that was looked at.
    last: u64,
    step: usize,
}

impl<'a> Tour<'a> {
    pub(super) fn new(gateway: &'a DemoGateway) -> Self {
        Self { gateway, last: 0, step: 0 }
    }

    pub(super) fn run(&mut self) -> anyhow::Result<()> {
        self.wait_until_listed()?;
        self.allowed()?;
        self.denied()?;
        self.looping()?;
        self.hidden()?;
        self.poisoned()?;
        self.held()?;
        self.sessions()?;
        self.frozen()?;
        self.rug_puller()
    }

    fn wait_until_listed(&mut self) -> anyhow::Result<()> {
        for _ in 0..TRIES {
            let tools = self.gateway.tools()?;
            let has = |name: &str| tools.iter().any(|tool| tool == name);
            if has("safe__read_note") && has("rug-puller__add") && has("infobase_info") {
                self.skip_rows()?;
                return Ok(());
            }
            std::thread::sleep(WAIT);
        }
        bail!(
            "the servers of the demo were not listed in time; see {}",
            self.gateway.log().display()
        )
    }

    fn allowed(&mut self) -> anyhow::Result<()> {
        self.call("safe__read_note", &json!({"text": "hello"}), None)?;
        self.expect(&[("kind", "intent"), ("tool", "read_note"), ("decision", "allow")])?;
        self.say("an allowed call", "read_note ran; the audit has its intent and its outcome");
        Ok(())
    }

    fn denied(&mut self) -> anyhow::Result<()> {
        self.call("safe__delete_note", &json!({}), Some("policy_denied"))?;
        self.expect(&[
            ("kind", "denied"),
            ("tool", "delete_note"),
            ("error_code", "policy_denied"),
        ])?;
        self.say(
            "a destructive tool",
            "delete_note is denied by the policy and never reached its server",
        );
        Ok(())
    }

    fn looping(&mut self) -> anyhow::Result<()> {
        // One call was made already.
        for _ in 1..LIMIT {
            self.call("safe__read_note", &json!({}), None)?;
        }
        self.call("safe__read_note", &json!({}), Some("rate_limited"))?;
        self.expect(&[("kind", "denied"), ("error_code", "rate_limited")])?;
        let what =
            format!("after {LIMIT} calls in a minute read_note is refused, with the time to retry");
        self.say("a looping agent", &what);
        Ok(())
    }

    fn hidden(&mut self) -> anyhow::Result<()> {
        self.not_listed("safe__export_all")?;
        self.call("safe__export_all", &json!({}), Some("policy_denied"))?;
        self.expect(&[("kind", "denied"), ("tool", "export_all"), ("decision", "hide")])?;
        self.say(
            "a hidden tool",
            "the policy hides export_all: agents do not see it, and a call of its name is refused",
        );
        Ok(())
    }

    fn poisoned(&mut self) -> anyhow::Result<()> {
        self.not_listed("poisoned__weather")?;
        self.call("poisoned__weather", &json!({}), Some("quarantined"))?;
        self.expect(&[("tool", "weather"), ("error_code", "quarantined")])?;
        self.say(
            "a poisoned tool",
            "the description of weather asks for your SSH key, behind a character that people do not see; it is quarantined without any rule",
        );
        Ok(())
    }

    fn not_listed(&self, name: &str) -> anyhow::Result<()> {
        if self.gateway.tools()?.iter().any(|tool| tool == name) {
            bail!("`{name}` is listed");
        }
        Ok(())
    }

    fn held(&mut self) -> anyhow::Result<()> {
        self.call("safe__send_mail", &json!({}), Some("approval_required"))?;
        self.expect(&[("tool", "send_mail"), ("decision", "hold")])?;
        self.say(
            "a call for a person",
            "send_mail was held, and no person answered in time: nothing was sent",
        );
        Ok(())
    }

    fn sessions(&mut self) -> anyhow::Result<()> {
        self.call("infobase_info", &json!({}), Some("session_id_required"))?;
        self.call("infobase_info", &json!({"session_id": "accounting"}), None)?;
        self.expect(&[("kind", "intent"), ("server", "sessions"), ("session_id", "accounting")])?;
        self.say("two 1C bases", "a call without `session_id` is refused, because nothing is routed by guess; with it, it reached `accounting`");
        Ok(())
    }

    fn frozen(&mut self) -> anyhow::Result<()> {
        let admin = self.gateway.admin()?;
        let reason = json!({"grant": "agent", "reason": "demo"});
        let made = admin.send(&Method::POST, "/api/v1/freeze", Some(&reason))?;
        self.call("infobase_info", &json!({"session_id": "trade"}), Some("frozen"))?;
        self.expect(&[("kind", "denied"), ("error_code", "frozen")])?;
        let id = text(&made, "id").context("no id")?;
        admin.send(&Method::DELETE, &format!("/api/v1/freeze/{id}"), None)?;
        self.call("infobase_info", &json!({"session_id": "trade"}), None)?;
        self.say(
            "the kill switch",
            "a freeze of the agent took effect with its next call, and its end too",
        );
        Ok(())
    }

    fn rug_puller(&mut self) -> anyhow::Result<()> {
        for _ in 0..TRIES {
            let result = self.gateway.call("rug-puller__add", &json!({}))?;
            if error_code(&result) == Some("quarantined") {
                self.expect(&[("tool", "add"), ("error_code", "quarantined")])?;
                self.say(
                    "a rug-puller",
                    "add changed its description after its first call, and is quarantined until a person approves it",
                );
                return Ok(());
            }
            std::thread::sleep(WAIT);
        }
        bail!("the changed definition was not quarantined")
    }

    fn call(&self, name: &str, arguments: &Value, refused: Option<&str>) -> anyhow::Result<()> {
        let result = self.gateway.call(name, arguments)?;
        let code = error_code(&result);
        if code != refused {
            bail!(
                "`{name}` was expected to give {refused:?}, but gave {code:?}: {}",
                visible(&result.to_string())
            );
        }
        Ok(())
    }

    /// Fails unless a new row has all of these values. Refusals without a rule are recorded after their
    /// answer.
    fn expect(&mut self, values: &[(&str, &str)]) -> anyhow::Result<()> {
        let is_it = |row: &Value| values.iter().all(|(key, value)| text(row, key) == Some(value));
        for _ in 0..TRIES {
            if self.gateway.rows(self.last)?.iter().any(is_it) {
                return self.skip_rows();
            }
            std::thread::sleep(WAIT);
        }
        bail!("the audit has no row with {values:?}")
    }

    fn skip_rows(&mut self) -> anyhow::Result<()> {
        let rows = self.gateway.rows(self.last)?;
        let seq = |row: &Value| row.get("seq").and_then(Value::as_u64);
        self.last = rows.iter().filter_map(seq).max().unwrap_or(self.last);
        Ok(())
    }

    fn say(&mut self, title: &str, what: &str) {
        self.step += 1;
        print::out(&format!("{:>2}. {title}: {what}\n", self.step));
    }
}

fn error_code(result: &Value) -> Option<&str> {
    result.pointer("/_meta/error_code").and_then(Value::as_str)
}

/// The result of a call, as JSON.
pub(super) fn call(
    agent: &crate::args::AsAgentArgs,
    name: &str,
    arguments: &Value,
) -> anyhow::Result<Value> {
    let arguments = RawValue::from_string(arguments.to_string())?;
    let result = tool::call_as(agent, name, &arguments)?;
    serde_json::from_str(result.get()).context("cannot parse the result")
}
