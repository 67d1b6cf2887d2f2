//! `toolgate freeze` and `toolgate unfreeze`: stop a grant, a server, a session or everything.

use anyhow::bail;
use http::Method;
use serde_json::{Value, json};

use crate::admin_client::{AdminClient, part};
use crate::args::{FreezeArgs, FreezeVerb, ListOutput, OneOutput, UnfreezeArgs};
use crate::exit::Done;
use crate::listing::{self, text};
use crate::print;

const COLUMNS: &[(&str, &str)] = &[
    ("ID", "id"),
    ("FROZEN", "target"),
    ("SINCE", "created"),
    ("BY", "person"),
    ("REASON", "reason"),
];

pub(crate) fn freeze(args: &FreezeArgs) -> anyhow::Result<Done> {
    if let Some(FreezeVerb::List(args)) = &args.verb {
        let mut items = AdminClient::new(&args.admin)?.list("/api/v1/freeze")?;
        if args.output == ListOutput::Table {
            items.iter_mut().for_each(add_target);
        }
        listing::list(args.output, &items, COLUMNS);
        if args.output == ListOutput::Table && items.is_empty() {
            print::err("nothing is frozen\n");
        }
        return Ok(Done::Ok);
    }
    let mut what = match (&args.grant, &args.server, &args.session) {
        (Some(grant), _, _) => json!({"grant": grant}),
        (_, Some(server), _) => json!({"server": server}),
        (_, _, Some(session)) => json!({"session": session}),
        _ => json!({"all": true}),
    };
    let named = target(&what);
    if let (Some(reason), Some(what)) = (&args.reason, what.as_object_mut()) {
        what.insert("reason".to_owned(), reason.as_str().into());
    }
    let client = AdminClient::new(&args.admin)?;
    let (made, is_new) = client.create("/api/v1/freeze", &what)?;
    listing::one(args.output, &made);
    if args.output == OneOutput::Table {
        let id = text(&made, "id").unwrap_or_default();
        let state = if is_new { "is frozen" } else { "was frozen already" };
        print::done(&format!("{named} {state}; `toolgate unfreeze {id}` ends it"));
    }
    Ok(Done::Ok)
}

pub(crate) fn unfreeze(args: &UnfreezeArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    let freezes = client.list("/api/v1/freeze")?;
    let grant = args.grant.as_ref().map(|named| label_of(&client, named)).transpose()?;
    let selected: Vec<&Value> =
        freezes.iter().filter(|freeze| is_selected(args, grant.as_deref(), freeze)).collect();
    if selected.is_empty() {
        let what = match (&args.id, &grant, &args.server, &args.session) {
            (Some(id), ..) => format!("there is no freeze `{id}`"),
            (_, Some(grant), ..) => format!("the grant `{grant}` is not frozen"),
            (_, _, Some(server), _) => format!("the server `{server}` is not frozen"),
            (_, _, _, Some(session)) => format!("the session `{session}` is not frozen"),
            _ => "there is no freeze of everything".to_owned(),
        };
        bail!("{what}; `toolgate freeze list` shows what is frozen");
    }
    for freeze in selected {
        let id = text(freeze, "id").unwrap_or_default();
        client.send(&Method::DELETE, &format!("/api/v1/freeze/{}", part(id)), None)?;
        print::done(&format!("ended the freeze of {}", target(freeze)));
    }
    Ok(Done::Ok)
}

/// The label of a grant that is named by label or id. A freeze may outlive its grant.
pub(crate) fn label_of(client: &AdminClient, named: &str) -> anyhow::Result<String> {
    let grants = client.list("/api/v1/grants")?;
    let found = grants.iter().find(|grant| text(grant, "id") == Some(named));
    Ok(found.and_then(|grant| text(grant, "label")).unwrap_or(named).to_owned())
}

fn is_selected(args: &UnfreezeArgs, grant: Option<&str>, freeze: &Value) -> bool {
    match (&args.id, grant, &args.server, &args.session) {
        (Some(id), ..) => text(freeze, "id") == Some(id),
        (_, Some(grant), ..) => text(freeze, "grant") == Some(grant),
        (_, _, Some(server), _) => text(freeze, "server") == Some(server),
        (_, _, _, Some(session)) => text(freeze, "session") == Some(session),
        _ => freeze.get("all").and_then(Value::as_bool) == Some(true),
    }
}

/// What a freeze stops, for people.
pub(crate) fn target(freeze: &Value) -> String {
    match (text(freeze, "grant"), text(freeze, "server"), text(freeze, "session")) {
        (Some(grant), _, _) => format!("grant `{grant}`"),
        (_, Some("sessions"), _) => "all sessions".to_owned(),
        (_, Some(server), _) => format!("server `{server}`"),
        (_, _, Some(session)) => format!("session `{session}`"),
        _ => "everything".to_owned(),
    }
}

fn add_target(freeze: &mut Value) {
    let target = target(freeze);
    if let Some(freeze) = freeze.as_object_mut() {
        freeze.insert("target".to_owned(), target.into());
    }
}

/// Whether a freeze stops what a list shows: `kind` is `grant`, `server` or `session`.
pub(crate) fn is_frozen(freezes: &[Value], kind: &str, name: &str) -> bool {
    let stops = |freeze: &Value| {
        let of_all_sessions = kind == "session" && text(freeze, "server") == Some("sessions");
        let of_all = freeze.get("all").and_then(Value::as_bool) == Some(true);
        of_all || of_all_sessions || text(freeze, kind) == Some(name)
    };
    freezes.iter().any(stops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_frozen() {
        let freezes = [json!({"grant": "a"}), json!({"server": "sessions"})];
        for (kind, name, frozen) in [
            ("grant", "a", true),
            ("grant", "b", false),
            ("server", "a", false),
            ("session", "any", true),
        ] {
            assert_eq!(is_frozen(&freezes, kind, name), frozen, "{kind} {name}");
        }
        assert!(is_frozen(&[json!({"all": true})], "server", "x"));
        assert_eq!(freezes.map(|freeze| target(&freeze)), ["grant `a`", "all sessions"]);
    }
}
