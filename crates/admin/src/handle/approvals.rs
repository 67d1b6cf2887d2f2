//! Approvals: held calls, and the answers of people.
//!
//! Invariant: an approver sees exactly the arguments that were hashed, with hidden characters drawn.
//! Invariant: the store decides whether an answer is in time; who may answer is checked here and, for
//! approvals, once more when the call is admitted.

mod detail;

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use toolgate_audit::{Draft, Hash, RowKind};
use toolgate_policy::{ApprovalState, Digest};
use toolgate_store::{Answer as Given, ApprovalQuery, Change, StoredApproval};

use crate::api::Ask;
use crate::fault::Fault;
use crate::handle::standing;
use crate::reply::{Answer, ok};

pub(crate) use detail::{Detail, get};

/// Most bytes of a reason.
const REASON: usize = 512;
/// How many approvals a page has, and at most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

// It borrows everything, because a page may have ten thousand.
/// An approval.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub(crate) struct ApprovalItem<'a> {
    /// Its id.
    id: &'a str,
    /// `pending`, `approved`, `denied`, `expired` or `consumed`.
    state: &'static str,
    /// Label of the grant.
    grant: &'a str,
    /// The identity of the grant.
    identity: Option<&'a str>,
    /// The name that the client gave itself.
    client: Option<&'a str>,
    /// The server, `sessions` or `toolgate`.
    server: &'a str,
    /// The session called, for session tools.
    session_id: Option<&'a str>,
    /// The tool's own name.
    tool: &'a str,
    /// Fingerprint of the definition, in lower-case hex.
    fingerprint: Option<Shown<'a, Hash>>,
    /// The arguments exactly as they were hashed; null once the approval has ended.
    #[schemars(with = "Option<serde_json::Value>")]
    arguments: Option<&'a RawValue>,
    /// SHA-256 over the canonical arguments.
    digest: Shown<'a, Digest>,
    /// Risk class.
    class: &'a str,
    /// The rule that holds the call.
    rule: &'a str,
    /// Name of the policy.
    policy: Option<&'a str>,
    /// Hash of the policy.
    policy_hash: Option<Shown<'a, Hash>>,
    /// Groups that may answer; every approver if empty.
    approvers: &'a [String],
    /// How many different people must approve.
    people: u32,
    /// What the policy tells approvers.
    note: Option<&'a str>,
    /// The answers so far.
    answers: Vec<AnswerItem<'a>>,
    /// When it was created.
    created: Shown<'a, Timestamp>,
    /// When it expires.
    expires: Shown<'a, Timestamp>,
}

/// A value as its text, written without a copy.
struct Shown<'a, T>(&'a T);

impl<T> JsonSchema for Shown<'_, T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl<T: Display> Serialize for Shown<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

/// A page of approvals, in JSON the same as a list of [`ApprovalItem`]. Only one of them is in memory
/// at a time.
#[derive(Serialize)]
struct Page<'a> {
    #[serde(serialize_with = "items")]
    items: &'a [StoredApproval],
    next: Option<String>,
}

fn items<S: Serializer>(found: &[StoredApproval], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(found.iter().map(ApprovalItem::of))
}

/// One person's answer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ApprovalAnswer")]
struct AnswerItem<'a> {
    /// The person.
    person: &'a str,
    /// `approve` or `deny`.
    answer: &'static str,
    /// When.
    at: Shown<'a, Timestamp>,
    /// Why.
    reason: Option<&'a str>,
    /// `api`, `console`, or `in-band` if the agent's own client was asked.
    via: &'a str,
}

/// An answer.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ApprovalReply")]
pub(crate) struct Reply {
    /// The reason, for the audit; a denial shows it to the agent.
    reason: Option<String>,
    /// Also lets similar calls of this grant pass for a while; only with an approval.
    similar: Option<standing::Similar>,
}

pub(crate) async fn list(ask: Ask) -> Answer {
    let state = match ask.query.text("state") {
        None => None,
        Some(word) => Some(ApprovalState::parse(word).ok_or_else(|| {
            let known = ApprovalState::ALL.map(ApprovalState::as_str).join(", ");
            Fault::bad_request(format!(
                "`{word}` is not a state of an approval; the states are {known}"
            ))
        })?),
    };
    let limit = ask.query.number("limit")?.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let after = ask.query.text("after").map(cursor).transpose()?;
    let grant = ask.query.text("grant").map(Into::into);
    let query = ApprovalQuery { state, grant, after, limit };
    let found = ask.admin.store().approvals(query.clone()).await?;
    let next = found.last().filter(|_| query.may_continue(&found));
    let next = next.map(|last| format!("{}.{}", last.created.as_microsecond(), last.id));
    ok(&Page { items: &found, next })
}

/// The place after which a page begins.
fn cursor(text: &str) -> Result<(Timestamp, Arc<str>), Fault> {
    let read = || {
        let (created, id) = text.split_once('.')?;
        Some((Timestamp::from_microsecond(created.parse().ok()?).ok()?, id.into()))
    };
    read().ok_or_else(|| Fault::bad_request("`after` must be the `next` of the part before"))
}

pub(crate) async fn approve(ask: Ask) -> Answer {
    answer(ask, true).await
}

pub(crate) async fn deny(ask: Ask) -> Answer {
    answer(ask, false).await
}

async fn answer(ask: Ask, approves: bool) -> Answer {
    let reply: Reply = if ask.body.is_empty() { Reply::default() } else { ask.json()? };
    if reply.reason.as_ref().is_some_and(|reason| reason.len() > REASON) {
        return Err(Fault::bad_request(format!("`reason` must have at most {REASON} bytes")));
    }
    if reply.similar.is_some() && !approves {
        return Err(Fault::bad_request("`similar` belongs to an approval"));
    }
    let approval = find(&ask).await?;
    let standing = match &reply.similar {
        Some(similar) => Some(standing::new(&ask, &approval, similar, reply.reason.as_deref())?),
        None => None,
    };
    ask.check_person()?;
    let people = ask.admin.gateway().admission().approvers();
    let allowed = people.may_answer(&approval, &ask.who.name, ask.admin.now());
    allowed.map_err(|why| Fault::forbidden(why.to_string()))?;
    let given = Given {
        person: Arc::clone(&ask.who.name),
        approves,
        at: ask.admin.now(),
        reason: reply.reason.as_deref().map(Into::into),
        via: ask.via.unwrap_or("api").into(),
    };
    let row = Draft {
        person: Some(Arc::clone(&ask.who.name)),
        via: Some(ask.via.unwrap_or("api").into()),
        ..Draft::new(RowKind::Approval, ask.admin.now())
    };
    let id = Arc::clone(&approval.id);
    let change = Change::Answer { approval: Arc::clone(&id), answer: Box::new(given) };
    ask.admin.store().change(change, row).await?;
    let holds = ask.admin.gateway().admission().holds();
    holds.answered(ask.admin.now().duration_since(approval.created).unsigned_abs());
    holds.changed(&id);
    let answered = find(&ask).await?;
    // With several people, the last of them decides about similar calls.
    if let Some(standing) = standing.filter(|_| answered.is_agreed()) {
        standing::give(&ask, standing).await?;
    }
    ok(&ApprovalItem::of(&answered))
}

/// The approval of the path.
async fn find(ask: &Ask) -> Result<StoredApproval, Fault> {
    let id = ask.param("id");
    let found = ask.admin.store().approval(id).await?;
    found.ok_or_else(|| Fault::not_found(format!("there is no approval `{id}`")))
}

impl<'a> ApprovalItem<'a> {
    fn of(approval: &'a StoredApproval) -> Self {
        let (call, question) = (&approval.call, &approval.question);
        Self {
            id: &approval.id,
            state: approval.state.as_str(),
            grant: &call.grant,
            identity: call.identity.as_deref(),
            client: call.client.as_deref(),
            server: &call.server,
            session_id: call.session_id.as_deref(),
            tool: &call.tool,
            fingerprint: call.fingerprint.as_ref().map(Shown),
            arguments: approval.arguments.as_deref().and_then(|raw| serde_json::from_str(raw).ok()),
            digest: Shown(&call.digest),
            class: &call.class,
            rule: &call.rule,
            policy: call.policy.as_deref(),
            policy_hash: call.policy_hash.as_ref().map(Shown),
            approvers: &question.approvers,
            people: question.people,
            note: question.note.as_deref(),
            answers: approval.answers.iter().map(AnswerItem::of).collect(),
            created: Shown(&approval.created),
            expires: Shown(&approval.expires),
        }
    }
}

impl<'a> AnswerItem<'a> {
    fn of(given: &'a Given) -> Self {
        Self {
            person: &given.person,
            answer: if given.approves { "approve" } else { "deny" },
            at: Shown(&given.at),
            reason: given.reason.as_deref(),
            via: &given.via,
        }
    }
}
