//! Standard input and output for the runtime: one thread each, because a read of a terminal or file
//! cannot be cancelled.

use std::io::{Read as _, Write as _, stdin, stdout};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::runtime::Handle;

const CHUNK: usize = 64 * 1024;
/// How long the client may take to read the rest of the output.
const FLUSH: Duration = Duration::from_secs(2);

/// Reports when everything that was written has reached standard output.
pub(super) struct Flushed(Receiver<()>);

impl Flushed {
    pub(super) fn wait(&self) {
        if self.0.recv_timeout(FLUSH).is_err() {
            tracing::debug!("the client has not read all of the output");
        }
    }
}

/// Standard input.
pub(super) fn input(runtime: &Handle) -> DuplexStream {
    let (mut write, read) = duplex(CHUNK);
    let runtime = runtime.clone();
    std::thread::spawn(move || {
        let mut chunk = vec![0; CHUNK];
        while let Ok(length @ 1..) = stdin().lock().read(&mut chunk) {
            let read = chunk.get(..length).unwrap_or_default();
            if runtime.block_on(write.write_all(read)).is_err() {
                return;
            }
        }
    });
    read
}

/// Standard output.
pub(super) fn output(runtime: &Handle) -> (DuplexStream, Flushed) {
    let (write, mut read) = duplex(CHUNK);
    let (done, flushed) = sync_channel(1);
    let runtime = runtime.clone();
    std::thread::spawn(move || {
        let mut chunk = vec![0; CHUNK];
        while let Ok(length @ 1..) = runtime.block_on(read.read(&mut chunk)) {
            let part = chunk.get(..length).unwrap_or_default();
            let mut out = stdout().lock();
            if out.write_all(part).and_then(|()| out.flush()).is_err() {
                return;
            }
        }
        if done.send(()).is_err() {
            tracing::debug!("the end of the output is not awaited");
        }
    });
    (write, Flushed(flushed))
}
