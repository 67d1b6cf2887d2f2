//! One approval with everything that a person needs to decide it.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::oneshot;
use toolgate_audit::Row;
use toolgate_policy::{
    Approval, Call, Class, Identity, LimitState, Take, Usage, decide, draw, drawn_arguments, limits,
};
use toolgate_store::{RowQuery, StoredApproval};

use super::{ApprovalItem, find};
use crate::api::Ask;
use crate::fault::Fault;
use crate::handle::{grants, tool};
use crate::reply::{Answer, ok};

/// How many recent calls are shown.
const RECENT: usize = 10;

/// An approval with everything that a person needs to decide it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ApprovalDetail")]
pub(crate) struct Detail<'a> {
    #[serde(flatten)]
    approval: ApprovalItem<'a>,
    /// The arguments as one line of JSON, with invisible and direction-changing characters drawn as
    /// `\u{…}`; null once the approval has ended.
    shown: Option<String>,
    /// `low`, `medium`, `high` or `critical`.
    level: Option<&'static str>,
    /// Why the tool has its class, in one sentence.
    class_reason: Option<String>,
    /// Who may answer, in words.
    asked: String,
    /// Whether the effect of the call can be undone, as far as its class tells.
    undo: &'static str,
    /// The last rows of the grant's calls, the newest first.
    #[schemars(with = "Vec<serde_json::Value>")]
    recent: Vec<serde_json::Value>,
    /// The counters that the call takes.
    #[schemars(with = "Vec<serde_json::Value>")]
    limits: Vec<AfterLimit>,
    /// How the arguments differ from those of the last approved call of this grant and tool; null if
    /// there was none.
    differs: Option<Difference>,
}

/// A counter, and its value if the call is approved.
#[derive(Serialize)]
struct AfterLimit {
    #[serde(flatten)]
    now: LimitState,
    /// Its value after the call.
    after: String,
}

/// How arguments differ, by name: their values are erased.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ArgumentDifference")]
struct Difference {
    /// The approval of the last approved call.
    since: Arc<str>,
    /// Names that only this call has.
    added: Vec<String>,
    /// Names that only the last one had.
    removed: Vec<String>,
    /// Names whose values differ.
    changed: Vec<String>,
}

pub(crate) async fn get(ask: Ask) -> Answer {
    let approval = find(&ask).await?;
    let class = Class::parse(&approval.call.class);
    let store = ask.admin.store();
    let recent = RowQuery {
        grant: Some(approval.call.grant.to_string()),
        newest_first: true,
        limit: 4 * RECENT,
        ..RowQuery::default()
    };
    let rows = store.rows(recent).await?;
    let of_call = |row: &&Row| row.draft.tool.is_some() && row.draft.outcome.is_none();
    let recent = rows.iter().filter(of_call).take(RECENT);
    let recent = recent.filter_map(|row| serde_json::from_str(&row.to_json()).ok());
    let last = store.last_consumed(&approval.call).await?;
    ok(&Detail {
        shown: approval.arguments.as_deref().map(drawn_arguments),
        level: class.map(|class| class.level().as_str()),
        class_reason: class.map(|class| {
            tool::class_reason(
                ask.admin.gateway(),
                &approval.call.server,
                &approval.call.tool,
                class,
            )
        }),
        asked: approval.question.asked(),
        undo: undo(class),
        recent: recent.collect(),
        limits: after(&ask, &approval, class).await?,
        differs: last.map(|last| difference(&approval, &last)),
        approval: ApprovalItem::of(&approval),
    })
}

/// Whether an effect of this class can be undone.
fn undo(class: Option<Class>) -> &'static str {
    match class {
        Some(Class::Read) => "it changes nothing",
        Some(Class::Write) => "a later call can usually change it back",
        Some(Class::Execute) => "unknown: it runs code or commands",
        Some(Class::Destructive) => "no: it deletes or ends something",
        Some(Class::Financial) => "no: it moves money",
        Some(Class::Other) | None => "unknown",
    }
}

/// The counters of the call, now and after it.
async fn after(
    ask: &Ask,
    approval: &StoredApproval,
    class: Option<Class>,
) -> Result<Vec<AfterLimit>, Fault> {
    let (view, call) = (ask.admin.view(), approval.call.clone());
    let Some(arguments) = approval.arguments.clone() else { return Ok(Vec::new()) };
    let policy = call.policy.as_ref().and_then(|name| view.in_force.get(&**name)).cloned();
    let Some(policy) = policy else { return Ok(Vec::new()) };
    let grant = grants::find(&view, &call.grant).ok().cloned();
    let (tell, told) = oneshot::channel();
    let look = Box::new(move |usage: &dyn Usage, now| {
        let identity = grant.as_ref().and_then(|grant| {
            Some(Identity { name: grant.identity.as_deref()?, groups: &grant.groups })
        });
        let call = Call {
            grant: &call.grant,
            identity,
            target: call.session_id.as_deref().unwrap_or_default(),
            approval: Approval::Approved,
            ..Call::new(&call.server, &call.tool, class.unwrap_or(Class::Other), &arguments)
        };
        let verdict = decide(&policy.policy, &call, usage, now);
        let taken = |counter: &str| {
            let mut own = verdict.reservations.iter().filter(|one| one.counter == counter);
            own.find_map(|one| match &one.take {
                Take::Calendar { amount, .. } | Take::Sliding { amount, .. } => {
                    Some(amount.to_string())
                }
                _ => None,
            })
        };
        let shown = limits(&policy.policy, &call, usage, now).into_iter().map(|now| {
            let after = match taken(&now.counter) {
                Some(more) => sum(&now.used.to_string(), &more),
                None => now.used.to_string(),
            };
            AfterLimit { now, after }
        });
        // The client may be gone.
        drop(tell.send(shown.collect::<Vec<_>>()));
    });
    ask.admin.store().read_usage(ask.admin.now(), look).await?;
    told.await.map_err(|_| Fault::unavailable("the store did not answer"))
}

/// The sum of two amounts as text.
fn sum(one: &str, other: &str) -> String {
    match (one.parse::<u64>(), other.parse::<u64>()) {
        (Ok(one), Ok(other)) => one.saturating_add(other).to_string(),
        _ => format!("{one} + {other}"),
    }
}

fn difference(approval: &StoredApproval, last: &StoredApproval) -> Difference {
    let members =
        |text: &str| -> BTreeMap<String, String> { serde_json::from_str(text).unwrap_or_default() };
    let (now, before) = (members(&approval.call.members), members(&last.call.members));
    let only = |one: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
        one.keys().filter(|name| !other.contains_key(*name)).map(|name| draw(name).into()).collect()
    };
    let changed =
        now.iter().filter(|(name, value)| before.get(*name).is_some_and(|was| was != *value));
    Difference {
        since: Arc::clone(&last.id),
        added: only(&now, &before),
        removed: only(&before, &now),
        changed: changed.map(|(name, _)| draw(name).into()).collect(),
    }
}
