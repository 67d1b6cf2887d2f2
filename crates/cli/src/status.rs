//! `toolgate status`: the state of the running gateway on one screen.
//!
//! `Facts` is everything that the admin API knows; `screen` and `attention` are functions of it.

mod attention;
mod screen;

use serde_json::{Value, json};

use crate::admin_client::AdminClient;
use crate::args::{OneOutput, StatusArgs};
use crate::exit::Done;
use crate::print;

/// The answers of the admin API that the screen shows.
#[derive(Debug, Default)]
struct Facts {
    status: Value,
    servers: Vec<Value>,
    sessions: Vec<Value>,
    grants: Vec<Value>,
    policies: Vec<Value>,
}

pub(crate) fn run(args: &StatusArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    let facts = Facts {
        status: client.get("/api/v1/status")?,
        servers: client.list("/api/v1/servers")?,
        sessions: client.list("/api/v1/sessions")?,
        grants: client.list("/api/v1/grants")?,
        policies: client.list("/api/v1/policies")?,
    };
    print::out(&match args.output {
        OneOutput::Table => screen::render(&facts),
        OneOutput::Json => format!("{}\n", object(&facts)),
    });
    Ok(Done::Ok)
}

/// The status of the API, with the lists and what needs attention.
fn object(facts: &Facts) -> Value {
    let mut all = facts.status.clone();
    if let Some(all) = all.as_object_mut() {
        let lists = [
            ("server_list", &facts.servers),
            ("session_list", &facts.sessions),
            ("grant_list", &facts.grants),
            ("policy_list", &facts.policies),
        ];
        for (name, list) in lists {
            all.insert(name.to_owned(), json!(list));
        }
        all.insert("attention".to_owned(), json!(attention::find(facts)));
    }
    all
}
