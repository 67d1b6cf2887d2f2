//! Revoking grants, and restoring those of the file.
//!
//! Grants of the file are revoked by a record in the store, which overrides the file. Restoring
//! ends that record. A stored grant stays revoked: a new one is as easy to create.

use jiff::Timestamp;
use toolgate_audit::Hash;
use toolgate_control::{GrantItem, Origin};
use toolgate_store::{Change, StoredGrant};

use super::grants::find;
use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, done};

pub(crate) async fn revoke(ask: Ask) -> Answer {
    let _turn = ask.admin.turn.lock().await;
    let view = ask.admin.view();
    let item = find(&view, ask.param("id"))?;
    if item.revoked.is_some() {
        return done();
    }
    let mut row = ask.row(&format!("revoked the grant `{}`", item.label));
    row.grant = Some(item.label.as_str().into());
    let change = match item.source {
        Origin::File => Change::PutGrant(Box::new(record(item, ask.admin.now(), true))),
        _ => Change::RevokeGrant(item.id.as_str().into()),
    };
    ask.change(change, row).await?;
    done()
}

pub(crate) async fn restore(ask: Ask) -> Answer {
    let _turn = ask.admin.turn.lock().await;
    let view = ask.admin.view();
    let item = find(&view, ask.param("id"))?;
    if item.source != Origin::File {
        let why = "is not from toolgate.yaml, so it cannot be restored; create another grant";
        return Err(Fault::conflict(format!("the grant `{}` {why}", item.label)));
    }
    if item.revoked.is_none() {
        return done();
    }
    let mut row = ask.row(&format!("restored the grant `{}`", item.label));
    row.grant = Some(item.label.as_str().into());
    let grant = record(item, ask.admin.now(), false);
    ask.change(Change::PutGrant(Box::new(grant)), row).await?;
    done()
}

/// The record about a grant of the file: revoked or restored. It never opens anything itself: no
/// token has its hash, and it has expired.
fn record(item: &GrantItem, now: Timestamp, revoked: bool) -> StoredGrant {
    StoredGrant {
        id: item.id.as_str().into(),
        label: item.label.as_str().into(),
        token: Hash::default(),
        identity: None,
        groups: Vec::new(),
        servers: None,
        sessions: None,
        policy: None,
        created: now,
        expires: Some(Timestamp::UNIX_EPOCH),
        last_use: None,
        revoked: revoked.then_some(now),
    }
}
