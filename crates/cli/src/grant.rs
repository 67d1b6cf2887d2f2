//! `toolgate grant …`: the tokens of agents.

use http::Method;
use serde_json::{Map, Value, json};

use crate::admin_client::{AdminClient, part};
use crate::args::{GrantArgs, GrantCreateArgs, GrantVerb};
use crate::exit::Done;
use crate::{listing, print};

const COLUMNS: &[(&str, &str)] = &[
    ("LABEL", "label"),
    ("POLICY", "policy"),
    ("SERVERS", "servers"),
    ("EXPIRES", "expires"),
    ("LAST USE", "last_use"),
    ("REVOKED", "revoked"),
    ("SOURCE", "source"),
    ("ID", "id"),
];

/// Said with every new token.
pub(crate) const ONCE: &str = "The token is shown this once; toolgate keeps only its hash.\n";

pub(crate) fn run(args: &GrantArgs) -> anyhow::Result<Done> {
    match &args.verb {
        GrantVerb::Create(args) => {
            let client = AdminClient::new(&args.admin)?;
            let made = client.send(&Method::POST, "/api/v1/grants", Some(&new(args)))?;
            print::err(ONCE);
            listing::one(args.output, &made);
        }
        GrantVerb::List(args) => {
            let items = AdminClient::new(&args.admin)?.list("/api/v1/grants")?;
            listing::list(args.output, &items, COLUMNS);
        }
        GrantVerb::Rotate(args) => {
            let path = format!("/api/v1/grants/{}/rotate", part(&args.id));
            let made = AdminClient::new(&args.admin)?.send(&Method::POST, &path, None)?;
            print::err(ONCE);
            listing::one(args.output, &made);
        }
        GrantVerb::Revoke(args) => {
            let path = format!("/api/v1/grants/{}", part(&args.id));
            AdminClient::new(&args.admin)?.send(&Method::DELETE, &path, None)?;
        }
    }
    Ok(Done::Ok)
}

fn new(args: &GrantCreateArgs) -> Value {
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
    if !args.groups.is_empty() {
        body.insert("groups".into(), json!(args.groups));
    }
    Value::Object(body)
}
