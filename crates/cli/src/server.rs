//! `toolgate server …`: servers that are added at run time, beside those of the file.

use anyhow::Context as _;
use http::Method;
use serde_json::{Map, Value, json};

use crate::admin_client::{AdminClient, part};
use crate::args::{OneOutput, ServerAddArgs, ServerArgs, ServerVerb};
use crate::exit::{Done, Usage};
use crate::{listing, print};

const COLUMNS: &[(&str, &str)] = &[
    ("NAME", "name"),
    ("TRANSPORT", "transport"),
    ("ADDRESS", "address"),
    ("TOOLS", "tools"),
    ("SOURCE", "source"),
];

pub(crate) fn run(args: &ServerArgs) -> anyhow::Result<Done> {
    match &args.verb {
        ServerVerb::Add(args) => {
            let entry = entry(args)?;
            AdminClient::new(&args.admin)?.send(&Method::POST, "/api/v1/servers", Some(&entry))?;
        }
        ServerVerb::List(args) => {
            let items = AdminClient::new(&args.admin)?.list("/api/v1/servers")?;
            listing::list(args.output, &items, COLUMNS);
        }
        ServerVerb::Remove(args) => {
            let path = format!("/api/v1/servers/{}", part(&args.id));
            AdminClient::new(&args.admin)?.send(&Method::DELETE, &path, None)?;
        }
        ServerVerb::Test(args) => {
            let path = format!("/api/v1/servers/{}/test", part(&args.id));
            let tested = AdminClient::new(&args.admin)?.send(&Method::POST, &path, None)?;
            listing::one(args.output, &tested);
            if tested.get("ok").and_then(Value::as_bool) != Some(true) {
                if args.output == OneOutput::Table {
                    print::err("the server does not answer\n");
                }
                return Ok(Done::Finding);
            }
        }
    }
    Ok(Done::Ok)
}

/// The entry as it would stand in `toolgate.yaml`, with its name.
fn entry(args: &ServerAddArgs) -> anyhow::Result<Value> {
    let mut entry = Map::new();
    entry.insert("name".into(), args.name.as_str().into());
    if let Some(url) = &args.url {
        entry.insert("url".into(), url.as_str().into());
        entry.insert("headers".into(), pairs("--header", &args.headers)?);
        return Ok(Value::Object(entry));
    }
    let (command, rest) = args.command.split_first().context("no program is named")?;
    let here = std::env::current_dir().context("this folder cannot be read")?;
    entry.insert("command".into(), command.as_str().into());
    entry.insert("args".into(), json!(rest));
    entry.insert("env".into(), pairs("--env", &args.env)?);
    entry.insert("cwd".into(), here.display().to_string().into());
    Ok(Value::Object(entry))
}

fn pairs(flag: &str, given: &[String]) -> anyhow::Result<Value> {
    let mut pairs = Map::new();
    for pair in given {
        let wrong = || Usage(format!("`{flag}` takes NAME=REFERENCE"));
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        pairs.insert(name.to_owned(), value.into());
    }
    Ok(Value::Object(pairs))
}
