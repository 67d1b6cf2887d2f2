//! `toolgate freeze` and `toolgate unfreeze`: a person stops things, and lets them go on.

use anyhow::bail;
use http::Method;
use serde_json::{Value, json};

use crate::admin_client::{AdminClient, part};
use crate::args::{FreezeArgs, FreezeVerb, UnfreezeArgs};
use crate::exit::Done;
use crate::listing;

const COLUMNS: &[(&str, &str)] = &[
    ("ID", "id"),
    ("GRANT", "grant"),
    ("SERVER", "server"),
    ("SESSION", "session"),
    ("ALL", "all"),
    ("SINCE", "created"),
];

pub(crate) fn freeze(args: &FreezeArgs) -> anyhow::Result<Done> {
    if let Some(FreezeVerb::List(args)) = &args.verb {
        let items = AdminClient::new(&args.admin)?.list("/api/v1/freeze")?;
        listing::list(args.output, &items, COLUMNS);
        return Ok(Done::Ok);
    }
    let mut what = match (&args.grant, &args.server, &args.session) {
        (Some(grant), _, _) => json!({"grant": grant}),
        (_, Some(server), _) => json!({"server": server}),
        (_, _, Some(session)) => json!({"session": session}),
        _ => json!({"all": true}),
    };
    if let (Some(reason), Some(what)) = (&args.reason, what.as_object_mut()) {
        what.insert("reason".to_owned(), reason.as_str().into());
    }
    let made = AdminClient::new(&args.admin)?.send(&Method::POST, "/api/v1/freeze", Some(&what))?;
    listing::one(args.output, &made);
    Ok(Done::Ok)
}

pub(crate) fn unfreeze(args: &UnfreezeArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    let ids = match &args.id {
        Some(id) => vec![id.clone()],
        None => meant(args, &client.list("/api/v1/freeze")?),
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
fn meant(args: &UnfreezeArgs, freezes: &[Value]) -> Vec<String> {
    let text =
        |freeze: &Value, name: &str| freeze.get(name).and_then(Value::as_str).map(str::to_owned);
    let is_meant = |freeze: &&Value| match (&args.grant, &args.server, &args.session) {
        (Some(grant), _, _) => text(freeze, "grant").as_ref() == Some(grant),
        (_, Some(server), _) => text(freeze, "server").as_ref() == Some(server),
        (_, _, Some(session)) => text(freeze, "session").as_ref() == Some(session),
        _ => freeze.get("all").and_then(Value::as_bool) == Some(true),
    };
    freezes.iter().filter(is_meant).filter_map(|it| text(it, "id")).collect()
}
