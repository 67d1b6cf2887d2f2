//! Runs a faulty server over standard input and output.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use toolgate_dice::Dice;

use super::FaultyServer;
use super::answer::{ClientMessage, ServerState};
use super::behaviour::{Reply, say, storm};

/// The pause between two storms.
const LULL: Duration = Duration::from_millis(10);
/// Exit codes.
const AT_START: u8 = 3;
const IN_A_CALL: u8 = 9;

/// Runs until the input ends or the server exits; returns the exit code.
pub(super) fn live<R: Read, W: Write + Send, E: Write + Send>(
    server: FaultyServer,
    amount: u64,
    input: R,
    output: W,
    mut errors: E,
) -> io::Result<u8> {
    if server == FaultyServer::CrashAtStart {
        writeln!(errors, "crashing at start")?;
        return Ok(AT_START);
    }
    let output = Mutex::new(output);
    let (storming, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        if server == FaultyServer::ListChangedStorm {
            scope.spawn(|| keep_storming(&output, amount, &storming, &over));
        }
        let input = BufReader::new(input);
        let ended = converse(server, amount, input, &output, &mut errors, &storming);
        over.store(true, Ordering::Relaxed);
        ended
    })
}

fn converse<R: Read, W: Write>(
    server: FaultyServer,
    amount: u64,
    mut input: BufReader<R>,
    output: &Mutex<W>,
    errors: &mut impl Write,
    storming: &AtomicBool,
) -> io::Result<u8> {
    let mut state = ServerState::new(server, amount);
    let mut dice = Dice::new(amount);
    let mut flood_left = if server == FaultyServer::StderrFlood { amount } else { 0 };
    let mut held: Vec<Reply> = Vec::new();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Ok(message) = serde_json::from_slice::<ClientMessage>(&line) {
            if message.asks("tools/call") {
                flood(errors, std::mem::take(&mut flood_left))?;
            }
            let right = state.answer(&message);
            held.push(say(server, amount, &message, right.as_ref()));
            storming.fetch_or(message.is("notifications/initialized"), Ordering::Relaxed);
        }
        line.clear();
        // Concurrent requests may be answered in another order.
        let shuffles = matches!(server, FaultyServer::Shuffling | FaultyServer::ShufflingNewer);
        if shuffles && input.buffer().contains(&b'\n') {
            continue;
        }
        dice.shuffle(&mut held);
        for reply in held.drain(..) {
            send(&reply, &mut *output.lock())?;
            if reply.dies {
                return Ok(IN_A_CALL);
            }
        }
    }
    Ok(0)
}

fn send(reply: &Reply, output: &mut impl Write) -> io::Result<()> {
    thread::sleep(reply.before);
    match reply.drips {
        None => output.write_all(&reply.bytes)?,
        Some(pause) => {
            for byte in &reply.bytes {
                output.write_all(std::slice::from_ref(byte))?;
                output.flush()?;
                thread::sleep(pause);
            }
        }
    }
    output.flush()
}

/// Writes this many bytes to stderr, in lines of a hundred.
fn flood(errors: &mut impl Write, amount: u64) -> io::Result<()> {
    let block = [&[b'!'; 99][..], b"\n"].concat().repeat(600);
    let mut left = amount;
    while left > 0 {
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        let piece = block.get(..size).unwrap_or_default();
        errors.write_all(piece)?;
        left -= piece.len() as u64;
    }
    Ok(())
}

/// Sends list_changed notifications continuously after the handshake.
fn keep_storming<W: Write>(
    output: &Mutex<W>,
    amount: u64,
    storming: &AtomicBool,
    over: &AtomicBool,
) {
    while !over.load(Ordering::Relaxed) {
        if storming.load(Ordering::Relaxed) && output.lock().write_all(&storm(amount)).is_err() {
            return;
        }
        thread::sleep(LULL);
    }
}
