//! `toolgate grant …`: the tokens of agents.

use http::Method;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use toolgate_control::visible;

use crate::admin_client::{AdminClient, part};
use crate::args::{
    GrantArgs, GrantCreateArgs, GrantUpdateArgs, GrantVerb, HolderArgs, ListOutput, OneOutput,
    RevokeArgs,
};
use crate::clients::{COMMON, Client};
use crate::exit::{Done, Usage};
use crate::{listing, print};

const COLUMNS: &[(&str, &str)] = &[
    ("LABEL", "label"),
    ("STATE", "state"),
    ("POLICY", "policy"),
    ("SERVERS", "servers"),
    ("SESSIONS", "sessions"),
    ("EXPIRES", "expires"),
    ("LAST USE", "last_use"),
    ("SOURCE", "source"),
    ("ID", "id"),
];

/// Printed with every new token.
pub(crate) const SHOWN_ONCE: &str =
    "The token cannot be shown again; toolgate stores only its hash.\n";

pub(crate) fn run(args: &GrantArgs) -> anyhow::Result<Done> {
    match &args.verb {
        GrantVerb::Create(args) => create(args)?,
        GrantVerb::List(args) => {
            let mut items = AdminClient::new(&args.admin)?.list("/api/v1/grants")?;
            if args.output == ListOutput::Table {
                let now = Timestamp::now();
                for item in &mut items {
                    for_people(item, now);
                }
            }
            listing::list(args.output, &items, COLUMNS);
        }
        GrantVerb::Update(args) => update(args)?,
        GrantVerb::Rotate(args) => rotate(args)?,
        GrantVerb::Revoke(args) => revoke(args)?,
        GrantVerb::Restore(args) => {
            let path = format!("/api/v1/grants/{}/restore", part(&args.id));
            AdminClient::new(&args.admin)?.send(&Method::POST, &path, None)?;
            print::done(&format!("restored the grant `{}`: its token works again", args.id));
        }
    }
    Ok(Done::Ok)
}

fn create(args: &GrantCreateArgs) -> anyhow::Result<()> {
    let body = new(args)?;
    let client = AdminClient::new(&args.admin)?;
    let made = client.send(&Method::POST, "/api/v1/grants", Some(&body))?;
    listing::one(args.output, &made);
    if args.output == OneOutput::Table {
        print::err(&format!("\n{SHOWN_ONCE}"));
        if args.policy.is_none() {
            let hint = format!("toolgate grant update {} --policy NAME", args.label);
            print::err(&format!("It has no policy, so every call is denied: `{hint}` sets one.\n"));
        }
        let status = client.get("/api/v1/status")?;
        if let (Some(url), Some(token)) =
            (listing::text(&status, "mcp"), listing::text(&made, "token"))
        {
            print::err(&visible(&paste(&Client::of_this_user(), url, token)));
        }
    }
    Ok(())
}

/// The lines that connect clients with this token.
fn paste(clients: &[Client], url: &str, token: &str) -> String {
    let clients = if clients.is_empty() { COMMON } else { clients };
    let lines = clients.iter().map(|client| {
        format!("  {}\n", client.line("toolgate", &format!("{url}/mcp"), Some(token)))
    });
    format!("\nTo connect a client, paste:\n{}", lines.collect::<String>())
}

fn update(args: &GrantUpdateArgs) -> anyhow::Result<()> {
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
    if let Some(policy) = &args.policy {
        set("policy", policy.as_str().into());
    }
    if args.no_policy {
        set("policy", Value::Null);
    }
    if !args.servers.is_empty() {
        set("servers", json!(args.servers));
    }
    if args.all_servers {
        set("servers", Value::Null);
    }
    if !args.sessions.is_empty() {
        set("sessions", reach(&args.sessions)?);
    }
    if args.all_sessions {
        set("sessions", Value::Null);
    }
    if let Some(expires) = &args.expires {
        set("expires", expires.as_str().into());
    }
    if args.no_expiry {
        set("expires", Value::Null);
    }
    let path = format!("/api/v1/grants/{}", part(&args.id));
    let client = AdminClient::new(&args.admin)?;
    let mut item = client.send(&Method::PATCH, &path, Some(&Value::Object(body)))?;
    if args.output == OneOutput::Table {
        for_people(&mut item, Timestamp::now());
        print::done(&format!("changed the grant `{}`", args.id));
    }
    listing::one(args.output, &item);
    Ok(())
}

fn rotate(args: &HolderArgs) -> anyhow::Result<()> {
    let path = format!("/api/v1/grants/{}/rotate", part(&args.id));
    let made = AdminClient::new(&args.admin)?.send(&Method::POST, &path, None)?;
    listing::one(args.output, &made);
    if args.output == OneOutput::Table {
        print::err(SHOWN_ONCE);
    }
    Ok(())
}

fn revoke(args: &RevokeArgs) -> anyhow::Result<()> {
    let path = format!("/api/v1/grants/{}", part(&args.id));
    AdminClient::new(&args.admin)?.send(&Method::DELETE, &path, None)?;
    print::done(&format!("revoked the grant `{}`: its token no longer works", args.id));
    Ok(())
}

fn new(args: &GrantCreateArgs) -> anyhow::Result<Value> {
    let mut body = Map::new();
    body.insert("label".into(), args.label.as_str().into());
    let texts =
        [("policy", &args.policy), ("identity", &args.identity), ("expires", &args.expires)];
    for (name, text) in texts {
        if let Some(text) = text {
            body.insert(name.into(), text.as_str().into());
        }
    }
    if !args.servers.is_empty() {
        body.insert("servers".into(), json!(args.servers));
    }
    if !args.sessions.is_empty() {
        body.insert("sessions".into(), reach(&args.sessions)?);
    }
    if !args.groups.is_empty() {
        body.insert("groups".into(), json!(args.groups));
    }
    Ok(Value::Object(body))
}

/// The keys of `--session`.
const KEYS: [&str; 3] = ["infobase_name", "kind", "session_id"];

/// `KEY=GLOB` pairs as the reach of a grant; globs of one key are alternatives.
fn reach(pairs: &[String]) -> Result<Value, Usage> {
    let mut reach = Map::new();
    for pair in pairs {
        let parts =
            pair.split_once('=').filter(|(key, glob)| KEYS.contains(key) && !glob.is_empty());
        let Some((key, glob)) = parts else {
            let why =
                format!("`--session {pair}` must be KEY=GLOB; KEY is one of {}", KEYS.join(", "));
            return Err(Usage(why));
        };
        let globs = reach.entry(key).or_insert_with(|| json!([]));
        if let Some(globs) = globs.as_array_mut() {
            globs.push(glob.into());
        }
    }
    Ok(Value::Object(reach))
}

/// Adds one word for what a grant can do now, and writes its sessions as `--session` takes them.
fn for_people(item: &mut Value, now: Timestamp) {
    let is_set = |name: &str| item.get(name).is_some_and(|value| !value.is_null());
    let frozen = item.get("frozen").and_then(Value::as_bool) == Some(true);
    let expires = listing::text(item, "expires").and_then(|at| at.parse::<Timestamp>().ok());
    let state = match (is_set("revoked"), expires.is_some_and(|at| at <= now), frozen) {
        (true, ..) => "revoked",
        (false, true, _) => "expired",
        (false, false, true) => "frozen",
        (false, false, false) => "active",
    };
    let sessions = item.get("sessions").and_then(Value::as_object).map(pairs);
    if let Some(item) = item.as_object_mut() {
        item.insert("state".to_owned(), state.into());
        if let Some(sessions) = sessions {
            item.insert("sessions".to_owned(), sessions);
        }
    }
}

/// Each key with each of its globs, as `KEY=GLOB`.
fn pairs(reach: &Map<String, Value>) -> Value {
    let of_key = |(key, globs): (&String, &Value)| -> Vec<Value> {
        let globs = globs.as_array().map(Vec::as_slice).unwrap_or_default();
        globs.iter().map(|glob| format!("{key}={}", listing::cell(glob)).into()).collect()
    };
    reach.iter().flat_map(of_key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reach_of_sessions() {
        let pairs =
            ["kind=server", "infobase_name=trade_*", "infobase_name=a=b"].map(str::to_owned);
        let expected = json!({"kind": ["server"], "infobase_name": ["trade_*", "a=b"]});
        assert_eq!(reach(&pairs).unwrap(), expected);
        for wrong in ["server", "base=x", "kind=", "=x"] {
            let error = reach(&[wrong.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("infobase_name, kind, session_id"), "{error}");
        }
    }

    #[test]
    fn states() {
        let now = "2026-11-19T00:00:00Z".parse().unwrap();
        for (item, expected) in [
            (json!({"revoked": null}), "active"),
            (json!({"expires": "2026-11-20T00:00:00Z"}), "active"),
            (json!({"revoked": null, "frozen": true}), "frozen"),
            (json!({"expires": "2026-11-19T00:00:00Z", "frozen": true}), "expired"),
            (json!({"revoked": "2026-01-01T00:00:00Z", "frozen": true}), "revoked"),
        ] {
            let mut item = item;
            for_people(&mut item, now);
            assert_eq!(item["state"], expected);
        }
    }

    #[test]
    fn sessions_are_shown_as_they_are_typed() {
        let sessions = json!({"kind": ["server"], "infobase_name": ["trade_*", "bp"]});
        let mut item = json!({ "sessions": sessions });
        for_people(&mut item, Timestamp::UNIX_EPOCH);
        assert_eq!(
            item["sessions"],
            json!(["infobase_name=trade_*", "infobase_name=bp", "kind=server"])
        );
    }
}
