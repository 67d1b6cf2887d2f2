//! A server over stdio: `peer.sh`, and what it has written down.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use serde_json::Value;

use crate::gate::{Gate, Home, eventually};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/peer.sh");

/// A configured server; every child of it writes into one folder.
pub(crate) struct Peer {
    name: &'static str,
    folder: PathBuf,
}

impl Peer {
    pub(crate) fn new(home: &Home, name: &'static str) -> Self {
        let folder = home.path(&format!("peer-{name}"));
        fs::create_dir(&folder).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, folder.join("go"), FileType::Fifo, mode, 0).unwrap();
        Self { name, folder }
    }

    /// Its line under `servers:`, in this mode and with these further keys.
    pub(crate) fn entry(&self, mode: &str, keys: &str) -> String {
        let Self { name, folder } = self;
        let folder = folder.display();
        format!("  {name}: {{ command: sh, args: ['{SCRIPT}', '{folder}', '{mode}'], {keys} }}\n")
    }

    /// What `sh` is started with, but for the mode.
    pub(crate) fn arguments(&self) -> [String; 2] {
        [SCRIPT.to_owned(), self.folder.display().to_string()]
    }

    /// The processes that were started, oldest first.
    pub(crate) fn started(&self) -> Vec<u32> {
        self.lines("started").iter().map(|line| line.parse().unwrap()).collect()
    }

    /// Everything that any of them was told.
    pub(crate) fn heard(&self) -> Vec<Value> {
        self.lines("heard").iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until one was told this.
    pub(crate) fn hears(&self, method: &str) -> Value {
        eventually(&format!("`{}` hears `{method}`", self.name), || {
            self.heard().into_iter().find(|message| message["method"] == method)
        })
    }

    /// Waits until one has been told to call this tool.
    pub(crate) fn is_called(&self, tool: &str) {
        eventually(&format!("`{tool}` is called"), || {
            let heard = self.heard();
            heard.iter().any(|message| message["params"]["name"] == tool).then_some(())
        });
    }

    /// Lets a slow call go on; waits until there is one.
    pub(crate) fn go(&self) {
        let mut pipe = eventually("a slow call waits", || {
            let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
            OpenOptions::new().write(true).custom_flags(flags).open(self.folder.join("go")).ok()
        });
        pipe.write_all(b"go\n").unwrap();
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(str::to_owned).collect()
    }
}

/// A gateway with one such server, called `peer`.
pub(crate) fn gate_with_peer(config: &str, mode: &str, keys: &str) -> (Gate, Peer) {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let config = format!("{config}\nservers:\n{}", peer.entry(mode, keys));
    (Gate::start_in(home, &config), peer)
}
