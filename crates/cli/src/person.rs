//! `toolgate person …`: the tokens of people.

use http::Method;
use serde_json::{Value, json};

use crate::admin_client::{AdminClient, part};
use crate::args::{PersonArgs, PersonCreateArgs, PersonVerb};
use crate::exit::Done;
use crate::grant::SHOWN_ONCE;
use crate::{listing, print};

const COLUMNS: &[(&str, &str)] = &[
    ("NAME", "name"),
    ("ROLES", "roles"),
    ("GROUPS", "groups"),
    ("EXPIRES", "expires"),
    ("REVOKED", "revoked"),
    ("SOURCE", "source"),
    ("ID", "id"),
];

pub(crate) fn run(args: &PersonArgs) -> anyhow::Result<Done> {
    match &args.verb {
        PersonVerb::Create(args) => {
            let client = AdminClient::new(&args.admin)?;
            let made = client.send(&Method::POST, "/api/v1/people", Some(&new(args)))?;
            listing::one(args.output, &made);
            print::err(SHOWN_ONCE);
        }
        PersonVerb::List(args) => {
            let items = AdminClient::new(&args.admin)?.list("/api/v1/people")?;
            listing::list(args.output, &items, COLUMNS);
        }
        PersonVerb::Rotate(args) => {
            let path = format!("/api/v1/people/{}/rotate", part(&args.id));
            let made = AdminClient::new(&args.admin)?.send(&Method::POST, &path, None)?;
            listing::one(args.output, &made);
            print::err(SHOWN_ONCE);
        }
        PersonVerb::Revoke(args) => {
            let path = format!("/api/v1/people/{}", part(&args.id));
            AdminClient::new(&args.admin)?.send(&Method::DELETE, &path, None)?;
            print::done(&format!("revoked the person `{}`: the token no longer works", args.id));
        }
    }
    Ok(Done::Ok)
}

fn new(args: &PersonCreateArgs) -> Value {
    let mut body = json!({"name": args.name, "roles": args.roles, "groups": args.groups});
    if let (Some(expires), Some(body)) = (&args.expires, body.as_object_mut()) {
        body.insert("expires".into(), expires.as_str().into());
    }
    body
}
