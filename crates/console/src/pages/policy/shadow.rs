//! Shadow mode: what would have been denied or held since it was switched on, and its end.

use std::collections::BTreeMap;

use axum::http::Method;
use serde_json::Value;
use toolgate_policy::document_json;

use super::edit::enforced;
use crate::items::{PolicyText, PolicyVersion, Row};
use crate::look::Look as _;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::shown::{Moment, foreign};
use crate::visit::{List, Outcome, Visit, part};

/// How many rows of each decision are read.
const MOST: usize = 1_000;

/// What a policy in shadow would have done.
pub(crate) struct ShadowReport {
    /// When shadow was switched on, if that is known.
    pub(crate) since: Option<Moment>,
    pub(crate) lines: Vec<ShadowLine>,
    /// There are more rows than were read.
    pub(crate) is_cut: bool,
}

/// Calls of one grant of one tool.
pub(crate) struct ShadowLine {
    pub(crate) grant: String,
    pub(crate) tool: String,
    pub(crate) decision: String,
    pub(crate) decision_text: String,
    pub(crate) rule: String,
    pub(crate) count: u64,
    /// The newest of them.
    pub(crate) href: String,
}

impl ShadowReport {
    /// `None` if the policy is enforced.
    pub(crate) async fn of(
        visit: &Visit,
        s: &Shell,
        policy: &PolicyText,
        versions: &[PolicyVersion],
    ) -> Result<Option<Self>, Problem> {
        if !is_shadow(&policy.document) {
            return Ok(None);
        }
        let since = since(versions).or(policy.item.created.as_deref());
        let mut found: BTreeMap<(String, String, String, String), (u64, String)> = BTreeMap::new();
        let mut is_cut = false;
        for decision in ["shadow_deny", "shadow_hold"] {
            let since = since.map(|it| format!("&since={}", part(it))).unwrap_or_default();
            let target =
                format!("/api/v1/audit?decision={decision}&order=newest&limit={MOST}{since}");
            let rows: List<Row> = visit.get(&target).await?;
            is_cut |= rows.next.is_some();
            let mine = |row: &Row| row.policy.as_deref() == Some(&policy.item.name);
            for row in rows.items.into_iter().filter(mine) {
                let tool = row.tool.or(row.method).unwrap_or_default();
                let tool = row.server.map(|server| format!("{server}/{tool}")).unwrap_or(tool);
                let key = (
                    row.grant.unwrap_or_default(),
                    tool,
                    decision.to_owned(),
                    row.rule.unwrap_or_default(),
                );
                let id = row.call_id.unwrap_or_default();
                found.entry(key).or_insert((0, id)).0 += row.count.unwrap_or(1);
            }
        }
        let mut lines: Vec<ShadowLine> = found
            .into_iter()
            .map(|((grant, tool, decision, rule), (count, id))| ShadowLine {
                grant: foreign(&grant, 80),
                tool: foreign(&tool, 160),
                decision_text: s.decision_text(&decision),
                decision,
                rule: foreign(&rule, 160),
                count,
                href: format!("/audit/{}", part(&id)),
            })
            .collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.count));
        Ok(Some(Self { since: Moment::of(since), lines, is_cut }))
    }
}

/// When the first of the newest versions in shadow was saved.
fn since(versions: &[PolicyVersion]) -> Option<&str> {
    let in_shadow = versions.iter().rev().take_while(|version| is_shadow(&version.document));
    in_shadow.last().map(|version| version.created.as_str())
}

fn is_shadow(document: &str) -> bool {
    let json = document_json(document).and_then(|json| serde_json::from_str::<Value>(&json).ok());
    json.is_some_and(|json| json.at("mode") == "shadow")
}

/// Enforces a policy that is in shadow.
pub(crate) async fn enforce(visit: Visit) -> Outcome {
    let name = visit.param("name").to_owned();
    let target = format!("/api/v1/policies/{}", part(&name));
    let policy: PolicyText = visit.get(&target).await?;
    let to = format!("/policies/{}", part(&name));
    let Ok(document) = enforced(&policy.document) else {
        let fault = toolgate_admin::Fault::bad_request(visit.tr("shadow-not-edited"));
        return visit.ended(Err::<(), _>(Problem::Refused(fault)), &to, String::new());
    };
    let sent = visit.call(&Method::PUT, &target, document.into()).await;
    visit.ended(sent, &to, visit.trv("done-enforced", &name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(version: u64, document: &str) -> PolicyVersion {
        let (created, document) = (format!("day {version}"), document.to_owned());
        PolicyVersion { version, created, document }
    }

    #[test]
    fn shadow_begins_with_the_first_of_the_newest_versions_in_shadow() {
        let (on, off) = ("version: \"1\"\nmode: shadow\n", "version: \"1\"\n");
        let versions = [version(1, on), version(2, off), version(3, on), version(4, on)];
        assert_eq!(since(&versions), Some("day 3"));
        assert_eq!(since(&versions[..2]), None);
        assert!(is_shadow(on) && !is_shadow(off));
    }
}
