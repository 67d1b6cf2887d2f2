//! People: create, rotate, revoke.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_audit::Hash;
use toolgate_control::Role;
use toolgate_control::{Origin, PersonItem, View};
use toolgate_store::{Change, StoredPerson};

use super::grants::id;
use super::input::{check_name, expires};
use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, created, done, ok, page};
use crate::secret::token;
use crate::suggest::unknown;

/// A new person.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewPerson")]
pub(crate) struct New {
    /// Unique; `admin` is reserved.
    name: String,
    /// Roles; at least one.
    roles: Vec<Role>,
    /// Groups they are in, for policies that name approvers.
    #[serde(default)]
    groups: Vec<String>,
    /// A date (00:00 UTC) or a time.
    expires: Option<String>,
}

/// A new token.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PersonToken")]
pub(crate) struct Made {
    /// The person's id.
    id: String,
    /// Their name.
    name: String,
    /// The token; it cannot be shown again.
    token: String,
}

pub(crate) async fn list(ask: Ask) -> Answer {
    page(ask.admin.view().people.clone(), &ask.query)
}

pub(crate) async fn create(ask: Ask) -> Answer {
    let new: New = ask.json()?;
    let (view, now) = (ask.admin.view(), ask.admin.now());
    check_name("name", &new.name, &["admin"])?;
    if new.roles.is_empty() {
        return Err(Fault::bad_request("`roles` is empty: give at least `viewer`"));
    }
    if view.people.iter().any(|person| person.name == new.name) {
        let why = "names stay taken after a revocation, choose another";
        return Err(Fault::conflict(format!("the name `{}` is taken; {why}", new.name)));
    }
    let token = token(&ask.admin.random()?);
    let roles: Vec<String> = new.roles.iter().map(|role| role.as_str().to_owned()).collect();
    let row = ask.row(&format!("created the person `{}` ({})", new.name, roles.join(", ")));
    let person = StoredPerson {
        id: id("p-", &ask.admin.random()?),
        name: new.name.as_str().into(),
        token: Hash::of(token.as_bytes()),
        roles,
        groups: new.groups,
        created: now,
        expires: new.expires.map(|text| expires(&text, now)).transpose()?,
        revoked: None,
    };
    let made = Made { id: person.id.to_string(), name: new.name, token };
    ask.change(Change::PutPerson(Box::new(person)), row).await?;
    created(&made)
}

pub(crate) async fn rotate(ask: Ask) -> Answer {
    let _turn = ask.admin.turn.lock().await;
    let view = ask.admin.view();
    let item = find(&view, ask.param("id"))?;
    if item.revoked.is_some() {
        return Err(Fault::conflict(format!("the token of `{}` was revoked", item.name)));
    }
    refuse_others(item)?;
    let kept = ask.admin.store().snapshot().await?.people;
    let person = kept.into_iter().find(|person| *person.id == *item.id);
    let mut person = person.ok_or_else(|| Fault::not_found("the person is gone"))?;
    let token = token(&ask.admin.random()?);
    person.token = Hash::of(token.as_bytes());
    let made = Made { id: item.id.clone(), name: item.name.clone(), token };
    let row = ask.row(&format!("rotated the token of the person `{}`", item.name));
    let name = Arc::clone(&person.name);
    ask.change(Change::PutPerson(Box::new(person)), row).await?;
    ask.admin.gateway().admission().delegations().end_of(&name);
    ok(&made)
}

pub(crate) async fn revoke(ask: Ask) -> Answer {
    let _turn = ask.admin.turn.lock().await;
    let view = ask.admin.view();
    let item = find(&view, ask.param("id"))?;
    if item.revoked.is_some() {
        return done();
    }
    let row = ask.row(&format!("revoked the token of the person `{}`", item.name));
    let change = match item.source {
        Origin::Store => Change::RevokePerson(item.id.as_str().into()),
        Origin::File => Change::PutPerson(Box::new(tombstone(item, &ask))),
        Origin::Data | Origin::BuiltIn => {
            refuse_others(item)?;
            return done();
        }
    };
    ask.change(change, row).await?;
    ask.admin.gateway().admission().delegations().end_of(&item.name);
    done()
}

/// The revocation that overrides a person of the file.
fn tombstone(item: &PersonItem, ask: &Ask) -> StoredPerson {
    let now = ask.admin.now();
    StoredPerson {
        id: item.id.as_str().into(),
        name: Arc::from(item.name.as_str()),
        token: Hash::default(),
        roles: Vec::new(),
        groups: Vec::new(),
        created: now,
        expires: None,
        revoked: Some(now),
    }
}

/// A person by id or name.
fn find<'v>(view: &'v View, named: &str) -> Result<&'v PersonItem, Fault> {
    let found = view.people.iter().find(|person| person.id == named || person.name == named);
    let known = view.people.iter().map(|person| person.name.as_str());
    found.ok_or_else(|| unknown("person", named, known))
}

fn refuse_others(item: &PersonItem) -> Result<(), Fault> {
    let why = match item.source {
        Origin::Store => return Ok(()),
        Origin::File => "comes from toolgate.yaml; change the token there",
        Origin::Data | Origin::BuiltIn => {
            "has the token in the file `admin.token` of the data folder; to replace it, stop \
             toolgate, remove the file and start again"
        }
    };
    Err(Fault::conflict(format!("the person `{}` {why}", item.name)))
}
