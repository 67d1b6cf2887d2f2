//! `toolgate freeze` and `toolgate unfreeze`: a person stops things, and lets them go on.

use anyhow::bail;
use http::Method;
use serde_json::{Value, json};

use crate::admin_client::{AdminClient, part};
use crate::args::{FreezeArgs, UnfreezeArgs};
use crate::exit::Done;
use crate::listing;

pub(crate) fn freeze(args: &FreezeArgs) -> anyhow::Result<Done> {
    let what = match (&args.grant, &args.server) {
        (Some(grant), _) => json!({"grant": grant}),
        (_, Some(server)) => json!({"server": server}),
        _ => json!({"all": true}),
    };
    let made = AdminClient::new(&args.admin)?.send(&Method::POST, "/api/v1/freeze", Some(&what))?;
    listing::one(args.output, &made);
    Ok(Done::Ok)
}

pub(crate) fn unfreeze(args: &UnfreezeArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    let ids = match &args.id {
        Some(id) => vec![id.clone()],
        None => meant(args, &client.get("/api/v1/status")?),
    };
    if ids.is_empty() {
        bail!("nothing like that is frozen");
    }
    for id in ids {
        client.send(&Method::DELETE, &format!("/api/v1/freeze/{}", part(&id)), None)?;
    }
    Ok(Done::Ok)
}

/// The freezes that these words mean.
fn meant(args: &UnfreezeArgs, status: &Value) -> Vec<String> {
    let text =
        |freeze: &Value, name: &str| freeze.get(name).and_then(Value::as_str).map(str::to_owned);
    let is_meant = |freeze: &&Value| match (&args.grant, &args.server) {
        (Some(grant), _) => text(freeze, "grant").as_ref() == Some(grant),
        (_, Some(server)) => text(freeze, "server").as_ref() == Some(server),
        _ => freeze.get("all").and_then(Value::as_bool) == Some(true),
    };
    let freezes = status.get("freezes").and_then(Value::as_array);
    freezes.into_iter().flatten().filter(is_meant).filter_map(|it| text(it, "id")).collect()
}
