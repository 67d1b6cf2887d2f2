//! Delegation: an admin calls with the rights of a grant (`toolgate tool --as`).

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_audit::Hash;
use toolgate_gateway::Delegation;

use super::grants::find;
use super::input::shown;
use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, created};
use crate::secret::token;

/// How long its token works.
const LIFETIME: SignedDuration = SignedDuration::from_mins(5);
/// The grant of calls without a token.
const LOCAL: &str = "local";

/// A new delegation.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Delegation")]
pub(crate) struct Made {
    /// The token for the agents' listener; it cannot be shown again.
    token: String,
    /// When it expires.
    expires: String,
}

pub(crate) async fn create(ask: Ask) -> Answer {
    let view = ask.admin.view();
    let named = ask.param("id");
    let label = match find(&view, named) {
        Ok(grant) if grant.revoked.is_some() => {
            return Err(Fault::conflict(format!("the grant `{}` was revoked", grant.label)));
        }
        Ok(grant) => grant.label.as_str(),
        Err(_) if view.local && named == LOCAL => LOCAL,
        Err(fault) => return Err(fault),
    };
    let now = ask.admin.now();
    let expires = now + LIFETIME;
    let token = token(&ask.admin.random()?);
    let mut row = ask.row(&format!("called with the rights of the grant `{label}`"));
    row.grant = Some(label.into());
    ask.check_person()?;
    ask.admin.store().record(row).await?;
    let delegation = Delegation {
        token: Hash::of(token.as_bytes()),
        grant: label.into(),
        person: ask.who.name.clone(),
        expires,
    };
    ask.admin.gateway().admission().delegations().add(delegation, now);
    created(&Made { token, expires: shown(expires) })
}
