//! `toolgate tool …`: what an agent sees and gets, without an agent.
//!
//! The verbs are an MCP client of the gateway: they go through the agents' listener, so what they
//! list is what the policy lets a grant see, and what they call is decided, counted and audited.
//!
//! One file per verb; `client` is the connection, `endpoint` says where and as whom, `definition`
//! is how a tool looks to people.

mod call;
mod client;
mod definition;
mod endpoint;
mod list;
mod show;

use std::future::Future;

use anyhow::Context as _;
use client::{Client, Failed};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::args::{AsAgentArgs, ToolArgs, ToolVerb};
use crate::exit::Done;

pub(crate) fn run(args: &ToolArgs) -> anyhow::Result<Done> {
    match &args.verb {
        ToolVerb::List(args) => list::run(args),
        ToolVerb::Show(args) => show::run(args),
        ToolVerb::Call(args) => call::run(args),
    }
}

/// One conversation with the gateway from beginning to end.
fn converse<T, F>(args: &AsAgentArgs, talk: impl FnOnce(Client) -> F) -> anyhow::Result<T>
where
    F: Future<Output = (Client, Result<T, Failed>)>,
{
    let endpoint = endpoint::find(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let said = async {
            let (client, result) = talk(Client::open(&endpoint).await?).await;
            client.close().await;
            result
        };
        said.await.map_err(|failed| endpoint.explain(failed))
    })
}

/// Every tool of the endpoint, as it is described there.
fn all(args: &AsAgentArgs) -> anyhow::Result<Vec<Box<RawValue>>> {
    converse(args, |mut client| async {
        let tools = client.tools().await;
        (client, tools)
    })
}

/// A definition, to look into.
fn read(definition: &RawValue) -> anyhow::Result<Value> {
    serde_json::from_str(definition.get()).context("a tool's definition cannot be read")
}

fn name(definition: &Value) -> &str {
    definition.get("name").and_then(Value::as_str).unwrap_or_default()
}
