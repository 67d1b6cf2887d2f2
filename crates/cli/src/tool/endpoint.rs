//! Where the gateway is, and as whom it is asked.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use http::{HeaderValue, Uri};
use serde_json::Value;
use toolgate_control::trusted;
use toolgate_gateway::channel::SendError;

use super::client::Failed;
use crate::args::AsAgentArgs;
use crate::data::{announced, find_data};

/// One endpoint of a running gateway.
pub(super) struct Endpoint {
    pub(super) url: Uri,
    /// `Bearer …`, marked so that it is never shown.
    pub(super) authorization: Option<HeaderValue>,
    /// What the gateway says of itself, if that is where the address came from.
    pub(super) ready: Value,
    /// Where the address came from, for messages.
    folder: Option<PathBuf>,
    server: Option<String>,
}

pub(super) fn find(args: &AsAgentArgs) -> anyhow::Result<Endpoint> {
    let (base, ready, folder) = match &args.url {
        Some(url) => (url.clone(), Value::Null, None),
        None => running(args)?,
    };
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/mcp").unwrap_or(base);
    let text = match &args.server {
        Some(server) => format!("{base}/mcp/{server}"),
        None => format!("{base}/mcp"),
    };
    let url = text.parse().with_context(|| format!("`{text}` is no address"))?;
    let authorization = token(args)?.map(|token| bearer(&token)).transpose()?;
    Ok(Endpoint { url, authorization, ready, folder, server: args.server.clone() })
}

/// The address that the gateway of the data folder wrote down when it was ready.
fn running(args: &AsAgentArgs) -> anyhow::Result<(String, Value, Option<PathBuf>)> {
    let folder = find_data(args.data.data.as_deref(), args.data.config.as_deref())?;
    let ready = announced(&folder, "--url")?;
    let ready: Value =
        serde_json::from_str(&ready).context("where the gateway listens cannot be read")?;
    match ready.get("mcp").and_then(Value::as_str).map(str::to_owned) {
        Some(url) => Ok((url, ready, Some(folder))),
        None => bail!("the listener for agents is off (`listen.mcp`), so there is nothing to ask"),
    }
}

fn token(args: &AsAgentArgs) -> anyhow::Result<Option<String>> {
    let token = match &args.token_file {
        Some(file) => trusted::read_named(file)
            .with_context(|| format!("cannot read the token in `{}`", file.display()))?,
        None => std::env::var("TOOLGATE_TOKEN").unwrap_or_default(),
    };
    let token = token.trim();
    Ok((!token.is_empty()).then(|| token.to_owned()))
}

fn bearer(token: &str) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| anyhow!("the token holds characters that no token has"))?;
    value.set_sensitive(true);
    Ok(value)
}

impl Endpoint {
    /// What went wrong, and what to do about it.
    pub(super) fn explain(&self, failed: Failed) -> anyhow::Error {
        let (url, token) = (&self.url, "TOOLGATE_TOKEN or --token-file");
        match failed {
            Failed::Way(SendError::Refused { status, .. }) if status.number == 401 => {
                match self.authorization {
                    Some(_) => anyhow!(
                        "the gateway does not know this token, or it has expired or been revoked"
                    ),
                    None => anyhow!("the gateway wants the token of a grant: give it in {token}"),
                }
            }
            Failed::Way(SendError::Refused { status, .. }) if status.number == 404 => {
                match &self.server {
                    Some(server) => anyhow!("the gateway has no server `{server}` for this grant"),
                    None => anyhow!("there is no MCP endpoint at {url}"),
                }
            }
            Failed::Way(error @ SendError::NotSent(_)) if self.folder.is_some() => anyhow!(
                "the gateway that ran from the data folder does not answer ({error}): start it \
                 again with `toolgate serve`"
            ),
            Failed::Way(error) => anyhow!("{url} cannot be asked: {error}"),
            Failed::Silent => anyhow!("{url} ended the conversation without an answer"),
            Failed::Answer { code, message } => anyhow!("{message} (JSON-RPC error {code})"),
            Failed::Strange(what) => anyhow!("{url} answers what is no MCP: {what}"),
        }
    }
}
