//! Starts the processes that are measured, and ends them.
//!
//! Invariant: every process started here ends when its [`Running`] is dropped, and the temporary
//! folder goes with the [`Arena`].

use std::cell::Cell;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{MANY_TOOLS, PROFILE, Safety, Scenario, Server, TOKEN};

/// The folder of the binaries, and a folder for their files.
pub(super) struct Arena {
    binaries: PathBuf,
    toolgate: PathBuf,
    folder: PathBuf,
    started: Cell<u32>,
}

/// A started process that has reported readiness.
pub(super) struct Running {
    child: Child,
    /// Kept open, so that the process can continue to write.
    _stdout: BufReader<ChildStdout>,
    /// Its ready line.
    pub(super) ready: Value,
    /// The time from spawning to that line.
    pub(super) took: Duration,
}

/// The three setups, for each of the two servers.
pub(super) struct Setup {
    small: Ways,
    many: Ways,
    pub(super) toolgate: Running,
    /// With grants, by durability.
    granted: Vec<(Safety, Way)>,
    _peers: Vec<Running>,
}

/// The same server on three paths.
pub(super) struct Ways {
    pub(super) direct: Way,
    pub(super) bare: Way,
    pub(super) toolgate: Way,
}

/// One path to a server.
pub(super) struct Way {
    pub(super) url: String,
    /// The process in between; for the direct path the server itself.
    pub(super) pid: u32,
}

// === impl Arena ===

impl Arena {
    pub(super) fn new(toolgate: Option<PathBuf>) -> Result<Self> {
        let binaries = crate::target().join(PROFILE);
        let toolgate = toolgate.unwrap_or_else(|| binaries.join("toolgate"));
        let folder = std::env::temp_dir().join(format!("toolgate-bench-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self { binaries, toolgate, folder, started: Cell::new(0) })
    }

    /// Starts everything that the scenarios need.
    pub(super) fn open(&self) -> Result<Setup> {
        let echo = self.start_peer("echo", &[])?;
        let many = self.start_peer("echo", &["--tools", MANY_TOOLS])?;
        let (echo_url, many_url) = (echo.url("url")?, many.url("url")?);
        let bare = self.start_peer("bare-proxy", &[&echo_url])?;
        let bare_many = self.start_peer("bare-proxy", &[&many_url])?;
        let toolgate = self.start_toolgate(&[("echo", &echo_url), ("many", &many_url)])?;
        let mut granted = Vec::new();
        let mut peers = Vec::new();
        for safety in [Safety::Counted, Safety::Process, Safety::Power] {
            let running = self.start_granted(&self.new_home()?, safety, &echo_url)?;
            granted.push((safety, running.granted_way()?));
            peers.push(running);
        }
        let mcp = toolgate.url("mcp")?;
        let through = |name| Way { url: format!("{mcp}/mcp/{name}"), pid: toolgate.pid() };
        let small = Ways { direct: echo.way()?, bare: bare.way()?, toolgate: through("echo") };
        let large = Ways { direct: many.way()?, bare: bare_many.way()?, toolgate: through("many") };
        peers.extend([echo, many, bare, bare_many]);
        Ok(Setup { small, many: large, toolgate, granted, _peers: peers })
    }

    /// Starts an echo server alone.
    pub(super) fn start_echo(&self) -> Result<Running> {
        self.start_peer("echo", &[])
    }

    /// A folder for the configuration and the data of one toolgate.
    pub(super) fn new_home(&self) -> Result<PathBuf> {
        let number = self.started.get();
        self.started.set(number + 1);
        let home = self.folder.join(format!("toolgate-{number}"));
        fs::create_dir_all(&home)?;
        Ok(home)
    }

    /// Starts toolgate in `home` with a grant, a policy of a thousand tools and limits.
    pub(super) fn start_granted(&self, home: &Path, safety: Safety, echo: &str) -> Result<Running> {
        let durability = match safety {
            Safety::Bare | Safety::Counted => "off",
            Safety::Process => "process",
            Safety::Power => "power",
        };
        let tools: Vec<String> = (1..1_000).map(|number| format!("tool_{number}")).collect();
        let tools = tools.iter().map(String::as_str).chain(["echo"]).map(|tool| {
            format!(
                "      {tool}: {{ limits: [{{ counter: {tool}_rate, window: day, max: 1000000000 }}] }}\n"
            )
        });
        let config = home.join("toolgate.yaml");
        fs::write(
            &config,
            format!(
                "version: 1\naudit: {{ durability: {durability} }}\n\
                 listen: {{ mcp: 127.0.0.1:0, sessions: off, admin: off }}\n\
                 servers:\n  echo: {{ url: {echo} }}\n\
                 grants: [{{ label: load, token: 'env:TOKEN', identity: bench, policy: wide }}]\n\
                 policies:\n  wide:\n    version: '1'\n    default: deny\n    tools:\n{}",
                tools.collect::<String>()
            ),
        )?;
        let mut command = self.serve(home, &config);
        command.env("TOKEN", TOKEN);
        Running::start(command, &home.join("stderr"))
    }

    /// Starts toolgate in `home` with a grant whose calls are held: of `echo` without waiting.
    pub(super) fn start_holding(&self, home: &Path, echo: &str) -> Result<Running> {
        let config = home.join("toolgate.yaml");
        fs::write(
            &config,
            format!(
                "version: 1\n{LISTEN}servers:\n  echo: {{ url: {echo} }}\n\
                 grants: [{{ label: load, token: 'env:TOKEN', identity: bench, policy: held }}]\n\
                 policies:\n  held:\n    version: '1'\n    default: deny\n    tools:\n      \
                 echo: {{ approve: {{ wait: 0s }} }}\n      \
                 big: {{ approve: {{ wait: 300s }} }}\n"
            ),
        )?;
        let mut command = self.serve(home, &config);
        command.env("TOKEN", TOKEN);
        Running::start(command, &home.join("stderr"))
    }

    /// A `toolgate` command without arguments.
    pub(super) fn toolgate(&self) -> Command {
        Command::new(&self.toolgate)
    }

    pub(super) fn serve(&self, home: &Path, config: &Path) -> Command {
        let mut command = self.toolgate();
        command.arg("serve").arg("--ready-json").arg("--config").arg(config);
        command.arg("--data").arg(home.join("data"));
        command
    }

    /// Starts toolgate on a data folder of its own with these servers, on free ports.
    pub(super) fn start_toolgate(&self, servers: &[(&str, &str)]) -> Result<Running> {
        let entries: Vec<_> =
            servers.iter().map(|(name, url)| format!("  {name}: {{ url: {url} }}\n")).collect();
        self.start_toolgate_with(&entries.concat())
    }

    /// The same with any entries under `servers:`.
    pub(super) fn start_toolgate_with(&self, entries: &str) -> Result<Running> {
        let home = self.new_home()?;
        let config = home.join("toolgate.yaml");
        fs::write(&config, format!("{UNAUDITED}{LISTEN}servers:\n{entries}"))?;
        Running::start(self.serve(&home, &config), &home.join("stderr"))
    }

    /// Starts toolgate in `home` with an audit and without servers, on free ports.
    pub(super) fn start_audited(&self, home: &Path) -> Result<Running> {
        let config = home.join("toolgate.yaml");
        fs::write(&config, format!("version: 1\n{LISTEN}"))?;
        Running::start(self.serve(home, &config), &home.join("stderr"))
    }

    /// A binary of the peers.
    pub(super) fn binary(&self, name: &str) -> PathBuf {
        self.binaries.join(name)
    }

    /// Runs the load generator against `url` and returns its figures.
    pub(super) fn load(&self, url: &str, arguments: &[&str], round: Duration) -> Result<Value> {
        let seconds = round.as_secs_f64();
        let times = [seconds.to_string(), (seconds / 5.0).to_string()];
        self.load_with(url, arguments, &["--seconds", &times[0], "--warm-up", &times[1]])
    }

    /// The same with an explicit length.
    pub(super) fn load_with(
        &self,
        url: &str,
        arguments: &[&str],
        length: &[&str],
    ) -> Result<Value> {
        let output = Command::new(self.binaries.join("load"))
            .arg(url)
            .args(arguments)
            .args(length)
            .output()
            .context("starting the load generator")?;
        if !output.status.success() {
            bail!("the load generator failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    pub(super) fn start_peer(&self, name: &str, arguments: &[&str]) -> Result<Running> {
        let mut command = Command::new(self.binaries.join(name));
        command.args(arguments);
        Running::start(command, &self.folder.join(name).with_extension("stderr"))
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // A leftover in the temporary folder is harmless.
        drop(fs::remove_dir_all(&self.folder));
    }
}

// === impl Running ===

impl Running {
    pub(super) fn start(mut command: Command, stderr: &Path) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(fs::File::create(stderr)?);
        let from = Instant::now();
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let stdout = child.stdout.take().context("standard output is not piped")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let took = from.elapsed();
        let mut running = Self { child, _stdout: stdout, ready: Value::Null, took };
        let Ok(ready) = serde_json::from_str(&line) else {
            let said = fs::read_to_string(stderr).unwrap_or_default();
            bail!("{command:?} did not become ready; its output:\n{said}");
        };
        running.ready = ready;
        Ok(running)
    }

    /// The URL under this key of the ready line.
    pub(super) fn url(&self, key: &str) -> Result<String> {
        let url = self.ready.get(key).and_then(Value::as_str);
        Ok(url.with_context(|| format!("`{key}` is missing in {}", self.ready))?.to_owned())
    }

    fn way(&self) -> Result<Way> {
        Ok(Way { url: self.url("url")?, pid: self.pid() })
    }

    /// The path through a toolgate that was started with a grant.
    pub(super) fn granted_way(&self) -> Result<Way> {
        Ok(Way { url: format!("{}/mcp/echo", self.url("mcp")?), pid: self.pid() })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it as an operator does, and waits until it has exited.
    pub(super) fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already; either way nothing is left to do.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

// === impl Setup ===

impl Setup {
    /// Direct, bare, and through the toolgate of the scenario.
    pub(super) fn ways(&self, scenario: &Scenario) -> [&Way; 3] {
        let Ways { direct, bare, toolgate } = match scenario.server {
            Server::Small => &self.small,
            Server::Many => &self.many,
        };
        let granted = self.granted.iter().find(|(safety, _)| *safety == scenario.gate);
        [direct, bare, granted.map_or(toolgate, |(_, way)| way)]
    }
}

const UNAUDITED: &str = "version: 1\naudit: { durability: off }\n";
const LISTEN: &str = "listen: { mcp: 127.0.0.1:0, sessions: 127.0.0.1:0, admin: 127.0.0.1:0 }\n";
