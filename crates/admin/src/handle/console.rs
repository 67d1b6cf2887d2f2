//! `POST /api/v1/console/link`: a link that signs the caller in to the console.

use schemars::JsonSchema;
use serde::Serialize;

use super::input::shown;
use crate::api::Ask;
use crate::reply::{Answer, created};
use crate::secret::token;
use crate::sign_in_links::LIFETIME;

/// A new link.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SignInLink")]
pub(crate) struct Made {
    /// The path of the link, below the address of the admin listener; it works once.
    path: String,
    /// When it expires.
    expires: String,
}

pub(crate) async fn link(ask: Ask) -> Answer {
    let now = ask.admin.now();
    let code = token(&ask.admin.random()?);
    ask.check_person()?;
    ask.admin.store().record(ask.row("created a link that signs in to the console")).await?;
    ask.admin.sign_in_links.add(&code, ask.token, now);
    created(&Made { path: format!("/login?code={code}"), expires: shown(now + LIFETIME) })
}
