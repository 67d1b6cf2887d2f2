//! The address of the gateway, and the token to use.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use http::{HeaderValue, Method, Uri};
use serde_json::Value;
use toolgate_control::trusted;
use toolgate_gateway::channel::SendError;

use super::client::Failed;
use crate::admin_client::{AdminClient, part};
use crate::args::{AdminArgs, AsAgentArgs};
use crate::data::{announced, find_data};
use crate::listing::text;

/// One endpoint of a running gateway.
pub(super) struct Endpoint {
    pub(super) url: Uri,
    /// `Bearer …`, marked as sensitive.
    pub(super) authorization: Option<HeaderValue>,
    /// The ready line of the gateway, if the address came from the data folder.
    pub(super) ready: Value,
    /// The data folder of the address, for messages.
    folder: Option<PathBuf>,
    server: Option<String>,
}

pub(super) fn find(args: &AsAgentArgs) -> anyhow::Result<Endpoint> {
    let delegated = args.as_grant.as_deref().map(|grant| delegate(args, grant)).transpose()?;
    let (base, ready, folder) = match (&args.url, &delegated) {
        (Some(url), _) => (url.clone(), Value::Null, None),
        (None, Some((_, Some(url)))) if args.admin.is_some() => (url.clone(), Value::Null, None),
        _ => running(args)?,
    };
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/mcp").unwrap_or(base);
    let text = match &args.server {
        Some(server) => format!("{base}/mcp/{server}"),
        None => format!("{base}/mcp"),
    };
    let url = text.parse().with_context(|| format!("`{text}` is not a valid address"))?;
    let token = match delegated {
        Some((token, _)) => Some(token),
        None => token(args)?,
    };
    let authorization = token.map(|token| bearer(&token)).transpose()?;
    Ok(Endpoint { url, authorization, ready, folder, server: args.server.clone() })
}

/// The address of the gateway that runs on the data folder.
fn running(args: &AsAgentArgs) -> anyhow::Result<(String, Value, Option<PathBuf>)> {
    let folder = find_data(args.data.data.as_deref(), args.data.config.as_deref())?;
    let ready = announced(&folder, "--url")?;
    let ready: Value = serde_json::from_str(&ready).context("cannot parse `serve.json`")?;
    match ready.get("mcp").and_then(Value::as_str).map(str::to_owned) {
        Some(url) => Ok((url, ready, Some(folder))),
        None => bail!("the running gateway has no listener for agents (`listen.mcp` is off)"),
    }
}

/// A token that calls with the rights of a grant, and the address of the agents' listener.
fn delegate(args: &AsAgentArgs, grant: &str) -> anyhow::Result<(String, Option<String>)> {
    let admin = AdminArgs { admin: args.admin.clone(), data: args.data.clone() };
    let client = AdminClient::new(&admin)?;
    let path = format!("/api/v1/grants/{}/delegate", part(grant));
    let made = client.send(&Method::POST, &path, None)?;
    let token = text(&made, "token").context("the gateway returned no token")?.to_owned();
    let url = client.get("/api/v1/status")?;
    Ok((token, text(&url, "mcp").map(str::to_owned)))
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
        .map_err(|_| anyhow!("the token contains invalid characters"))?;
    value.set_sensitive(true);
    Ok(value)
}

impl Endpoint {
    /// The error, and what to do.
    pub(super) fn explain(&self, failed: Failed) -> anyhow::Error {
        let (url, token) = (&self.url, "TOOLGATE_TOKEN or --token-file");
        match failed {
            Failed::Transport(SendError::Refused { status, .. }) if status.number == 401 => {
                match self.authorization {
                    Some(_) => anyhow!(
                        "the gateway does not know this token, or it has expired or been revoked"
                    ),
                    None => anyhow!(
                        "the gateway needs the token of a grant: pass it in {token}, or use --as GRANT"
                    ),
                }
            }
            Failed::Transport(SendError::Refused { status, .. }) if status.number == 404 => {
                match &self.server {
                    Some(server) => anyhow!("the gateway has no server `{server}` for this grant"),
                    None => anyhow!("there is no MCP endpoint at {url}"),
                }
            }
            Failed::Transport(error @ SendError::NotSent(_)) if self.folder.is_some() => anyhow!(
                "the gateway on the data folder does not answer ({error}); start it again with \
                 `toolgate serve`"
            ),
            Failed::Transport(error) => anyhow!("cannot reach {url}: {error}"),
            Failed::NoAnswer => anyhow!("{url} closed the connection without an answer"),
            Failed::Rpc { code, message } => anyhow!("{message} (JSON-RPC error {code})"),
            Failed::Malformed(what) => anyhow!("the answer of {url} is not valid MCP: {what}"),
        }
    }
}
