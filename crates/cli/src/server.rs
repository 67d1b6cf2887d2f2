//! `toolgate server …`: servers added at run time, in addition to those of the file.

use anyhow::{Context as _, anyhow};
use http::Method;
use serde_json::{Map, Value, json};
use toolgate_control::visible;

use crate::admin_client::{AdminClient, NotValid, part};
use crate::args::{
    HolderArgs, ListOutput, OneOutput, ServerAddArgs, ServerArgs, ServerVerb, ShownListArgs,
};
use crate::catalog::compare_running;
use crate::exit::{Done, Usage};
use crate::listing::{self, text};
use crate::print;
use crate::waiting::Waiting;

const COLUMNS: &[(&str, &str)] = &[
    ("NAME", "name"),
    ("STATE", "state"),
    ("TOOLS", "tools"),
    ("TRANSPORT", "transport"),
    ("COMMAND OR URL", "target"),
    ("SOURCE", "source"),
    ("LAST ERROR", "last_error"),
];

pub(crate) fn run(args: &ServerArgs) -> anyhow::Result<Done> {
    match &args.verb {
        ServerVerb::Add(args) => {
            let entry = entry(args)?;
            let client = AdminClient::new(&args.admin)?;
            let added = client.send(&Method::POST, "/api/v1/servers", Some(&entry));
            let added = added.map_err(|error| match error.downcast::<NotValid>() {
                Ok(error) => anyhow!(error.without_places()),
                Err(error) => error,
            })?;
            print::err(&warnings(&added));
            let name = &args.name;
            print::done(&format!(
                "added the server `{name}`; `toolgate server test {name}` connects to it"
            ));
            if let Some(compared) = compare_running(&client, name) {
                print::done(&compared);
            }
        }
        ServerVerb::List(args) => list(args)?,
        ServerVerb::Remove(args) => {
            let path = format!("/api/v1/servers/{}", part(&args.id));
            AdminClient::new(&args.admin)?.send(&Method::DELETE, &path, None)?;
            print::done(&format!("removed the server `{}`", args.id));
        }
        ServerVerb::Test(args) => return test(args),
    }
    Ok(Done::Ok)
}

/// The warnings about the entry of a server, one line each.
fn warnings(added: &Value) -> String {
    let problems = added.get("problems").and_then(Value::as_array);
    let line = |problem: &Value| {
        let part = |name| text(problem, name).unwrap_or_default();
        let (severity, code) = (part("severity"), part("code"));
        visible(&format!("{severity}[{code}]: {}; {}\n", part("message"), part("hint")))
    };
    problems.into_iter().flatten().map(line).collect()
}

fn list(args: &ShownListArgs) -> anyhow::Result<()> {
    let client = AdminClient::new(&args.admin)?;
    let mut items = client.list("/api/v1/servers")?;
    if args.output == ListOutput::Table {
        items.iter_mut().for_each(for_people);
    }
    listing::list(args.output, &items, COLUMNS);
    Ok(())
}

/// Adds the cells of a server: its state with a freeze, and the whole command or the address.
fn for_people(item: &mut Value) {
    let frozen = item.get("frozen").and_then(Value::as_bool) == Some(true);
    let state = text(item, "state").map(|state| state.replace('_', " "));
    let state = match (state, frozen) {
        (Some(state), true) => Some(format!("{state}, frozen")),
        (None, true) => Some("frozen".to_owned()),
        (state, false) => state,
    };
    let target = text(item, "command").or_else(|| text(item, "address")).map(str::to_owned);
    if let Some(item) = item.as_object_mut() {
        item.insert("state".to_owned(), state.into());
        item.insert("target".to_owned(), target.into());
    }
}

fn test(args: &HolderArgs) -> anyhow::Result<Done> {
    let path = format!("/api/v1/servers/{}/test", part(&args.id));
    let client = AdminClient::new(&args.admin)?;
    let waiting = (args.output == OneOutput::Table)
        .then(|| Waiting::start(&format!("connecting to server `{}`", visible(&args.id))));
    let tested = client.send(&Method::POST, &path, None);
    drop(waiting);
    let tested = tested?;
    let ok = tested.get("ok").and_then(Value::as_bool) == Some(true);
    match args.output {
        OneOutput::Json => listing::one(args.output, &tested),
        OneOutput::Table => {
            print::out(&report(&args.id, ok, &tested));
            if let Some(compared) = compare_running(&client, &args.id).filter(|_| ok) {
                print::out(&format!("{}\n", visible(&compared)));
            }
        }
    }
    Ok(if ok { Done::Ok } else { Done::Finding })
}

/// One sentence, and the tools.
fn report(name: &str, ok: bool, tested: &Value) -> String {
    let ms = tested.get("ms").and_then(Value::as_u64).unwrap_or_default();
    if !ok {
        let why = text(tested, "message").unwrap_or("no reason is known");
        let known = format!("server `{name}` cannot be reached: ");
        let why = why.strip_prefix(&known).unwrap_or(why);
        return visible(&format!("server `{name}` failed after {ms} ms: {why}\n"));
    }
    let tools =
        tested.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names: Vec<String> =
        tools.iter().map(|tool| format!("  {}\n", listing::cell(tool))).collect();
    visible(&format!(
        "server `{name}` answered in {ms} ms with {} tools\n{}",
        tools.len(),
        names.concat()
    ))
}

/// The entry as in `toolgate.yaml`, with its name.
fn entry(args: &ServerAddArgs) -> anyhow::Result<Value> {
    let mut entry = Map::new();
    entry.insert("name".into(), args.name.as_str().into());
    if let Some(url) = &args.url {
        entry.insert("url".into(), url.as_str().into());
        entry.insert("headers".into(), pairs("--header", &args.headers)?);
        return Ok(Value::Object(entry));
    }
    let (command, rest) = args.command.split_first().context("no program is given")?;
    let here = std::env::current_dir().context("cannot read the current folder")?;
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
