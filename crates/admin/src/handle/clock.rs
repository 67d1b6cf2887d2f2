//! Accepting the clock again after it was far ahead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_store::Change;

use crate::api::Ask;
use crate::reply::{Answer, ok};

/// An empty object.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AcceptClock")]
pub(crate) struct Wish {}

/// The effective time.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Clock")]
pub(crate) struct Accepted {
    /// The time before.
    before: String,
    /// The time from now on.
    now: String,
}

pub(crate) async fn accept(ask: Ask) -> Answer {
    if !ask.body.is_empty() {
        let Wish {} = ask.json()?;
    }
    let before = ask.admin.store().status().await?.mark;
    let now = ask.admin.now();
    if before <= now {
        // Expired windows must not become active again.
        let row = ask.row(&format!("accepted the clock: {now:.0}; it was not behind"));
        ask.admin.store().record(row).await?;
    } else {
        let why = format!("accepted the clock: {now:.0} is the time, and not {before:.0}");
        ask.change(Change::AcceptClock, ask.row(&why)).await?;
    }
    ask.admin.gateway().admission().auth_failures().flush();
    ok(&Accepted { before: before.to_string(), now: now.to_string() })
}
