//! Approvals and standing exceptions in the database.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use serde::{Deserialize, Serialize};
use toolgate_audit::{CallId, Hash};
use toolgate_policy::{ApprovalState, Digest};
use toolgate_store::{
    Answer, ApprovalQuery, DueNotice, HeldCall, LISTED_BYTES, PendingApprovals, StandingException,
    StoreError, StoredApproval,
};

use crate::{
    columns::{all, text, time},
    error::{OrStoreError as _, damaged},
    row::number,
    sql::{self, execute},
    time::{micros, timestamp},
};

/// An answer as stored.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    person: String,
    approves: bool,
    at: i64,
    reason: Option<String>,
    via: String,
}

/// Creates or replaces an approval.
pub(crate) fn put(connection: &Connection, approval: &StoredApproval) -> Result<(), StoreError> {
    let call = &approval.call;
    let state = approval.state;
    let live = !matches!(state, ApprovalState::Expired | ApprovalState::Consumed);
    let question = serde_json::to_string(&approval.question).map_err(|_| damaged("approval"))?;
    let answers: Vec<StoredAnswer> = approval.answers.iter().map(StoredAnswer::of).collect();
    let answers = serde_json::to_string(&answers).map_err(|_| damaged("approval"))?;
    let size = approval.arguments.as_ref().map_or(0, |text| text.len());
    let size = number(u64::try_from(size).unwrap_or(u64::MAX));
    let (fingerprint, policy_hash) =
        (call.fingerprint.map(|hash| hash.0), call.policy_hash.map(|hash| hash.0));
    let values: [&dyn ToSql; 25] = [
        &approval.id,
        &approval.binding.0,
        &state.as_str(),
        &live,
        &call.call_id.0,
        &call.grant,
        &call.identity,
        &call.client,
        &call.server,
        &call.session_id,
        &call.tool,
        &fingerprint,
        &call.digest.0,
        &call.members,
        &call.class,
        &call.rule,
        &call.policy,
        &policy_hash,
        &question,
        &answers,
        &micros(approval.created),
        &micros(approval.expires),
        &approval.ended.map(micros),
        &size,
        &approval.arguments,
    ];
    // Every change writes the row anew, and large arguments have pages of their own: those that become
    // free are overwritten too.
    connection.pragma_update(None, "secure_delete", "ON").or_store_error()?;
    let put = execute(connection, sql::APPROVAL_PUT, &values).map(drop);
    connection.pragma_update(None, "secure_delete", "FAST").or_store_error()?;
    put
}

/// The version of the approvals after one more change.
pub(crate) fn grow(connection: &Connection) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached(sql::APPROVAL_GROW).or_store_error()?;
    let version: i64 = statement.query_row([], |row| row.get(0)).or_store_error()?;
    Ok(u64::try_from(version).unwrap_or_default())
}

/// The first approval that a query finds.
pub(crate) fn one(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
) -> Result<Option<StoredApproval>, StoreError> {
    let mut statement = connection.prepare_cached(sql).or_store_error()?;
    let found = statement.query_row(values, |row| Ok(approval(row))).optional().or_store_error()?;
    found.map(|found| found.ok_or_else(|| damaged("approval"))).transpose()
}

/// Approvals whose time is up.
pub(crate) fn expired(
    connection: &Connection,
    now: Timestamp,
) -> Result<Vec<StoredApproval>, StoreError> {
    all(connection, sql::APPROVAL_EXPIRED, &[&micros(now)], approval)
}

/// The number of pending approvals of a grant, and the bytes of their arguments.
pub(crate) fn pending_of(connection: &Connection, grant: &str) -> Result<(u64, u64), StoreError> {
    let mut statement = connection.prepare_cached(sql::APPROVAL_PENDING_OF).or_store_error()?;
    let found = statement.query_row([grant], |row| Ok((row.get(0)?, row.get(1)?)));
    let (count, bytes): (i64, i64) = found.optional().or_store_error()?.unwrap_or_default();
    Ok((u64::try_from(count).unwrap_or_default(), u64::try_from(bytes).unwrap_or_default()))
}

/// The last consumed approval of the same grant, server and tool.
pub(crate) fn last_consumed(
    connection: &Connection,
    like: &HeldCall,
) -> Result<Option<StoredApproval>, StoreError> {
    one(connection, sql::APPROVAL_USED, &[&like.grant, &like.server, &like.tool])
}

/// Approvals that match a query.
pub(crate) fn select(
    connection: &Connection,
    query: &ApprovalQuery,
) -> Result<Vec<StoredApproval>, StoreError> {
    let (created, id) = match &query.after {
        Some((created, id)) => (micros(*created), &**id),
        None => (i64::MIN, ""),
    };
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    match query.state {
        None => listed(connection, sql::APPROVAL_ALL, &[&created, &id, &query.grant, &limit]),
        Some(state) => {
            let values: [&dyn ToSql; 5] = [&created, &id, &query.grant, &limit, &state.as_str()];
            listed(connection, sql::APPROVAL_IN_STATE, &values)
        }
    }
}

/// The approvals that are found, up to [`LISTED_BYTES`] of arguments.
fn listed(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
) -> Result<Vec<StoredApproval>, StoreError> {
    let mut statement = connection.prepare_cached(sql).or_store_error()?;
    let mut rows = statement.query(values).or_store_error()?;
    let (mut list, mut bytes) = (Vec::new(), 0);
    while bytes < LISTED_BYTES
        && let Some(row) = rows.next().or_store_error()?
    {
        let one = approval(row).ok_or_else(|| damaged("approval"))?;
        bytes += one.argument_bytes();
        list.push(one);
    }
    Ok(list)
}

/// How many approvals are pending.
pub(crate) fn pending(connection: &Connection) -> Result<PendingApprovals, StoreError> {
    let mut statement = connection.prepare_cached(sql::APPROVAL_PENDING).or_store_error()?;
    let found = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    let (count, oldest): (i64, Option<i64>) = found.or_store_error()?;
    let count = u64::try_from(count).unwrap_or_default();
    Ok(PendingApprovals { count, oldest: oldest.and_then(timestamp) })
}

/// Pending approvals whose notice is due.
pub(crate) fn deliveries(
    connection: &Connection,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<DueNotice>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(connection, sql::APPROVAL_DELIVERIES, &[&micros(now), &limit], |row| {
        Some(DueNotice { approval: approval(row)?, attempts: row.get(23).ok()? })
    })
}

/// Records when a notice is sent again.
pub(crate) fn note_delivery(
    connection: &Connection,
    id: &str,
    next: Option<(u32, Timestamp)>,
) -> Result<(), StoreError> {
    let (attempts, due) = next.map_or((0, None), |(attempts, due)| (attempts, Some(micros(due))));
    execute(connection, sql::APPROVAL_DELIVER, params![id, attempts, due]).map(drop)
}

/// Adds a standing exception.
pub(crate) fn except(
    connection: &Connection,
    one: &StandingException,
) -> Result<usize, StoreError> {
    let (fingerprint, policy_hash) =
        (one.fingerprint.map(|hash| hash.0), one.policy_hash.map(|hash| hash.0));
    let question = serde_json::to_string(&one.question).map_err(|_| damaged("exception"))?;
    let values: [&dyn ToSql; 14] = [
        &one.id,
        &one.approval,
        &one.grant,
        &one.server,
        &one.tool,
        &fingerprint,
        &policy_hash,
        &one.kept,
        &one.person,
        &one.reason,
        &micros(one.created),
        &micros(one.expires),
        &one.session_id,
        &question,
    ];
    execute(connection, sql::STANDING_PUT, &values)
}

/// Every standing exception.
pub(crate) fn exceptions(connection: &Connection) -> Result<Vec<StandingException>, StoreError> {
    all(connection, sql::STANDING_ALL, &[], exception)
}

/// Standing exceptions whose time is up.
pub(crate) fn due_exceptions(
    connection: &Connection,
    now: Timestamp,
) -> Result<Vec<StandingException>, StoreError> {
    all(connection, sql::STANDING_DUE, &[&micros(now)], exception)
}

fn exception(row: &Row<'_>) -> Option<StandingException> {
    Some(StandingException {
        id: text(row, 0)?,
        approval: text(row, 1)?,
        grant: text(row, 2)?,
        server: text(row, 3)?,
        tool: text(row, 4)?,
        fingerprint: row.get::<_, Option<[u8; 32]>>(5).ok()?.map(Hash),
        policy_hash: row.get::<_, Option<[u8; 32]>>(6).ok()?.map(Hash),
        kept: text(row, 7)?,
        person: text(row, 8)?,
        reason: row.get(9).ok()?,
        created: timestamp(row.get(10).ok()?)?,
        expires: timestamp(row.get(11).ok()?)?,
        session_id: row.get(12).ok()?,
        question: serde_json::from_str(row.get_ref(13).ok()?.as_str().ok()?).ok()?,
    })
}

fn approval(row: &Row<'_>) -> Option<StoredApproval> {
    // Thousands are listed at once, so what is only parsed is not copied.
    let column = |place| row.get_ref(place).ok()?.as_str().ok();
    let answers: Vec<StoredAnswer> = serde_json::from_str(column(18)?).ok()?;
    let answers = answers.into_iter().map(StoredAnswer::read).collect::<Option<_>>()?;
    Some(StoredApproval {
        id: text(row, 0)?,
        binding: Digest(row.get(1).ok()?),
        state: ApprovalState::parse(column(2)?)?,
        call: HeldCall {
            call_id: CallId(row.get(3).ok()?),
            grant: text(row, 4)?,
            identity: row.get(5).ok()?,
            client: row.get(6).ok()?,
            server: text(row, 7)?,
            session_id: row.get(8).ok()?,
            tool: text(row, 9)?,
            fingerprint: row.get::<_, Option<[u8; 32]>>(10).ok()?.map(Hash),
            digest: Digest(row.get(11).ok()?),
            members: text(row, 12)?,
            class: text(row, 13)?,
            rule: text(row, 14)?,
            policy: row.get(15).ok()?,
            policy_hash: row.get::<_, Option<[u8; 32]>>(16).ok()?.map(Hash),
        },
        question: serde_json::from_str(column(17)?).ok()?,
        answers,
        created: timestamp(row.get(19).ok()?)?,
        expires: timestamp(row.get(20).ok()?)?,
        ended: time(row, 21)?,
        arguments: row.get(22).ok()?,
    })
}

impl StoredAnswer {
    fn of(answer: &Answer) -> Self {
        Self {
            person: answer.person.to_string(),
            approves: answer.approves,
            at: micros(answer.at),
            reason: answer.reason.as_ref().map(ToString::to_string),
            via: answer.via.to_string(),
        }
    }

    fn read(self) -> Option<Answer> {
        Some(Answer {
            person: self.person.into(),
            approves: self.approves,
            at: timestamp(self.at)?,
            reason: self.reason.map(Into::into),
            via: self.via.into(),
        })
    }
}
