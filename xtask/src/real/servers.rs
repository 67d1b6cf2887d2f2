//! The real servers: how each is started and which files it has.
//!
//! Invariant: a server works only in its case's folder, recreated before each run, and listens only
//! on the loopback interface.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::compare::Link;
use crate::peers::{folder, python, sources};
use crate::process::{Group, output, tail};

/// How long a server that listens may take to start: zulipchat-mcp needs 20 s on a busy machine.
const START: Duration = Duration::from_mins(2);

/// A kind of server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Server {
    Everything,
    EverythingHttp,
    Filesystem,
    Memory,
    Time,
    Git,
    Zulip,
    ZulipHttp,
    /// Over HTTP+SSE, the older transport.
    Older,
}

impl Server {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::EverythingHttp => "everything-http",
            Self::Filesystem => "filesystem",
            Self::Memory => "memory",
            Self::Time => "time",
            Self::Git => "git",
            Self::Zulip => "zulip",
            Self::ZulipHttp => "zulip-http",
            Self::Older => "older",
        }
    }

    pub(super) fn link(self) -> Link {
        match self {
            Self::EverythingHttp | Self::ZulipHttp | Self::Older => Link::Http,
            _ => Link::Stdio,
        }
    }

    /// The file name of the tour: a server has one, for all transports.
    pub(super) fn tour(self) -> &'static str {
        self.name().trim_end_matches("-http")
    }

    /// What the client offers as roots.
    pub(super) fn roots(self, work: &Path) -> Value {
        match self {
            Self::Filesystem => json!([{"uri": format!("file://{}/files", work.display())}]),
            _ => json!([{"uri": "file:///srv/example", "name": "example"}]),
        }
    }

    /// Toolgate's entry for it.
    pub(super) fn gate_entry(self, work: &Path, listening: &Listening) -> Value {
        let mut entry = self.entry(work, listening);
        // It has more tools for clients that can be asked; they would be quarantined as new.
        if matches!(self, Self::Everything | Self::EverythingHttp)
            && let Some(entry) = entry.as_object_mut()
        {
            entry.insert("pin".to_owned(), "off".into());
        }
        entry
    }

    /// How an MCP client's configuration names the server.
    pub(super) fn entry(self, work: &Path, listening: &Listening) -> Value {
        let path = |path: PathBuf| path.display().to_string();
        let (command, args, env) = match self {
            Self::EverythingHttp => return json!({"url": listening.everything}),
            Self::ZulipHttp => return json!({"url": listening.zulip}),
            Self::Older => return json!({"url": listening.older}),
            Self::Everything => {
                ("node".to_owned(), vec![script("everything"), "stdio".into()], json!({}))
            }
            Self::Filesystem => {
                ("node".to_owned(), vec![script("filesystem"), path(work.join("files"))], json!({}))
            }
            Self::Memory => {
                let file = json!({"MEMORY_FILE_PATH": path(work.join("memory.jsonl"))});
                ("node".to_owned(), vec![script("memory")], file)
            }
            Self::Time => {
                let args = vec!["--local-timezone".to_owned(), "UTC".to_owned()];
                (path(python("servers", "mcp-server-time")), args, json!({}))
            }
            Self::Git => {
                let args = vec!["--repository".to_owned(), path(work.join("repo"))];
                (path(python("servers", "mcp-server-git")), args, json!({}))
            }
            Self::Zulip => {
                let args = vec!["--extended-tools".to_owned()];
                (path(python("zulip", "zulipchat-mcp")), args, zulip_environment(work))
            }
        };
        json!({"command": command, "args": args, "env": env, "cwd": path(work.to_owned())})
    }

    /// The entry for a client that connects directly: unlike toolgate, clients do not detect that a
    /// server speaks the older transport.
    pub(super) fn direct_entry(self, work: &Path, listening: &Listening) -> Value {
        match self {
            Self::Older => json!({"url": listening.older, "type": "sse"}),
            _ => self.entry(work, listening),
        }
    }

    /// Makes the folder the server works in, always with the same content.
    pub(super) fn prepare(self, work: &Path) -> Result<()> {
        if work.exists() {
            fs::remove_dir_all(work)?;
        }
        fs::create_dir_all(work)?;
        match self {
            Self::Filesystem => {
                let files = work.join("files");
                fs::create_dir(&files)?;
                fs::write(files.join("hello.txt"), "hello\nпривет\n")?;
                fs::write(files.join("large.txt"), "0123456789abcdef\n".repeat(60_000))?;
                fs::write(files.join("pixel.png"), [0x89, b'P', b'N', b'G', 0, 255])?;
            }
            Self::Git => repository(&work.join("repo"))?,
            _ => {}
        }
        Ok(())
    }
}

/// The servers that listen, started once for all cases; they end when this is dropped.
pub(super) struct Listening {
    _groups: [Group; 3],
    everything: String,
    zulip: String,
    older: String,
}

impl Listening {
    /// Starts all at once and waits for all.
    pub(super) fn start(work: &Path) -> Result<Self> {
        fs::create_dir_all(work)?;
        let started = start_everything(work)?;
        let (mut zulip_group, zulip) = spawn_zulip(work, &[])?;
        let (older_group, older) = start_older(work)?;
        let (everything_group, everything) = started.listens()?;
        said(&mut zulip_group, &work.join("zulip-http.log"), UVICORN)?;
        Ok(Self { _groups: [everything_group, zulip_group, older_group], everything, zulip, older })
    }
}

/// A server-everything that is about to listen.
pub(crate) struct Started {
    group: Group,
    log: PathBuf,
}

/// Starts server-everything over HTTP, its log in `work`.
pub(crate) fn start_everything(work: &Path) -> Result<Started> {
    let mut node = Command::new("node");
    // It cannot choose the interface, hence the preload.
    node.arg("--import").arg(folder("node").join("loopback.mjs"));
    node.args([script("everything").as_str(), "streamableHttp"]).env("PORT", "0");
    let log = work.join("everything-http.log");
    Ok(Started { group: logged("server-everything", &mut node, &log)?, log })
}

impl Started {
    /// Waits until it listens; the group and the URL.
    pub(crate) fn listens(mut self) -> Result<(Group, String)> {
        let address = said(&mut self.group, &self.log, "listening on ")?;
        Ok((self.group, format!("http://{address}/mcp")))
    }
}

/// What uvicorn prints before its address.
const UVICORN: &str = "Uvicorn running on ";

/// zulipchat-mcp over HTTP, with so many open sessions `s0`, `s1` … in its database.
pub(crate) fn start_zulip_with(work: &Path, sessions: usize) -> Result<(Group, String)> {
    let mut seed = Command::new(python("zulip", "python"));
    seed.arg(sources().join("python/zulip_sessions.py")).arg(sessions.to_string());
    seed.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(work);
    set_zulip_environment(&mut seed, work);
    output(&mut seed).context("cannot make sessions for zulipchat-mcp")?;
    // It needs their owner, because it did not create that database itself.
    let (mut group, url) = spawn_zulip(work, &["--associate-existing-db"])?;
    said(&mut group, &work.join("zulip-http.log"), UVICORN)?;
    Ok((group, url))
}

/// The scripted server of the other closing tools; it records executed calls in `record`.
pub(crate) fn start_desk(work: &Path, record: &Path) -> Result<(Group, String)> {
    File::create(record)?;
    let mut command = Command::new(python("client", "python"));
    command.arg(sources().join("python/closing_desk.py")).arg(record);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let log = work.join("desk.log");
    let mut group = logged("closing_desk.py", &mut command, &log)?;
    let origin = said(&mut group, &log, UVICORN)?;
    Ok((group, format!("{origin}/mcp")))
}

fn set_zulip_environment(command: &mut Command, work: &Path) {
    for (name, value) in zulip_environment(work).as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap_or_default());
    }
}

fn spawn_zulip(work: &Path, more: &[&str]) -> Result<(Group, String)> {
    // It does not accept port 0; the system never gives this one to another connection.
    let port = (20_000 + std::process::id() % 12_000).to_string();
    let mut command = Command::new(python("zulip", "zulipchat-mcp"));
    command.args(["--extended-tools", "--transport", "http", "--host", "127.0.0.1"]);
    command.args(["--port", &port]).args(more).current_dir(work);
    set_zulip_environment(&mut command, work);
    let group = logged("zulipchat-mcp", &mut command, &work.join("zulip-http.log"))?;
    Ok((group, format!("http://127.0.0.1:{port}/mcp")))
}

/// The Python SDK's own server, over HTTP+SSE.
fn start_older(work: &Path) -> Result<(Group, String)> {
    let mut command = Command::new(python("client", "python"));
    command.arg(sources().join("python/sse.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    let log = work.join("older.log");
    let mut group = logged("sse.py", &mut command, &log)?;
    let origin = said(&mut group, &log, UVICORN)?;
    Ok((group, format!("{origin}/sse")))
}

fn logged(name: &str, command: &mut Command, log: &Path) -> Result<Group> {
    let file = File::create(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    Group::start(name, command)
}

/// The text after `words` in a log, once it is there.
fn said(group: &mut Group, log: &Path, words: &str) -> Result<String> {
    let end = Instant::now() + START;
    while Instant::now() < end {
        let text = fs::read_to_string(log)?;
        if let Some((_, rest)) = text.split_once(words)
            && let Some((word, _)) = rest.split_once(char::is_whitespace)
        {
            return Ok(word.to_owned());
        }
        if let Some(status) = group.ended()? {
            bail!("ended at the start ({status})\n{}", tail(log));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("did not print `{words}` within {} s\n{}", START.as_secs(), tail(log))
}

/// The main file of a server from npm.
pub(crate) fn script(name: &str) -> String {
    let package = format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    folder("node").join(package).display().to_string()
}

/// Invented credentials: it starts with them, and no Zulip server rejects them.
fn zulip_environment(work: &Path) -> Value {
    json!({
        "ZULIP_EMAIL": "bot@example.test",
        "ZULIP_API_KEY": "invented",
        "ZULIP_SITE": "http://127.0.0.1:9",
        "ZULIPCHAT_DB_PATH": work.join("zulip.db"),
        "HOME": work,
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    })
}

/// A repository with the same commit ids in every run.
fn repository(folder: &Path) -> Result<()> {
    fs::create_dir(folder)?;
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(folder).args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "core.hooksPath=",
        ]);
        command
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Ann Author");
            command.env(format!("GIT_{who}_EMAIL"), "ann@example.test");
            command.env(format!("GIT_{who}_DATE"), "2026-01-02T03:04:05+00:00");
        }
        output(&mut command).context("cannot make the repository")
    };
    git(&["init"])?;
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "eins\n")] {
        fs::write(folder.join(name), text)?;
        git(&["add", name])?;
        git(&["commit", "--message", name])?;
    }
    fs::write(folder.join("a.txt"), "one\ntwo\n")?;
    Ok(())
}
