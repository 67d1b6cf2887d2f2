//! `toolgate tool …`: list, show and call tools as an agent does; review and approve definitions as
//! a person.
//!
//! Most verbs are an MCP client of the gateway: they use the agents' listener, so a list shows what the
//! policy lets a grant see, and a call is decided, counted and audited.
//!
//! One file per verb; `client` is the connection, `endpoint` the address and token, `definition`
//! formats a tool for people.

mod approve;
mod call;
mod client;
mod definition;
mod diff;
mod endpoint;
mod list;
mod show;

use std::future::Future;

use anyhow::Context as _;
use client::{Client, Failed};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::admin_client::part;
use crate::args::{AsAgentArgs, ToolArgs, ToolVerb};
use crate::exit::{Done, Usage};

pub(crate) fn run(args: &ToolArgs) -> anyhow::Result<Done> {
    match &args.verb {
        ToolVerb::List(args) => list::run(args),
        ToolVerb::Show(args) if args.diff => diff::run(args),
        ToolVerb::Show(args) => show::run(args),
        ToolVerb::Approve(args) => approve::run(args),
        ToolVerb::Call(args) => call::run(args),
    }
}

/// Opens a client, runs `talk` with it, and closes it.
fn with_client<T, F>(args: &AsAgentArgs, talk: impl FnOnce(Client) -> F) -> anyhow::Result<T>
where
    F: Future<Output = (Client, Result<T, Failed>)>,
{
    let endpoint = endpoint::find(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let result = async {
            let (client, result) = talk(Client::open(&endpoint).await?).await;
            client.close().await;
            result
        };
        result.await.map_err(|failed| endpoint.explain(failed))
    })
}

/// Calls a tool as an agent; its result.
pub(crate) fn call_as(
    args: &AsAgentArgs,
    tool: &str,
    arguments: &RawValue,
) -> anyhow::Result<Box<RawValue>> {
    with_client(args, |mut client| async {
        let result = client.call(tool, arguments).await;
        (client, result)
    })
}

/// Every tool of the endpoint, as its server defines it.
fn all(args: &AsAgentArgs) -> anyhow::Result<Vec<Box<RawValue>>> {
    with_client(args, |mut client| async {
        let tools = client.tools().await;
        (client, tools)
    })
}

/// The names of the tools of the endpoint.
pub(crate) fn names(args: &AsAgentArgs) -> anyhow::Result<Vec<String>> {
    all(args)?.iter().map(|raw| Ok(name(&read(raw)?).to_owned())).collect()
}

/// Parses a definition.
fn read(definition: &RawValue) -> anyhow::Result<Value> {
    serde_json::from_str(definition.get()).context("cannot parse the definition of a tool")
}

fn name(definition: &Value) -> &str {
    definition.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The path of a tool in the admin API, from `SERVER/TOOL`.
fn path_of(named: &str) -> anyhow::Result<String> {
    match named.split_once('/') {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
            Ok(format!("/api/v1/tools/{}/{}", part(server), part(tool)))
        }
        _ => Err(Usage(format!("`{named}` is not SERVER/TOOL, such as `files/read_file`")).into()),
    }
}
