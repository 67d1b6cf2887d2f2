//! Copies of checkpoints outside the data folder: in a file of the operator's choice, or in syslog,
//! where a process that tampers with the audit cannot reach them.
//!
//! Invariant: the store waits for these copies only when it is closed.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use toolgate_audit::Checkpoint;
use toolgate_config::{AuditConfig, Syslog};
use toolgate_control::trusted;
use toolgate_os::datagram;
use toolgate_store::OnCheckpoint;

/// How many may wait for a slow disk; further ones are dropped and logged.
const QUEUE: usize = 1_024;
/// Facility 13 (log audit), severity 5 (notice).
const PRIORITY: u8 = 13 * 8 + 5;

/// The thread that writes them; dropping it waits until all are written.
struct CheckpointWriter {
    queue: Option<SyncSender<Checkpoint>>,
    thread: Option<JoinHandle<()>>,
}

/// Writes one checkpoint.
type Write = dyn FnMut(&Checkpoint) -> io::Result<()> + Send;

/// Copies every checkpoint to the configured places; `None` if there are none.
pub(crate) fn copies(audit: &AuditConfig) -> anyhow::Result<Option<Box<OnCheckpoint>>> {
    let mut writers = Vec::new();
    if let Some(file) = &audit.checkpoint_file {
        writers.push(CheckpointWriter::start(&file.display().to_string(), to_file(file))?);
    }
    if let Some(syslog) = &audit.checkpoint_syslog {
        writers.push(CheckpointWriter::start(&shown(syslog), to_syslog(syslog))?);
    }
    if writers.is_empty() {
        return Ok(None);
    }
    Ok(Some(Box::new(move |checkpoint| writers.iter().for_each(|writer| writer.write(checkpoint)))))
}

impl CheckpointWriter {
    /// Fails at the start, not at the first checkpoint, if the place cannot be written.
    fn start(place: &str, write: io::Result<Box<Write>>) -> anyhow::Result<Self> {
        let mut write = write.with_context(|| format!("cannot write checkpoints to `{place}`"))?;
        let (queue, queued) = sync_channel(QUEUE);
        let place = place.to_owned();
        let thread = thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || write_all(&place, &queued, &mut *write))
            .context("cannot start a thread")?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    fn write(&self, checkpoint: &Checkpoint) {
        let sent =
            self.queue.as_ref().is_some_and(|queue| queue.try_send(checkpoint.clone()).is_ok());
        if !sent {
            let seq = checkpoint.seq;
            tracing::error!(seq, "checkpoint not copied: the destination is too slow");
        }
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        self.queue = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("last checkpoints not copied: the writer panicked");
        }
    }
}

fn write_all(place: &str, queued: &Receiver<Checkpoint>, write: &mut Write) {
    for checkpoint in queued {
        if let Err(error) = write(&checkpoint) {
            let seq = checkpoint.seq;
            tracing::error!(%error, seq, %place, "checkpoint not copied");
        }
    }
}

/// Appends each to a file, as one line.
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

/// Sends each as one datagram.
fn to_syslog(syslog: &Syslog) -> io::Result<Box<Write>> {
    let pid = std::process::id();
    match syslog.clone() {
        Syslog::Socket(path) => {
            datagram::check(&path)?;
            Ok(Box::new(move |checkpoint| {
                datagram::send(&path, message(checkpoint, pid).as_bytes())
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

/// A message of RFC 5424; the text is the line of a file.
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

/// Reopened each time: the file may have been rotated.
fn open(path: &Path) -> io::Result<std::fs::File> {
    trusted::append(path)
}

/// Reads the checkpoints of such a file, or of a log of syslog.
pub(crate) fn read(file: &Path) -> anyhow::Result<Vec<Checkpoint>> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{shown}`"))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(place, line)| {
            parse(line).with_context(|| format!("`{shown}` line {} is not a checkpoint", place + 1))
        })
        .collect()
}

fn parse(line: &str) -> Option<Checkpoint> {
    // Syslog puts time and source before it.
    let (_, json) = line.split_once('{')?;
    let value: serde_json::Value = serde_json::from_str(&format!("{{{json}")).ok()?;
    let text = |name: &str| value.get(name)?.as_str();
    let seq = value.get("seq")?.as_u64()?;
    Checkpoint::from_parts(seq, text("hash")?, text("time")?, text("signature")?)
}
