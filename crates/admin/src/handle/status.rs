//! `GET /api/v1/status`: the state of the gateway in one object.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolgate_control::attention::{Facts, attention};
use toolgate_control::{FreezeItem, LastReload, PolicyItem, View};

use crate::api::Ask;
use crate::reply::{Answer, ok};

/// The state of toolgate.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The version of the binary.
    version: &'static str,
    /// Listeners, process id, and the durability of the audit.
    #[serde(flatten)]
    facts: serde_json::Map<String, Value>,
    /// Who may call: `local` (calls without a token), `grants`, or `closed` (no grant exists).
    mode: &'static str,
    /// Whether calls without a token are accepted.
    local: bool,
    /// When toolgate started.
    started: String,
    /// Seconds since the start.
    uptime_s: u64,
    /// Number of servers by state, and `total`.
    server_counts: BTreeMap<String, usize>,
    /// Number of sessions by state, and `total`.
    session_counts: BTreeMap<String, usize>,
    /// Number of grants: `active`, `expired`, `revoked`.
    grant_counts: BTreeMap<String, usize>,
    /// Tools whose definitions wait for a person; without those that a person has rejected.
    quarantined_tools: usize,
    /// Held calls that wait for an answer.
    pending_approvals: u64,
    /// How many agent sessions are open.
    agent_sessions: usize,
    /// Policies with their hashes.
    policies: Vec<PolicyItem>,
    /// Policies of valid grants that are in shadow mode: their calls are recorded and pass.
    shadow_policies: Vec<String>,
    /// Whether every policy of a valid grant is in shadow mode.
    all_in_shadow: bool,
    audit: AuditStatus,
    /// Active freezes.
    freezes: Vec<FreezeItem>,
    /// The last reload of the configuration; null if there was none since the start.
    reload: Option<Reload>,
    /// What needs a person, one sentence each.
    attention: Vec<String>,
}

/// The state of the audit.
#[derive(Serialize, JsonSchema)]
struct AuditStatus {
    /// How many rows there are.
    rows: u64,
    /// The hash of the last one.
    hash: String,
    /// The last row that a checkpoint covers; null if there is no checkpoint.
    checkpoint: Option<u64>,
    /// When that checkpoint was signed.
    checkpoint_time: Option<String>,
    /// Calls that were admitted and have not ended.
    open_calls: u64,
    /// How long the oldest row that is not on the disk yet has waited, in milliseconds.
    sync_lag_ms: u64,
}

/// A reload of the configuration.
#[derive(Serialize, JsonSchema)]
struct Reload {
    /// When.
    time: String,
    /// `ok` or `rejected`.
    result: &'static str,
    /// Why the previous configuration stays active.
    error: Option<String>,
}

pub(crate) async fn get(ask: Ask) -> Answer {
    let (given, view, now) = (&ask.admin.given, ask.admin.view(), ask.admin.now());
    let store = ask.admin.store();
    let stored = store.status().await?;
    let sessions = given.sessions.as_ref().map(|sessions| sessions()).unwrap_or_default();
    let reload = given.control.last_reload();
    let quarantined = super::tools::unanswered(&ask).await?;
    let pending_approvals = store.pending_approvals().await?.count;
    let facts = Facts {
        quarantined: quarantined
            .iter()
            .map(|tool| format!("{}/{}", tool.server, tool.name))
            .collect(),
        pending_approvals,
        reload: reload.as_deref(),
        is_recording: given.facts.get("durability").and_then(Value::as_str) != Some("off"),
        failed_servers: Vec::new(),
        sessions: &sessions,
    };
    let (shadow_policies, all_in_shadow) = in_shadow(&view, now);
    let lag = store.activity().sync_lag.as_millis();
    let uptime = now.duration_since(given.started).as_secs();
    ok(&Status {
        version: env!("CARGO_PKG_VERSION"),
        facts: given.facts.clone(),
        mode: mode(&view),
        local: view.local,
        started: given.started.to_string(),
        uptime_s: u64::try_from(uptime).unwrap_or_default(),
        server_counts: server_counts(&ask, &view),
        session_counts: session_counts(&sessions),
        grant_counts: grant_counts(&view, now),
        quarantined_tools: quarantined.len(),
        pending_approvals,
        agent_sessions: ask.admin.gateway().agent_sessions(),
        shadow_policies,
        all_in_shadow,
        policies: view.policies.iter().map(|policy| policy.item.clone()).collect(),
        audit: AuditStatus {
            rows: stored.head.seq,
            hash: stored.head.hash.to_string(),
            checkpoint: stored.checkpoint.as_ref().map(|checkpoint| checkpoint.seq),
            checkpoint_time: stored.checkpoint.map(|checkpoint| checkpoint.time.to_string()),
            open_calls: stored.open,
            sync_lag_ms: u64::try_from(lag).unwrap_or(u64::MAX),
        },
        freezes: view.freezes.clone(),
        attention: attention(&view, &facts),
        reload: reload.as_deref().map(Reload::of),
    })
}

fn mode(view: &View) -> &'static str {
    let has_grants = view.grants.iter().any(|grant| grant.revoked.is_none());
    match (view.local, has_grants) {
        (true, _) => "local",
        (false, true) => "grants",
        (false, false) => "closed",
    }
}

/// The policies of valid grants that are in shadow mode, and whether all of them are.
fn in_shadow(view: &View, now: jiff::Timestamp) -> (Vec<String>, bool) {
    let valid = view.grants.iter().filter(|grant| grant.revoked.is_none());
    let used: BTreeSet<&str> = valid.filter_map(|grant| grant.policy.as_deref()).collect();
    let is_shadow =
        |name: &&str| view.in_force.get(*name).is_some_and(|active| active.policy.is_shadow(now));
    let found: Vec<String> = used.iter().copied().filter(is_shadow).map(str::to_owned).collect();
    let is_all = !found.is_empty() && found.len() == used.len();
    (found, is_all)
}

fn server_counts(ask: &Ask, view: &View) -> BTreeMap<String, usize> {
    let known = ask.admin.gateway().known_servers();
    let listed = known.iter().filter(|server| server.tools.is_some()).count();
    BTreeMap::from([("total".to_owned(), view.servers.len()), ("listed".to_owned(), listed)])
}

fn session_counts(sessions: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::from(
        [("active", 0), ("disconnected", 0), ("anonymous", 0)]
            .map(|(state, count)| (state.to_owned(), count)),
    );
    for session in sessions {
        if let Some(state) = session.get("state").and_then(Value::as_str) {
            *counts.entry(state.to_owned()).or_default() += 1;
        }
    }
    counts.insert("total".to_owned(), sessions.len());
    counts
}

fn grant_counts(view: &View, now: jiff::Timestamp) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::from(
        [("active", 0), ("expired", 0), ("revoked", 0)]
            .map(|(state, count)| (state.to_owned(), count)),
    );
    for grant in &view.grants {
        let end = grant.expires.as_deref().and_then(|end| end.parse::<jiff::Timestamp>().ok());
        let state = match (&grant.revoked, end) {
            (Some(_), _) => "revoked",
            (None, Some(end)) if end <= now => "expired",
            (None, _) => "active",
        };
        *counts.entry(state.to_owned()).or_default() += 1;
    }
    counts
}

impl Reload {
    fn of(last: &LastReload) -> Self {
        Self { time: last.time.to_string(), result: last.result(), error: last.error.clone() }
    }
}
