//! A stdio server: `peer.sh`, and what it recorded.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use serde_json::Value;

use crate::gate::{Gate, Home, eventually, is_gone};

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
        // A shared child has no grant.
        let grant = if keys.contains("shared") { "" } else { "{grant}" };
        let args = format!("['{SCRIPT}', '{folder}', '{mode}', '{grant}']");
        format!("  {name}: {{ command: sh, args: {args}, {keys} }}\n")
    }

    /// What `sh` is started with, but for the mode.
    pub(crate) fn arguments(&self) -> [String; 2] {
        [SCRIPT.to_owned(), self.folder.display().to_string()]
    }

    /// The processes that were started for agents, oldest first.
    pub(crate) fn started(&self) -> Vec<u32> {
        self.lines("started").iter().map(|line| line.parse().unwrap()).collect()
    }

    /// Waits until toolgate itself has listed it, and has ended the process it did that with.
    pub(crate) fn own_listing_ends(&self) {
        eventually(&format!("toolgate has listed `{}`", self.name), || {
            let own = self.lines("own/started");
            (!own.is_empty() && own.iter().all(|pid| is_gone(pid.parse().unwrap()))).then_some(())
        });
    }

    /// Everything that any of them received.
    pub(crate) fn received(&self) -> Vec<Value> {
        self.lines("heard").iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until one received this.
    pub(crate) fn hears(&self, method: &str) -> Value {
        eventually(&format!("`{}` hears `{method}`", self.name), || {
            self.received().into_iter().find(|message| message["method"] == method)
        })
    }

    /// Waits until one received a call of this tool.
    pub(crate) fn is_called(&self, tool: &str) {
        eventually(&format!("`{tool}` is called"), || {
            let received = self.received();
            received.iter().any(|message| message["params"]["name"] == tool).then_some(())
        });
    }

    /// Continues a slow call; waits until there is one.
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
