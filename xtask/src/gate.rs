//! The toolgate binary as a running process.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};

use crate::process::{Group, tail};
use crate::target;

/// How long toolgate may take to become ready.
const READY: Duration = Duration::from_secs(30);

/// The release binary that the part `build` made.
pub(crate) fn binary() -> PathBuf {
    target().join("release/toolgate")
}

/// The debug binary that building the tests made.
pub(crate) fn debug_binary() -> PathBuf {
    target().join("debug/toolgate")
}

/// A toolgate that serves; it ends when this is dropped.
pub(crate) struct Gate {
    _group: Group,
    mcp: String,
}

impl Gate {
    /// Starts toolgate with these servers, its files and its log in `folder`.
    pub(crate) fn start(folder: &Path, servers: &Value) -> Result<Self> {
        Self::serve(folder, &json!({"servers": servers}), &mut Command::new(binary()))
    }

    /// The debug build, for agents with this token and a policy that allows everything.
    pub(crate) fn start_with_grant(folder: &Path, servers: &Value, token: &str) -> Result<Self> {
        let policy = json!({"version": "1", "default": "allow"});
        let grant = json!({"label": "suite", "token": "env:TOOLGATE_TEST_TOKEN", "policy": "all"});
        let document = json!({"servers": servers, "policies": {"all": policy}, "grants": [grant]});
        let mut command = Command::new(debug_binary());
        Self::serve(folder, &document, command.env("TOOLGATE_TEST_TOKEN", token))
    }

    fn serve(folder: &Path, document: &Value, command: &mut Command) -> Result<Self> {
        let (config, log) = (folder.join("toolgate.yaml"), folder.join("toolgate.log"));
        let mut document = document.clone();
        if let Some(document) = document.as_object_mut() {
            let listen = json!({"mcp": "127.0.0.1:0", "sessions": "off", "admin": "off"});
            let always = [("version", json!(1)), ("data", json!("data")), ("listen", listen)];
            document.extend(always.map(|(key, value)| (key.to_owned(), value)));
        }
        // JSON is YAML.
        std::fs::write(&config, format!("{document:#}\n"))?;
        command.args(["serve", "--ready-json", "--config"]).arg(&config);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut group = Group::start("toolgate", command)?;
        let mcp =
            ready(&mut group).with_context(|| format!("toolgate is not ready\n{}", tail(&log)))?;
        Ok(Self { _group: group, mcp })
    }

    /// Where it listens for agents, without a path.
    pub(crate) fn origin(&self) -> String {
        self.mcp.clone()
    }

    /// Where agents reach all servers at once.
    pub(crate) fn all(&self) -> String {
        format!("{}/mcp", self.mcp)
    }

    /// Where agents reach a server.
    pub(crate) fn url(&self, server: &str) -> String {
        format!("{}/mcp/{server}", self.mcp)
    }
}

/// The content of the ready line.
fn ready(group: &mut Group) -> Result<String> {
    let line = first_line(group)?;
    let ready: Value = serde_json::from_str(&line).context("the ready line is not JSON")?;
    let mcp = ready.get("mcp").and_then(Value::as_str).context("the ready line has no `mcp`")?;
    Ok(mcp.to_owned())
}

/// The first line of a process; read on a thread, because a pipe has no read timeout.
pub(crate) fn first_line(group: &mut Group) -> Result<String> {
    let stdout = group.child().stdout.take().context("no standard output")?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        // The receiver is gone once the limit is over.
        send.send(read.map(|_| line)).is_ok()
    });
    Ok(receive.recv_timeout(READY).map_err(|_| anyhow!("no output within 30 s"))??)
}
