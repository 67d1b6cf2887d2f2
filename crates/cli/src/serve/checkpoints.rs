//! Checkpoints elsewhere: each is also written to a file of the operator's choice, where whoever
//! changes the audit cannot reach it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use toolgate_audit::Checkpoint;
use toolgate_store::Tell;

/// How many may wait for a slow disk; more are not written there, and the log says so.
const WAITING: usize = 1_024;

/// The way to the thread that writes them; whoever drops it waits until all are written.
struct Elsewhere {
    tell: Option<SyncSender<Checkpoint>>,
    thread: Option<JoinHandle<()>>,
}

/// Tells a thread of every checkpoint, which appends it to `file`. The store waits for it only when
/// it is closed.
pub(crate) fn to_file(file: &Path) -> anyhow::Result<Box<Tell>> {
    // Better to hear now than at the first checkpoint that it cannot be written.
    open(file).with_context(|| format!("cannot write checkpoints to `{}`", file.display()))?;
    let (tell, told) = sync_channel(WAITING);
    let path = file.to_owned();
    let thread = thread::Builder::new()
        .name("checkpoints".to_owned())
        .spawn(move || write_all(&path, &told))
        .context("cannot start a thread")?;
    let elsewhere = Elsewhere { tell: Some(tell), thread: Some(thread) };
    Ok(Box::new(move |checkpoint| elsewhere.pass(checkpoint)))
}

impl Elsewhere {
    fn pass(&self, checkpoint: &Checkpoint) {
        let sent = self.tell.as_ref().is_some_and(|tell| tell.try_send(checkpoint.clone()).is_ok());
        if !sent {
            let seq = checkpoint.seq;
            tracing::error!(seq, "a checkpoint is not written elsewhere: its disk is slow");
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

fn write_all(path: &Path, told: &Receiver<Checkpoint>) {
    for checkpoint in told {
        let line = format!("{}\n", checkpoint.to_json());
        let written = open(path).and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_data()
        });
        if let Err(error) = written {
            let (seq, path) = (checkpoint.seq, path.display());
            tracing::error!(%error, seq, %path, "a checkpoint is not written elsewhere");
        }
    }
}

/// Opened anew each time: the file may be rotated away.
fn open(path: &Path) -> std::io::Result<std::fs::File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// The checkpoints of such a file.
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
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| value.get(name)?.as_str();
    let seq = value.get("seq")?.as_u64()?;
    Checkpoint::from_parts(seq, text("hash")?, text("time")?, text("signature")?)
}
