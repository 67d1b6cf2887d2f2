//! The cost of recording: disk space per call, and the cost of many rows at the next start and for
//! verification.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::arena::{Arena, Running};
use super::table::{Row, Verdict};
use super::{DISK_AIM_BYTES, READY_AIM_S, Safety, TOKEN, VERIFY_AIM_S};

/// The growth of the database per call, including indexes. The WAL is excluded: its size is
/// constant, and up to 4 MiB of it are not in the database yet.
pub(super) fn disk(arena: &Arena, calls: u64) -> Result<Row> {
    let (echo, home) = (arena.start_echo()?, arena.new_home()?);
    let running = arena.start_granted(&home, Safety::Process, &echo.url("url")?)?;
    load(arena, &running, calls)?;
    let before = size(&home)?;
    let calls = load(arena, &running, 3 * calls)?;
    let bytes = (size(&home)? - before) / calls;
    Ok(row(
        "bytes of disk a call, with indexes",
        format!("≤ {DISK_AIM_BYTES}"),
        format!("{bytes:.0}"),
        bytes <= DISK_AIM_BYTES,
    ))
}

/// kill -9 with many rows: the duration of the next start, and of `audit verify` after it.
pub(super) fn many_rows(arena: &Arena, rows: u64) -> Result<[Row; 2]> {
    let (echo, home) = (arena.start_echo()?, arena.new_home()?);
    let url = echo.url("url")?;
    let running = arena.start_granted(&home, Safety::Process, &url)?;
    load(arena, &running, rows / 2)?;
    // Dropping it kills it.
    drop(running);
    let again = arena.start_granted(&home, Safety::Process, &url)?;
    let ready = again.took.as_secs_f64();
    again.stop()?;
    let from = Instant::now();
    let mut verify = arena.toolgate();
    verify.args(["audit", "verify", "-o", "json", "--data"]).arg(home.join("data"));
    let output = verify.output()?;
    let took = from.elapsed().as_secs_f64();
    let report: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(report.get("ok") == Some(&Value::Bool(true)), "not whole: {report}");
    let found = report.get("rows").and_then(Value::as_u64).context("no rows")?;
    ensure!(found >= rows, "{found} rows instead of {rows}");
    let rows = format!("{found} rows");
    Ok([
        row(
            &format!("start to ready after kill -9 with {rows}"),
            format!("≤ {READY_AIM_S} s"),
            format!("{:.1} ms", ready * 1e3),
            ready <= READY_AIM_S,
        ),
        row(
            &format!("`audit verify` of {rows}"),
            format!("≤ {VERIFY_AIM_S} s"),
            format!("{took:.2} s"),
            took <= VERIFY_AIM_S,
        ),
    ])
}

/// Calls `echo` repeatedly; returns the number of answers, all of which are correct.
fn load(arena: &Arena, running: &Running, calls: u64) -> Result<f64> {
    let clients = 32;
    let each = calls.div_ceil(clients).to_string();
    let arguments = ["--mode", "echo", "--token", TOKEN, "--clients", &clients.to_string()];
    let report = arena.load_with(&running.granted_way()?.url, &arguments, &["--count", &each])?;
    let errors = report.get("errors").and_then(Value::as_u64);
    ensure!(errors == Some(0), "the load had errors: {report}");
    report.get("answers").and_then(Value::as_f64).context("the report has no answers")
}

#[expect(clippy::cast_precision_loss, reason = "a size on a disk that exists")]
fn size(home: &Path) -> Result<f64> {
    Ok(fs::metadata(home.join("data/toolgate.db"))?.len() as f64)
}

fn row(what: &str, aim: String, result: String, met: bool) -> Row {
    Row {
        what: what.to_owned(),
        aim,
        ways: [String::new(), String::new(), result.clone()],
        result,
        spread: String::new(),
        processor: String::new(),
        verdict: Verdict::of(met),
    }
}
