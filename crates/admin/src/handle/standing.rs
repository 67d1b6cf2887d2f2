//! Standing exceptions: similar calls pass for a while.
//!
//! Invariant: an exception lifts a hold, never a denial or a limit, and never without a row.

use std::sync::Arc;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_audit::Draft;
use toolgate_policy::Kept;
use toolgate_store::{Change, StandingException, StoredApproval};

use super::grants::id;
use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, done, ok, page};

/// The longest time for which similar calls pass.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Most paths of one exception.
const PATHS: usize = 64;

/// Which calls are similar, and for how long they pass.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SimilarCalls")]
pub(crate) struct Similar {
    /// For how long: `1h`; at most 7 days.
    #[serde(rename = "for")]
    time: String,
    /// Paths (`args.to`) at which the arguments must be equal; all arguments if there are none.
    #[serde(default)]
    keep: Vec<String>,
}

/// A standing exception.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StandingException")]
pub(crate) struct StandingItem {
    /// Its id.
    id: Arc<str>,
    /// The approval it was given with.
    approval: Arc<str>,
    /// Label of the grant.
    grant: Arc<str>,
    /// The server of the tool.
    server: Arc<str>,
    /// The session called, for session tools.
    session_id: Option<Arc<str>>,
    /// The tool.
    tool: Arc<str>,
    /// Fingerprint of the definition.
    fingerprint: Option<String>,
    /// The policy it was given under; it ends when the hash changes.
    policy_hash: Option<String>,
    /// The paths at which arguments must be equal; empty means all arguments.
    keep: Vec<String>,
    /// The groups that were asked; it lifts no hold that asks others. Every approver if empty.
    approvers: Vec<String>,
    /// How many people were asked; it lifts no hold that asks more.
    people: u32,
    /// The person who gave it.
    person: Arc<str>,
    /// Why.
    reason: Option<Arc<str>>,
    /// When it was given.
    created: String,
    /// When it ends.
    expires: String,
}

pub(crate) async fn list(ask: Ask) -> Answer {
    let (now, snapshot) = (ask.admin.now(), ask.admin.store().snapshot().await?);
    let live = snapshot.exceptions.iter().filter(|one| one.expires > now);
    page(live.map(StandingItem::of).collect(), &ask.query)
}

pub(crate) async fn get(ask: Ask) -> Answer {
    ok(&StandingItem::of(&find(&ask).await?))
}

pub(crate) async fn end(ask: Ask) -> Answer {
    let one = find(&ask).await?;
    let row = row(&ask, &one, "ended a standing exception");
    ask.change(Change::EndException(Arc::clone(&one.id)), row).await?;
    done()
}

/// The exception of the path.
async fn find(ask: &Ask) -> Result<StandingException, Fault> {
    let (now, id, snapshot) = (ask.admin.now(), ask.param("id"), ask.admin.store().snapshot());
    let mut all = snapshot.await?.exceptions.into_iter();
    let found = all.find(|one| *one.id == *id && one.expires > now);
    found.ok_or_else(|| Fault::not_found(format!("there is no standing exception `{id}`")))
}

/// The exception for calls that are similar to an approved one.
pub(super) fn new(
    ask: &Ask,
    approval: &StoredApproval,
    similar: &Similar,
    reason: Option<&str>,
) -> Result<StandingException, Fault> {
    let time: Result<SignedDuration, _> = similar.time.parse();
    let valid = |time: &SignedDuration| *time > SignedDuration::ZERO && *time <= LONGEST;
    let time = time.ok().filter(valid).ok_or_else(|| {
        Fault::bad_request("`similar.for` must be a duration of at most 7 days, such as `1h`")
    })?;
    if similar.keep.len() > PATHS {
        return Err(Fault::bad_request(format!("`similar.keep` has more than {PATHS} paths")));
    }
    let arguments = approval.arguments.as_deref();
    let gone = || Fault::conflict(format!("the approval is not pending, it is {}", approval.state));
    let kept = Kept::of(arguments.ok_or_else(gone)?, &similar.keep);
    let kept = kept.map_err(|why| Fault::bad_request(why.to_string()))?;
    let kept = serde_json::to_string(&kept).map_err(|why| Fault::bad_request(why.to_string()))?;
    let (now, call) = (ask.admin.now(), &approval.call);
    let expires = now.checked_add(time).map_err(|why| Fault::bad_request(why.to_string()))?;
    Ok(StandingException {
        id: id("std_", &ask.admin.random()?),
        approval: Arc::clone(&approval.id),
        grant: Arc::clone(&call.grant),
        server: Arc::clone(&call.server),
        session_id: call.session_id.clone(),
        tool: Arc::clone(&call.tool),
        fingerprint: call.fingerprint,
        policy_hash: call.policy_hash,
        kept: kept.into(),
        question: approval.question.clone(),
        person: Arc::clone(&ask.who.name),
        reason: reason.map(Into::into),
        created: now,
        expires,
    })
}

/// Records an exception and makes it active.
pub(super) async fn give(ask: &Ask, one: StandingException) -> Result<(), Fault> {
    let until = one.expires;
    let row = row(ask, &one, &format!("similar calls pass until {until}"));
    ask.change(Change::Except(Box::new(one)), row).await
}

fn row(ask: &Ask, one: &StandingException, message: &str) -> Draft {
    Draft {
        person: Some(Arc::clone(&ask.who.name)),
        via: Some(ask.via.unwrap_or("api").into()),
        ..one.row(ask.admin.now(), message)
    }
}

impl StandingItem {
    fn of(one: &StandingException) -> Self {
        let keep = match serde_json::from_str(&one.kept) {
            Ok(Kept::Paths(paths)) => paths.into_iter().map(|(path, _)| path).collect(),
            _ => Vec::new(),
        };
        Self {
            id: Arc::clone(&one.id),
            approval: Arc::clone(&one.approval),
            grant: Arc::clone(&one.grant),
            server: Arc::clone(&one.server),
            session_id: one.session_id.clone(),
            tool: Arc::clone(&one.tool),
            fingerprint: one.fingerprint.map(|hash| hash.to_string()),
            policy_hash: one.policy_hash.map(|hash| hash.to_string()),
            keep,
            approvers: one.question.approvers.clone(),
            people: one.question.people,
            person: Arc::clone(&one.person),
            reason: one.reason.clone(),
            created: one.created.to_string(),
            expires: one.expires.to_string(),
        }
    }
}
