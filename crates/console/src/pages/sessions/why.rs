//! "Why is my base not visible?": the way of a base from its program to an agent, checked step by step.

use jiff::Timestamp;
use serde_json::Value;
use toolgate_policy::Glob;

use super::SessionLine;
use crate::items::{Grant, Row, ToolDecision};
use crate::look::Look as _;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::shown::foreign;
use crate::visit::{Visit, part};

/// What was found about one step.
pub(crate) struct Finding {
    pub(crate) is_good: bool,
    pub(crate) text: String,
}

/// The question, and what was found.
pub(crate) struct Why {
    pub(crate) base: String,
    pub(crate) grant: String,
    /// Labels to choose from.
    pub(crate) grants: Vec<String>,
    /// Empty if nothing was asked.
    pub(crate) findings: Vec<Finding>,
    /// The newest messages about sessions, if the base is not connected.
    pub(crate) events: Vec<String>,
}

/// How many messages about sessions are read, and shown.
const READ: usize = 200;
const EVENTS: usize = 5;

impl Why {
    /// The answer to the question of this visit.
    pub(crate) async fn of(
        visit: &Visit,
        s: &Shell,
        items: &[Value],
        lines: &[SessionLine],
    ) -> Result<Self, Problem> {
        let mut grants: Vec<Grant> = visit.list("/api/v1/grants").await?;
        grants.retain(|grant| grant.revoked.is_none());
        let (base, label) = (visit.query.text("base"), visit.query.text("grant"));
        let mut why = Self {
            base: base.to_owned(),
            grant: label.to_owned(),
            grants: grants.iter().map(|grant| grant.label.clone()).collect(),
            findings: Vec::new(),
            events: Vec::new(),
        };
        if base.is_empty() {
            return Ok(why);
        }
        let matching: Vec<(&Value, &SessionLine)> =
            items.iter().zip(lines).filter(|(item, _)| is_called(item, base)).collect();
        why.connection(s, &matching, lines);
        if matching.is_empty() {
            why.events = events(visit).await?;
        }
        if let Some(grant) = grants.iter().find(|grant| grant.label == label) {
            let now = visit.console.admin.now();
            let target = format!("/api/v1/grants/{}/permissions", part(&grant.id));
            let decisions: Vec<ToolDecision> = visit.list(&target).await?;
            why.access(s, grant, &matching, &decisions, now);
        }
        Ok(why)
    }

    fn add(&mut self, is_good: bool, text: String) {
        self.findings.push(Finding { is_good, text });
    }

    /// Whether its program is connected, registered and serves tools.
    fn connection(&mut self, s: &Shell, found: &[(&Value, &SessionLine)], all: &[SessionLine]) {
        if found.is_empty() {
            self.add(false, s.trv("why-not-connected", foreign(&self.base, 120)));
            let anonymous = all.iter().filter(|line| line.state == "anonymous").count();
            if anonymous > 0 {
                self.add(false, s.trn("why-anonymous", &anonymous));
            }
        }
        for (item, line) in found {
            let name = format!("{} ({})", line.base, line.kind);
            let key = match line.state.as_str() {
                _ if line.is_conflict => "why-conflict",
                "active" => "why-connected",
                _ => "why-disconnected",
            };
            self.add(key == "why-connected", s.trv(key, &name));
            if item.at("tools").as_array().is_none_or(Vec::is_empty) {
                self.add(false, s.trv("why-no-tools", &name));
            }
            if s.freeze_of("session", &line.id).is_some() || s.frozen.is_some() {
                self.add(false, s.trv("why-frozen", &name));
            }
        }
    }

    /// Whether the grant may reach it, and what its policy leaves.
    fn access(
        &mut self,
        s: &Shell,
        grant: &Grant,
        found: &[(&Value, &SessionLine)],
        decisions: &[ToolDecision],
        now: Timestamp,
    ) {
        let end = grant.expires.as_deref().and_then(|it| it.parse::<Timestamp>().ok());
        if end.is_some_and(|end| end <= now) {
            self.add(false, s.trv("why-expired", &grant.label));
        }
        for (item, line) in found {
            let reach = grant.sessions.as_ref().unwrap_or(&Value::Null);
            let (reaches, name) = (reaches(reach, item), format!("{} ({})", line.base, line.kind));
            self.add(
                reaches,
                s.trv(if reaches { "why-reached" } else { "why-not-reached" }, &name),
            );
        }
        if grant.policy.is_none() {
            return self.add(false, s.trv("why-no-policy", &grant.label));
        }
        let of_sessions = decisions.iter().filter(|it| it.server == "sessions");
        let (usable, closed): (Vec<_>, Vec<_>) =
            of_sessions.partition(|it| matches!(it.effect.as_str(), "allow" | "hold"));
        match (usable.len(), closed.len()) {
            (0, 0) => self.add(false, s.trv("why-nothing-in-reach", &grant.label)),
            (0, n) => self.add(false, s.trn("why-all-denied", &n)),
            (n, _) => self.add(true, s.trn("why-some-allowed", &n)),
        }
    }
}

/// Whether a session has this text in its name, or this id.
fn is_called(item: &Value, base: &str) -> bool {
    let name = item.at("infobase_name").as_str().unwrap_or_default();
    name.to_lowercase().contains(&base.to_lowercase()) || item.at("session_id") == base
}

/// Whether every list of a grant's `sessions` has a glob that matches.
fn reaches(reach: &Value, item: &Value) -> bool {
    ["infobase_name", "kind", "session_id"].into_iter().all(|key| {
        let text = item.at(key).as_str().unwrap_or_default();
        let globs = reach.at(key).as_array();
        let fits = |glob: &Value| {
            glob.as_str().and_then(|glob| Glob::parse(glob).ok()).is_some_and(|it| it.matches(text))
        };
        globs.is_none_or(|globs| globs.iter().any(fits))
    })
}

/// The newest messages about sessions.
async fn events(visit: &Visit) -> Result<Vec<String>, Problem> {
    let target = format!("/api/v1/audit?kind=session&order=newest&limit={READ}");
    let rows: Vec<Row> = visit.list(&target).await?;
    let texts = rows.iter().filter_map(|row| {
        let message = row.message.as_deref()?;
        Some(foreign(&format!("{} {message}", row.time), 300))
    });
    Ok(texts.take(EVENTS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_base_is_found_by_part_of_its_name_and_by_its_id() {
        let item = json!({ "infobase_name": "Торговля", "session_id": "s-1", "kind": "client" });
        assert!(is_called(&item, "торг") && is_called(&item, "s-1"));
        assert!(!is_called(&item, "s-") && !is_called(&item, "зуп"));
    }

    #[test]
    fn a_grant_reaches_what_fits_every_list() {
        let item = json!({ "infobase_name": "trade_dev", "session_id": "s-1", "kind": "client" });
        let cases = [
            (json!(null), true),
            (json!({ "infobase_name": ["trade_*"] }), true),
            (json!({ "infobase_name": ["hr", "trade_*"], "kind": ["server"] }), false),
            (json!({ "infobase_name": [] }), false),
        ];
        for (reach, expected) in cases {
            assert_eq!(reaches(&reach, &item), expected, "{reach}");
        }
    }
}
