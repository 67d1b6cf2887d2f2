//! The gateway of the demo: a process of its own, in a temporary folder, on free ports.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use toolgate_control::trusted;
use toolgate_os::{files, process};

use super::tour::{self, LIMIT};
use crate::admin_client::AdminClient;
use crate::args::{AdminArgs, AsAgentArgs, DataArgs};
use crate::listing::text;
use crate::{serve, tool};

/// A running gateway; ended and removed with its folder when dropped.
pub(super) struct DemoGateway {
    folder: PathBuf,
    child: Child,
    ready: Value,
}

impl DemoGateway {
    pub(super) fn start() -> anyhow::Result<Self> {
        let name = serve::new_token()?;
        let name = name.get(name.len().saturating_sub(12)..).unwrap_or_default();
        let folder = std::env::temp_dir().join(format!("toolgate-demo-{name}"));
        let what = || format!("cannot create `{}`", folder.display());
        files::create_folder(&folder).with_context(what)?;
        let config = config()?;
        let (file, token) = (folder.join("toolgate.yaml"), serve::new_token()?);
        trusted::put(&file, config.as_bytes()).with_context(what)?;
        trusted::put(&folder.join("agent.token"), token.as_bytes()).with_context(what)?;
        let log = File::create_new(folder.join("log")).with_context(what)?;
        let program = std::env::current_exe().context("the path of this program is not known")?;
        let mut child = Command::new(program)
            .args(["serve", "--ready-json", "--config"])
            .arg(&file)
            .arg("--data")
            .arg(folder.join("data"))
            .env("DEMO_AGENT_TOKEN", &token)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start the gateway")?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).context("cannot read from the gateway")?;
        }
        let ready = serde_json::from_str(&line).unwrap_or_default();
        let gateway = Self { folder, child, ready };
        if line.is_empty() {
            let log = fs::read_to_string(gateway.log()).unwrap_or_default();
            bail!("the gateway of the demo did not start:\n{log}");
        }
        Ok(gateway)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The address of a listener.
    pub(super) fn address(&self, listener: &str) -> &str {
        text(&self.ready, listener).unwrap_or_default()
    }

    pub(super) fn call(&self, name: &str, arguments: &Value) -> anyhow::Result<Value> {
        tour::call(&self.agent(), name, arguments)
    }

    /// The names of the tools that the agent sees.
    pub(super) fn tools(&self) -> anyhow::Result<Vec<String>> {
        tool::names(&self.agent())
    }

    /// The rows after this one.
    pub(super) fn rows(&self, after: u64) -> anyhow::Result<Vec<Value>> {
        let path = format!("/api/v1/audit?after={after}&limit=1000");
        let answer = self.admin()?.get(&path)?;
        Ok(answer.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    pub(super) fn admin(&self) -> anyhow::Result<AdminClient> {
        let admin = Some(self.address("admin").to_owned());
        AdminClient::new(&AdminArgs { admin, data: self.data_args() })
    }

    fn data_args(&self) -> DataArgs {
        DataArgs { config: None, data: Some(self.data()) }
    }

    fn agent(&self) -> AsAgentArgs {
        AsAgentArgs {
            server: None,
            url: Some(self.address("mcp").to_owned()),
            token_file: Some(self.folder.join("agent.token")),
            as_grant: None,
            admin: None,
            data: self.data_args(),
        }
    }
}

impl Drop for DemoGateway {
    fn drop(&mut self) {
        if process::terminate(&self.child).is_err() || self.child.wait().is_err() {
            tracing::debug!("the gateway of the demo has ended already");
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::debug!(%error, "the folder of the demo was not removed");
        }
    }
}

/// The configuration. The servers are shared, so that the rug-puller keeps its state.
fn config() -> anyhow::Result<String> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let server = |kind: &str| json!({"command": program, "args": ["demo", "server", kind], "instances": "shared"});
    let limit = json!([{"counter": "reads", "max": LIMIT, "window": "1m", "scope": "grant"}]);
    let policy = json!({
        "version": "1", "default": "allow", "hide": ["export_all"],
        "tools": {
            "delete_note": {"action": "deny"},
            "send_mail": {"approve": {"wait": "0s"}},
            "read_note": {"limits": limit},
        },
    });
    let config = json!({
        "version": 1,
        "listen": {"mcp": "127.0.0.1:0", "sessions": "127.0.0.1:0", "admin": "127.0.0.1:0"},
        "servers": {
            "safe": server("safe"), "poisoned": server("poisoned"),
            "rug-puller": server("rug-puller"),
        },
        "policies": {"demo": policy},
        "grants": [{"label": "agent", "token": "env:DEMO_AGENT_TOKEN", "policy": "demo"}],
    });
    Ok(format!("{config:#}\n"))
}
