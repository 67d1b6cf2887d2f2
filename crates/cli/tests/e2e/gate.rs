//! Starts and stops `toolgate`, and reads its output.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// When something that must happen has not happened by then, it never will.
pub(crate) const GUARD: Duration = Duration::from_mins(2);

/// Free ports, so that tests can run beside each other.
pub(crate) const LISTEN: &str =
    "listen: { mcp: 127.0.0.1:0, sessions: 127.0.0.1:0, admin: 127.0.0.1:0 }";

/// A home of its own for one `toolgate`: configuration, data, and what peers write.
pub(crate) struct Home {
    folder: TempDir,
}

/// A running `toolgate`, ended when dropped.
pub(crate) struct Gate {
    pub(crate) home: Home,
    pub(crate) log: Log,
    ready: Value,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<()>>,
}

/// The stderr of a process so far.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<(Mutex<String>, Condvar)>);

// === impl Home ===

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path("toolgate.yaml")
    }

    /// Replaces the configuration in one step, as careful editors do.
    pub(crate) fn configure(&self, text: &str) {
        let new = self.path("toolgate.yaml.new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.file()).unwrap();
    }

    /// `toolgate` with only these arguments, in an environment with only this home.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command
            .args(words)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Everything in the default data folder, as far as it is text.
    pub(crate) fn data_text(&self) -> String {
        let files = fs::read_dir(self.path(".local/share/toolgate")).unwrap();
        let files = files.map(|file| file.unwrap().path()).filter(|path| path.is_file());
        files.map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()).collect()
    }

    /// Runs a command that ends by itself.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }
}

// === impl Gate ===

impl Gate {
    /// Starts with this configuration, free ports added, and waits until it is ready.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_in(Home::new(), config)
    }

    pub(crate) fn start_in(home: Home, config: &str) -> Self {
        Self::start_as(home, config, |_| {})
    }

    /// The same, with more arguments or variables.
    pub(crate) fn start_as(home: Home, config: &str, adapt: impl FnOnce(&mut Command)) -> Self {
        home.configure(&configuration(config));
        let mut command = home.command(&["serve", "--ready-json"]);
        adapt(&mut command);
        Self::run(home, command).unwrap_or_else(|(status, log)| {
            panic!("toolgate ended with {status} and printed:\n{log}")
        })
    }

    /// Starts `command`; its exit status and stderr if it ends before it is ready.
    pub(crate) fn run(home: Home, mut command: Command) -> Result<Self, (ExitStatus, String)> {
        let mut child = command.spawn().unwrap();
        let log = Log::default();
        let reading = log.follow(child.stderr.take().unwrap());
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            let status = child.wait().unwrap();
            reading.join().unwrap();
            return Err((status, log.text()));
        }
        let ready = serde_json::from_str(&line).unwrap();
        let stdout = thread::spawn(move || {
            let mut rest = String::new();
            stdout.read_to_string(&mut rest).unwrap();
            rest
        });
        Ok(Self { home, log, ready, child, stdout: Some(stdout), stderr: Some(reading) })
    }

    /// The line of `--ready-json`.
    pub(crate) fn ready(&self) -> &Value {
        &self.ready
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its resident memory.
    pub(crate) fn resident_kib(&self) -> usize {
        self.memory_kib("VmRSS:")
    }

    /// The most memory it has had at once.
    pub(crate) fn peak_kib(&self) -> usize {
        self.memory_kib("VmHWM:")
    }

    fn memory_kib(&self, field: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches("kB").trim().parse().unwrap()
    }

    /// `host:port` of the agents' listener.
    pub(crate) fn mcp(&self) -> String {
        self.address("mcp")
    }

    /// `host:port` of the people's listener.
    pub(crate) fn admin(&self) -> String {
        self.address("admin")
    }

    /// `host:port` of a listener.
    pub(crate) fn address(&self, listener: &str) -> String {
        let url = self.ready[listener].as_str().unwrap();
        let (_, rest) = url.split_once("://").unwrap();
        rest.split('/').next().unwrap().to_owned()
    }

    /// Edits the configuration of a running gateway.
    pub(crate) fn configure(&self, config: &str) {
        self.home.configure(&configuration(config));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the exit, and for the end of the log; the code and what was on stdout after the
    /// ready line.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let status = eventually("toolgate exits", || self.child.try_wait().unwrap());
        if let Some(reading) = self.stderr.take() {
            reading.join().unwrap();
        }
        let rest = self.stdout.take().map(|rest| rest.join().unwrap());
        (status.code(), rest.unwrap_or_default())
    }

    /// Whether it has ended, by itself or otherwise.
    pub(crate) fn is_gone(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Its home, to start another in it.
    pub(crate) fn into_home(mut self) -> Home {
        std::mem::replace(&mut self.home, Home::new())
    }

    /// Stops it as an operator does.
    pub(crate) fn stop(&mut self) -> (Option<i32>, String) {
        self.signal(Signal::TERM);
        self.wait()
    }
}

#[expect(clippy::print_stdout, reason = "whoever looks into a failure needs the log")]
impl Drop for Gate {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_some() {
            return;
        }
        self.signal(Signal::TERM);
        let deadline = Instant::now() + GUARD;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
            }
            thread::sleep(STEP);
        }
        if thread::panicking() {
            println!("=== what toolgate printed ===\n{}", self.log.text());
        }
    }
}

// === impl Log ===

impl Log {
    /// Takes in everything that comes from `source`.
    pub(crate) fn follow(&self, source: impl Read + Send + 'static) -> JoinHandle<()> {
        let (text, changed) = (Arc::clone(&self.0), Arc::clone(&self.0));
        let mut source = BufReader::new(source);
        thread::spawn(move || {
            let mut line = Vec::new();
            while source.read_until(b'\n', &mut line).unwrap() > 0 {
                text.0.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
                changed.1.notify_all();
                line.clear();
            }
        })
    }

    pub(crate) fn text(&self) -> String {
        self.0.0.lock().unwrap().clone()
    }

    /// Waits until this was printed.
    #[track_caller]
    pub(crate) fn wait_for(&self, words: &str) {
        let (text, changed) = &*self.0;
        let text = text.lock().unwrap();
        let waiting = |text: &mut String| !text.contains(words);
        let (text, timeout) = changed.wait_timeout_while(text, GUARD, waiting).unwrap();
        drop(text);
        assert!(!timeout.timed_out(), "never printed: {words}");
    }

    /// Waits for the line that has all of this.
    #[track_caller]
    pub(crate) fn line_with(&self, words: &[&str]) -> String {
        eventually(&format!("a line with {words:?}"), || {
            let has = |line: &&str| words.iter().all(|word| line.contains(word));
            self.text().lines().find(has).map(str::to_owned)
        })
    }
}

const STEP: Duration = Duration::from_millis(10);

/// Looks again and again until there is something to see.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + GUARD;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "it never came to pass that {what}");
        thread::sleep(STEP);
    }
}

/// Whether a process is gone. A zombie is gone too.
pub(crate) fn is_gone(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")) else {
        return true;
    };
    // `pid (name) state …`, and the name may hold anything.
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// A configuration with free ports, unless it names its own.
pub(crate) fn configuration(config: &str) -> String {
    let listen = if config.contains("listen:") { "" } else { LISTEN };
    format!("version: 1\n{listen}\n{config}\n")
}
