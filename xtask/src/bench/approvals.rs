//! The cost of held calls: listing ten thousand pending approvals, and the memory of a call that
//! waits.
//!
//! Calls are sent in batches (protocol 2025-03-26), so that connections are not measured with them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::arena::{Arena, Running};
use super::measure::{Memory, median, spread};
use super::table::{Row, Verdict, say};
use super::{APPROVALS, Extent, TOKEN};

const PENDING: usize = 10_000;
/// The most that a batch may have.
const BATCH: usize = 100;
/// Calls that wait, twice: the second time the memory of the first is there already.
const WAITING: usize = 1_000;
const LIST_AIM_MS: f64 = 50.0;
const MEMORY_AIM_KIB: f64 = 16.0;
/// How long calls may take to be held.
const PATIENCE: Duration = Duration::from_mins(2);

/// Both measurements, if selected.
pub(super) fn rows(arena: &Arena, extent: &Extent, wants: &dyn Fn(&str) -> bool) -> Vec<Row> {
    if !wants(APPROVALS) {
        return Vec::new();
    }
    say(&format!("measuring {APPROVALS} ..."));
    measure(arena, extent).unwrap_or_else(|why| vec![Row::invalid("held calls", &why)])
}

fn measure(arena: &Arena, extent: &Extent) -> Result<Vec<Row>> {
    let (home, echo) = (arena.new_home()?, arena.start_echo()?);
    let toolgate = arena.start_holding(&home, &echo.url("url")?)?;
    let desk = Desk::open(&toolgate, &home)?;
    let memory = memory(&toolgate, &desk)?;
    for batch in 0..(PENDING - 2 * WAITING) / BATCH {
        let answer = desk.calls("echo", batch * BATCH, BATCH)?.finish()?;
        let held = answer.matches("approval_required").count();
        ensure!(held >= BATCH, "{held} of {BATCH} calls are held");
    }
    desk.pending_reach(PENDING)?;
    let mut rows = vec![memory];
    for (what, limit) in [("the first 100", ""), ("all", "&limit=10000")] {
        let mut millis = Vec::new();
        for _ in 0..=extent.rounds {
            let from = Instant::now();
            let listed = desk.api(&format!("approvals?state=pending{limit}"))?;
            millis.push(from.elapsed().as_secs_f64() * 1e3);
            ensure!(listed.contains("apr_"), "nothing is listed");
        }
        // The first one fills caches.
        millis.remove(0);
        let middle = median(&millis);
        rows.push(Row {
            what: format!("list {PENDING} pending approvals: {what}"),
            aim: format!("≤ {LIST_AIM_MS} ms"),
            result: format!("{middle:.1} ms"),
            spread: spread(&millis, 1),
            ways: [String::new(), String::new(), format!("{middle:.1} ms")],
            processor: String::new(),
            verdict: Verdict::of(middle <= LIST_AIM_MS),
        });
    }
    Ok(rows)
}

/// The memory of calls that wait for a person.
fn memory(toolgate: &Running, desk: &Desk) -> Result<Row> {
    let first = desk.waiting(0)?;
    desk.pending_reach(WAITING)?;
    let (before, threads) = (Memory::of(toolgate)?, threads(toolgate)?);
    let second = desk.waiting(WAITING)?;
    desk.pending_reach(2 * WAITING)?;
    let after = Memory::of(toolgate)?;
    let more = self::threads(toolgate)?.saturating_sub(threads);
    drop((first, second));
    #[expect(clippy::cast_precision_loss, reason = "a thousand")]
    let kib = |after: f64, before: f64| (after - before) * 1024.0 / WAITING as f64;
    let each = kib(after.resident, before.resident);
    Ok(Row {
        what: format!(
            "memory of each of {WAITING} waiting calls (resident; private); {more} more threads"
        ),
        aim: format!("≤ {MEMORY_AIM_KIB} KiB"),
        result: format!("{each:.1} KiB"),
        spread: format!("{:.1}", kib(after.private, before.private)),
        ways: [String::new(), String::new(), format!("{:.1} MiB", after.resident)],
        processor: String::new(),
        verdict: Verdict::of(each <= MEMORY_AIM_KIB),
    })
}

fn threads(toolgate: &Running) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{}/task", toolgate.pid()))?.count())
}

/// An agent and a person.
struct Desk {
    mcp: String,
    admin: String,
    token: String,
    session: String,
}

impl Desk {
    fn open(toolgate: &Running, home: &Path) -> Result<Self> {
        let address = |key: &str| -> Result<String> {
            Ok(toolgate.url(key)?.trim_start_matches("http://").to_owned())
        };
        let token = fs::read_to_string(home.join("data/admin.token"))?.trim().to_owned();
        let (mcp, admin) = (address("mcp")?, address("admin")?);
        let mut desk = Self { mcp, admin, token, session: String::new() };
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let welcome = desk.post(hello)?.finish()?;
        let mut heads = welcome.lines().filter_map(|line| line.split_once(": "));
        let session = heads.find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
        let (_, id) = session.with_context(|| format!("no agent session: {welcome}"))?;
        desk.session = format!("Mcp-Session-Id: {id}\r\n");
        desk.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?.finish()?;
        Ok(desk)
    }

    /// Calls that wait, from this number on.
    fn waiting(&self, from: usize) -> Result<Vec<Exchange>> {
        let batch = |batch| self.calls("big", from + batch * BATCH, BATCH);
        (0..WAITING / BATCH).map(batch).collect()
    }

    /// Sends calls of a tool in one batch; all arguments differ.
    fn calls(&self, tool: &str, from: usize, count: usize) -> Result<Exchange> {
        let call = |number: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"number {number}"}}}}}}"#,
                number + 1
            )
        };
        let calls: Vec<String> = (from..from + count).map(call).collect();
        self.post(&format!("[{}]", calls.join(",")))
    }

    fn post(&self, body: &str) -> Result<Exchange> {
        let Self { mcp, session, .. } = self;
        Exchange::begin(
            mcp,
            &format!(
                "POST /mcp/echo HTTP/1.1\r\nHost: {mcp}\r\nAuthorization: Bearer {TOKEN}\r\n{session}\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ),
        )
    }

    /// GETs a path of the admin API.
    fn api(&self, path: &str) -> Result<String> {
        self.get(&format!("/api/v1/{path}"))
    }

    fn get(&self, path: &str) -> Result<String> {
        let Self { admin, token, .. } = self;
        Exchange::begin(
            admin,
            &format!(
                "GET {path} HTTP/1.1\r\nHost: {admin}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\n\r\n"
            ),
        )?
        .finish()
    }

    /// Waits until so many approvals are pending. It reads the metric: the memory of a list of all of
    /// them would be measured with the calls that wait.
    fn pending_reach(&self, count: usize) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let metrics = self.get("/metrics")?;
            let value = |line: &str| line.strip_prefix("toolgate_approvals_pending ")?.parse().ok();
            let pending: usize = metrics.lines().find_map(value).context("no metric")?;
            if pending >= count {
                return Ok(());
            }
            ensure!(Instant::now() < until, "{pending} of {count} calls are held");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A request that was sent; dropping it hangs up.
struct Exchange(TcpStream);

impl Exchange {
    fn begin(address: &str, request: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        Ok(Self(stream))
    }

    /// The whole answer.
    fn finish(mut self) -> Result<String> {
        let mut answer = Vec::new();
        self.0.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}
