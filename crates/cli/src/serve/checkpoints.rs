//! Checkpoints elsewhere: each is also written to a file of the operator's choice, or told to a
//! syslog, where whoever changes the audit cannot reach it.
//!
//! Invariant: the store never waits for these places but when it is closed.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use toolgate_audit::Checkpoint;
use toolgate_config::{AuditConfig, Syslog};
use toolgate_control::trusted;
use toolgate_store::OnCheckpoint;

/// How many may wait for a slow disk; more are not written there, and the log says so.
const WAITING: usize = 1_024;
/// Facility 13, the log audit; severity 5, a notice.
const PRIORITY: u8 = 13 * 8 + 5;

/// The way to the thread that writes them; whoever drops it waits until all are written.
struct Elsewhere {
    tell: Option<SyncSender<Checkpoint>>,
    thread: Option<JoinHandle<()>>,
}

/// Writes one checkpoint.
type Write = dyn FnMut(&Checkpoint) -> io::Result<()> + Send;

/// Tells every place that is configured of every checkpoint; none if no place is.
pub(crate) fn elsewhere(audit: &AuditConfig) -> anyhow::Result<Option<Box<OnCheckpoint>>> {
    let mut places = Vec::new();
    if let Some(file) = &audit.checkpoint_file {
        places.push(Elsewhere::start(&file.display().to_string(), to_file(file))?);
    }
    if let Some(syslog) = &audit.checkpoint_syslog {
        places.push(Elsewhere::start(&shown(syslog), to_syslog(syslog))?);
    }
    if places.is_empty() {
        return Ok(None);
    }
    Ok(Some(Box::new(move |checkpoint| places.iter().for_each(|place| place.pass(checkpoint)))))
}

impl Elsewhere {
    /// Better to hear now than at the first checkpoint that it cannot be written.
    fn start(place: &str, write: io::Result<Box<Write>>) -> anyhow::Result<Self> {
        let mut write = write.with_context(|| format!("cannot write checkpoints to `{place}`"))?;
        let (tell, told) = sync_channel(WAITING);
        let place = place.to_owned();
        let thread = thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || write_all(&place, &told, &mut *write))
            .context("cannot start a thread")?;
        Ok(Self { tell: Some(tell), thread: Some(thread) })
    }

    fn pass(&self, checkpoint: &Checkpoint) {
        let sent = self.tell.as_ref().is_some_and(|tell| tell.try_send(checkpoint.clone()).is_ok());
        if !sent {
            let seq = checkpoint.seq;
            tracing::error!(seq, "a checkpoint is not written elsewhere: that place is slow");
        }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.tell = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the last checkpoints are not written elsewhere");
        }
    }
}

fn write_all(place: &str, told: &Receiver<Checkpoint>, write: &mut Write) {
    for checkpoint in told {
        if let Err(error) = write(&checkpoint) {
            let seq = checkpoint.seq;
            tracing::error!(%error, seq, %place, "a checkpoint is not written elsewhere");
        }
    }
}

/// Appends to a file, one line each.
fn to_file(path: &Path) -> io::Result<Box<Write>> {
    open(path)?;
    let path = path.to_owned();
    Ok(Box::new(move |checkpoint| {
        let line = format!("{}\n", checkpoint.to_json());
        let mut file = open(&path)?;
        file.write_all(line.as_bytes())?;
        file.sync_data()
    }))
}

/// Sends one datagram each.
fn to_syslog(syslog: &Syslog) -> io::Result<Box<Write>> {
    let pid = std::process::id();
    match syslog.clone() {
        Syslog::Socket(path) => {
            UnixDatagram::unbound()?.connect(&path)?;
            // Connected anew each time: the daemon may be started again.
            Ok(Box::new(move |checkpoint| {
                let socket = UnixDatagram::unbound()?;
                socket.send_to(message(checkpoint, pid).as_bytes(), &path).map(drop)
            }))
        }
        Syslog::Udp(address) => {
            let any: SocketAddr = match address {
                SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
            };
            let socket = UdpSocket::bind(any)?;
            Ok(Box::new(move |checkpoint| {
                socket.send_to(message(checkpoint, pid).as_bytes(), address).map(drop)
            }))
        }
    }
}

/// As RFC 5424 has it; the text is what a file would get.
fn message(checkpoint: &Checkpoint, pid: u32) -> String {
    let (time, json) = (checkpoint.time, checkpoint.to_json());
    format!("<{PRIORITY}>1 {time:.6} - toolgate {pid} checkpoint - {json}")
}

fn shown(syslog: &Syslog) -> String {
    match syslog {
        Syslog::Socket(path) => format!("syslog at {}", path.display()),
        Syslog::Udp(address) => format!("syslog at udp://{address}"),
    }
}

/// Opened anew each time: the file may be rotated away.
fn open(path: &Path) -> io::Result<std::fs::File> {
    trusted::append(path)
}

/// The checkpoints of such a file, or of a log that a syslog has written.
pub(crate) fn read(file: &Path) -> anyhow::Result<Vec<Checkpoint>> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{shown}`"))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(place, line)| {
            parse(line).with_context(|| format!("`{shown}` line {}: no checkpoint", place + 1))
        })
        .collect()
}

fn parse(line: &str) -> Option<Checkpoint> {
    // Before it a syslog writes when and from whom it came.
    let (_, json) = line.split_once('{')?;
    let value: serde_json::Value = serde_json::from_str(&format!("{{{json}")).ok()?;
    let text = |name: &str| value.get(name)?.as_str();
    let seq = value.get("seq")?.as_u64()?;
    Checkpoint::from_parts(seq, text("hash")?, text("time")?, text("signature")?)
}
