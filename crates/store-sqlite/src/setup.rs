//! Stores what people set up.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use toolgate_audit::Hash;
use toolgate_store::{
    Change, Document, Freeze, FreezeTarget, GrantUse, PolicyVersion, Snapshot, StoreError,
    StoredGrant, StoredPerson, backend::ChangeOutcome,
};

use crate::{
    approvals,
    columns::{all, text, time},
    error::{OrStoreError as _, damaged},
    sql::{self, execute},
    time::{micros, timestamp},
};

/// Applies a change, or returns why not.
pub(crate) fn change(
    connection: &Connection,
    change: &Change,
    now: Timestamp,
) -> Result<ChangeOutcome, StoreError> {
    let now = micros(now);
    let (changed, name) = match change {
        Change::AcceptClock => return accept_clock(connection, now).map(|()| ChangeOutcome::Made),
        Change::ReplaceDocuments { space, keep, forget } => {
            for key in forget {
                execute(connection, sql::KEPT_FORGET, &[space, key])?;
            }
            for (key, json) in keep {
                execute(connection, sql::KEPT_PUT, &[space, key, json])?;
            }
            return Ok(ChangeOutcome::Made);
        }
        Change::PutGrant(grant) => {
            if is_taken(connection, sql::GRANT_TAKEN, &grant.label, &grant.id)? {
                return Ok(ChangeOutcome::NameTaken(grant.label.to_string()));
            }
            (put_grant(connection, grant)?, &grant.id)
        }
        Change::RevokeGrant(id) => (execute(connection, sql::GRANT_REVOKE, &[id, &now])?, id),
        Change::PutPerson(person) => {
            if is_taken(connection, sql::PERSON_TAKEN, &person.name, &person.id)? {
                return Ok(ChangeOutcome::NameTaken(person.name.to_string()));
            }
            (put_person(connection, person)?, &person.id)
        }
        Change::RevokePerson(id) => (execute(connection, sql::PERSON_REVOKE, &[id, &now])?, id),
        Change::PutPolicy { name, document } => {
            (execute(connection, sql::POLICY_PUT, &[name, document, &now])?, name)
        }
        Change::RemovePolicy(name) => (execute(connection, sql::POLICY_REMOVE, &[name])?, name),
        Change::Freeze(freeze) => {
            if let Some(same) = frozen_by(connection, &freeze.what)? {
                return Ok(ChangeOutcome::AlreadyFrozen(same));
            }
            (put_freeze(connection, freeze)?, &freeze.id)
        }
        // The engine makes it.
        Change::Answer { approval, .. } => return Ok(ChangeOutcome::Unknown(approval.to_string())),
        Change::Except(exception) => (approvals::except(connection, exception)?, &exception.id),
        Change::EndException(id) => (execute(connection, sql::STANDING_END, &[id])?, id),
        Change::Unfreeze(id) => (execute(connection, sql::FREEZE_END, &[id])?, id),
        Change::PutDocument(Document { space, key, json }) => {
            (execute(connection, sql::KEPT_PUT, &[space, key, json])?, key)
        }
        Change::RemoveDocument(space, key) => {
            (execute(connection, sql::KEPT_FORGET, &[space, key])?, key)
        }
    };
    Ok(if changed == 0 { ChangeOutcome::Unknown(name.to_string()) } else { ChangeOutcome::Made })
}

/// Moves every window from the high-water mark to `now`. The statements share one parameter, which
/// is trusted.
fn accept_clock(connection: &Connection, now: i64) -> Result<(), StoreError> {
    connection.execute_batch(&sql::REBASE.replace(":now", &format!("({now})"))).or_store_error()
}

fn is_taken(connection: &Connection, sql: &str, name: &str, id: &str) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached(sql).or_store_error()?;
    let others: i64 = statement.query_row([name, id], |row| row.get(0)).or_store_error()?;
    Ok(others > 0)
}

fn put_grant(connection: &Connection, grant: &StoredGrant) -> Result<usize, StoreError> {
    let servers = grant.servers.as_deref().map(list).transpose()?;
    let values: [&dyn rusqlite::ToSql; 12] = [
        &grant.id,
        &grant.label,
        &grant.token.0,
        &grant.identity,
        &list(&grant.groups)?,
        &servers,
        &grant.sessions,
        &grant.policy,
        &micros(grant.created),
        &grant.expires.map(micros),
        &grant.last_use.map(micros),
        &grant.revoked.map(micros),
    ];
    execute(connection, sql::GRANT_PUT, &values)
}

fn put_person(connection: &Connection, person: &StoredPerson) -> Result<usize, StoreError> {
    let values: [&dyn rusqlite::ToSql; 8] = [
        &person.id,
        &person.name,
        &person.token.0,
        &list(&person.roles)?,
        &list(&person.groups)?,
        &micros(person.created),
        &person.expires.map(micros),
        &person.revoked.map(micros),
    ];
    execute(connection, sql::PERSON_PUT, &values)
}

/// The freeze of this target.
fn frozen_by(connection: &Connection, what: &FreezeTarget) -> Result<Option<String>, StoreError> {
    let (kind, name) = what.parts();
    let mut statement = connection.prepare_cached(sql::FREEZE_OF).or_store_error()?;
    statement.query_row(params![kind, name], |row| row.get(0)).optional().or_store_error()
}

fn put_freeze(connection: &Connection, freeze: &Freeze) -> Result<usize, StoreError> {
    let (kind, name) = freeze.what.parts();
    let created = micros(freeze.created);
    let values: [&dyn rusqlite::ToSql; 6] =
        [&freeze.id, &kind, &name, &created, &freeze.person, &freeze.reason];
    execute(connection, sql::FREEZE_PUT, &values)
}

/// Reads everything within one transaction of the caller.
pub(crate) fn snapshot(connection: &Connection) -> Result<Snapshot, StoreError> {
    let generation: i64 =
        connection.query_row(sql::STATE, [], |row| row.get(1)).or_store_error()?;
    Ok(Snapshot {
        generation: u64::try_from(generation).unwrap_or_default(),
        grants: all(connection, sql::GRANT_ALL, &[], grant)?,
        people: all(connection, sql::PERSON_ALL, &[], person)?,
        policies: all(connection, sql::POLICY_ALL, &[], policy)?,
        freezes: all(connection, sql::FREEZE_ALL, &[], freeze)?,
        exceptions: approvals::exceptions(connection)?,
        uses: all(connection, sql::GRANT_USE_ALL, &[], |row| {
            Some(GrantUse { id: text(row, 0)?, at: timestamp(row.get(1).ok()?)? })
        })?,
    })
}

/// Every version of a policy, ascending.
pub(crate) fn policy_versions(
    connection: &Connection,
    name: &str,
) -> Result<Vec<PolicyVersion>, StoreError> {
    all(connection, sql::POLICY_VERSIONS, &[&name], policy)
}

/// The documents of a space.
pub(crate) fn documents(connection: &Connection, space: &str) -> Result<Vec<Document>, StoreError> {
    all(connection, sql::KEPT_ALL, &[&space], |row| {
        Some(Document { space: text(row, 0)?, key: text(row, 1)?, json: text(row, 2)? })
    })
}

fn grant(row: &Row<'_>) -> Option<StoredGrant> {
    let servers: Option<String> = row.get(5).ok()?;
    let servers = match servers {
        Some(servers) => Some(serde_json::from_str(&servers).ok()?),
        None => None,
    };
    Some(StoredGrant {
        id: text(row, 0)?,
        label: text(row, 1)?,
        token: Hash(row.get(2).ok()?),
        identity: row.get(3).ok()?,
        groups: words(row, 4)?,
        servers,
        sessions: row.get(6).ok()?,
        policy: row.get(7).ok()?,
        created: timestamp(row.get(8).ok()?)?,
        expires: time(row, 9)?,
        last_use: time(row, 10)?,
        revoked: time(row, 11)?,
    })
}

fn person(row: &Row<'_>) -> Option<StoredPerson> {
    Some(StoredPerson {
        id: text(row, 0)?,
        name: text(row, 1)?,
        token: Hash(row.get(2).ok()?),
        roles: words(row, 3)?,
        groups: words(row, 4)?,
        created: timestamp(row.get(5).ok()?)?,
        expires: time(row, 6)?,
        revoked: time(row, 7)?,
    })
}

fn policy(row: &Row<'_>) -> Option<PolicyVersion> {
    Some(PolicyVersion {
        name: text(row, 0)?,
        version: u64::try_from(row.get::<_, i64>(1).ok()?).ok()?,
        document: text(row, 2)?,
        created: timestamp(row.get(3).ok()?)?,
    })
}

fn freeze(row: &Row<'_>) -> Option<Freeze> {
    let kind: String = row.get(1).ok()?;
    let name: Option<Arc<str>> = row.get(2).ok()?;
    let what = match (kind.as_str(), name) {
        ("all", None) => FreezeTarget::All,
        ("grant", Some(name)) => FreezeTarget::Grant(name),
        ("server", Some(name)) => FreezeTarget::Server(name),
        ("session", Some(id)) => FreezeTarget::Session(id),
        _ => return None,
    };
    Some(Freeze {
        id: text(row, 0)?,
        what,
        created: timestamp(row.get(3).ok()?)?,
        person: row.get(4).ok()?,
        reason: row.get(5).ok()?,
    })
}

fn words(row: &Row<'_>, place: usize) -> Option<Vec<String>> {
    serde_json::from_str(&row.get::<_, String>(place).ok()?).ok()
}

/// A list of strings as stored.
pub(crate) fn list(words: &[String]) -> Result<String, StoreError> {
    serde_json::to_string(words).map_err(|_| damaged("list"))
}
