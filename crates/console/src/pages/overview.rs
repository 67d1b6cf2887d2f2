//! Overview: the state of the gateway on one screen.

use askama::Template;
use serde_json::Value;

use crate::activity::{Activity, Frequent, MAX_ROWS};
use crate::assets;
use crate::chart::{Bars, HEIGHT, Lines, WIDTH, bars, lines};
use crate::items::{Row, Server};
use crate::look::Look as _;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::shown::{Moment, duration, foreign, grouped, short_hash};
use crate::visit::{List, Outcome, Visit, page, part};

/// How many rows one page of the API has.
const PAGE: u64 = 1_000;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    s: Shell,
    assets: &'static str,
    width: u64,
    height: u64,
    bars: Bars,
    /// The top of the scale of calls.
    scale: usize,
    lines: Lines,
    calls: u64,
    denied: u64,
    is_cut: bool,
    top_tools: Vec<Frequent>,
    top_denials: Vec<Frequent>,
    policies: Vec<PolicyLine>,
    rows: String,
    checkpoint: Option<Moment>,
    checkpoint_seq: String,
    open_calls: u64,
    servers: Vec<Server>,
    /// Programs that dialled in: state, state in words, base, kind.
    programs: Vec<Program>,
    sessions: usize,
    sessions_active: usize,
    agent_sessions: usize,
    grants: usize,
    uptime: String,
    mcp: String,
}

struct Program {
    state: String,
    state_text: String,
    base: String,
    kind: String,
}

/// How many programs the page names.
const NAMED: usize = 8;

struct PolicyLine {
    name: String,
    path: String,
    is_shadow: bool,
    hash: String,
    is_broken: bool,
}

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let (s, status) = Shell::and_status(&visit, "overview").await?;
    let number = |path: &str| status.pointer(path).and_then(Value::as_u64).unwrap_or_default();
    let now = visit.console.admin.now();
    let mut activity = visit.console.activity.lock().await;
    refresh(&visit, &mut activity, number("/audit/rows")).await?;
    activity.forget(now);
    let hour = activity.last_hour(now);
    let policies =
        status.at("policies").as_array().into_iter().flatten().map(|policy| PolicyLine {
            path: part(policy.at("name").as_str().unwrap_or_default()),
            is_shadow: s.in_shadow.iter().any(|name| policy.at("name") == name.as_str()),
            name: policy.at("name").as_str().unwrap_or_default().to_owned(),
            hash: short_hash(policy.at("hash").as_str().unwrap_or_default()),
            is_broken: policy.at("state") == "broken",
        });
    let size = |path: &str| usize::try_from(number(path)).unwrap_or_default();
    let uptime = jiff::SignedDuration::from_secs(i64::try_from(number("/uptime_s")).unwrap_or(0));
    let overview = Overview {
        assets: &assets::VERSION,
        width: WIDTH,
        height: HEIGHT,
        scale: usize::try_from(bars(&hour).top).unwrap_or(usize::MAX),
        bars: bars(&hour),
        lines: lines(&hour),
        calls: hour.iter().map(crate::activity::Minute::calls).sum(),
        denied: hour.iter().map(|minute| minute.denied).sum(),
        is_cut: activity.is_cut,
        top_tools: activity.top_tools(),
        top_denials: activity.top_denials(),
        policies: policies.collect(),
        rows: grouped(number("/audit/rows")),
        checkpoint: Moment::of(status.at("audit").at("checkpoint_time").as_str()),
        checkpoint_seq: grouped(number("/audit/checkpoint")),
        open_calls: number("/audit/open_calls"),
        servers: visit.list("/api/v1/servers").await?,
        programs: programs(&visit, &s).await?,
        sessions: size("/session_counts/total"),
        sessions_active: size("/session_counts/active"),
        agent_sessions: size("/agent_sessions"),
        grants: size("/grant_counts/active"),
        uptime: duration(visit.language, uptime),
        mcp: status.at("mcp").as_str().unwrap_or_default().to_owned(),
        s,
    };
    drop(activity);
    page(&overview)
}

async fn programs(visit: &Visit, s: &Shell) -> Result<Vec<Program>, Problem> {
    let items: Vec<Value> = visit.list("/api/v1/sessions").await?;
    let program = |item: &Value| {
        let text = |key: &str| foreign(item.at(key).as_str().unwrap_or_default(), 80);
        let state =
            if item.at("conflict").is_array() { "conflict".to_owned() } else { text("state") };
        Program {
            state_text: s.tr(&format!("session-{state}")),
            state,
            base: text("infobase_name"),
            kind: text("kind"),
        }
    };
    Ok(items.iter().take(NAMED).map(program).collect())
}

/// Adds the rows that were written since the last look; of many, only the newest.
async fn refresh(visit: &Visit, activity: &mut Activity, head: u64) -> Result<(), Problem> {
    if head.saturating_sub(activity.seen) > MAX_ROWS || head < activity.seen {
        *activity = Activity::after(head.saturating_sub(MAX_ROWS));
    }
    for _ in 0..MAX_ROWS / PAGE {
        let target = format!("/api/v1/audit?limit={PAGE}&after={}", activity.seen);
        let rows: List<Row> = visit.get(&target).await?;
        for row in &rows.items {
            activity.add(row);
        }
        if rows.next.is_none() {
            return Ok(());
        }
    }
    Ok(())
}
