//! `cargo xtask bench console`: the console in a browser, with many audit rows and many tools.
//!
//! The measuring script is `tests/peers/browser/measure.mjs`; it needs `test --only peers`.
//!
//! Invariant: a missed aim is shown and fails nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::json;

use super::arena::{Arena, Running};
use super::{TOKEN, machine, table};
use crate::peers::{copy_scripts, folder};
use crate::process::output;

const PAGE_AIM_BYTES: f64 = 100_000.0;
const PAGE_AIM_MS: f64 = 100.0;
const CLICK_AIM_MS: f64 = 100.0;
const ROUNDS: usize = 15;

/// What the script prints.
#[derive(Debug, Deserialize)]
struct Figures {
    rows: u64,
    first_page: FirstPage,
    builder: Builder,
}

/// A browser with an empty cache.
#[derive(Debug, Deserialize)]
struct FirstPage {
    bytes: f64,
    ms: f64,
    worst_ms: f64,
}

/// A click in the builder: the next paint, and everything that follows from it.
#[derive(Debug, Deserialize)]
struct Builder {
    tools: usize,
    painted_ms: f64,
    complete_ms: f64,
    worst_complete_ms: f64,
}

/// `[--quick] [--toolgate PATH]`.
pub(super) fn run(words: &[&str]) -> Result<()> {
    let (mut rows, mut toolgate) = (1_000_000_u64, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--quick" => rows = 20_000,
            "--toolgate" => {
                toolgate = Some(PathBuf::from(rest.next().context("`--toolgate` needs a path")?));
            }
            unknown => {
                bail!("`bench console` takes `--quick` and `--toolgate PATH`, not `{unknown}`")
            }
        }
    }
    super::build(toolgate.is_some())?;
    copy_scripts()?;
    let arena = Arena::new(toolgate)?;
    let figures = measure(&arena, rows)?;
    let verdict = |met: bool| if met { "met" } else { "missed" };
    let (page, click) = (&figures.first_page, &figures.builder);
    table::say(&format!(
        "\n{}\n\nfirst page with {} audit rows: {:.1} kB (aim ≤ {:.0} kB, {}), {:.0} ms, at most \
         {:.0} ms (aim ≤ {PAGE_AIM_MS} ms, {})\nclick in the builder with {} tools: painted after \
         {:.0} ms, complete after {:.0} ms, at most {:.0} ms (aim ≤ {CLICK_AIM_MS} ms, {})",
        machine::describe(),
        figures.rows,
        page.bytes / 1e3,
        PAGE_AIM_BYTES / 1e3,
        verdict(page.bytes <= PAGE_AIM_BYTES),
        page.ms,
        page.worst_ms,
        verdict(page.ms <= PAGE_AIM_MS),
        click.tools,
        click.painted_ms,
        click.complete_ms,
        click.worst_complete_ms,
        verdict(click.complete_ms <= CLICK_AIM_MS),
    ));
    Ok(())
}

/// The figures of the browser, after so many rows were recorded.
fn measure(arena: &Arena, rows: u64) -> Result<Figures> {
    let echo = arena.start_peer("echo", &[])?;
    let many = arena.start_peer("echo", &["--tools", "1000"])?;
    let home = arena.new_home()?;
    let running = start(arena, &home, &echo.url("url")?, &many.url("url")?)?;
    table::say(&format!("recording {rows} rows ..."));
    // A call has two rows.
    let clients = 16;
    let count = (rows / 2 / clients + 1).to_string();
    let url = format!("{}/mcp/echo", running.url("mcp")?);
    let clients = clients.to_string();
    let arguments = ["--mode", "echo", "--token", TOKEN, "--clients", &clients];
    arena.load_with(&url, &arguments, &["--count", &count])?;
    let admin = running.url("admin")?;
    let token = fs::read_to_string(home.join("data/admin.token"))?;
    let job = home.join("job.json");
    fs::write(&job, json!({"admin": admin, "token": token.trim(), "rounds": ROUNDS}).to_string())?;
    let mut command = Command::new("node");
    let text = output(command.arg(folder("browser").join("measure.mjs")).arg(&job))?;
    let figures: Figures = serde_json::from_str(text.trim()).context("the script's figures")?;
    ensure!(figures.rows >= rows, "{} rows instead of {rows}", figures.rows);
    Ok(figures)
}

/// A toolgate with an audit, a grant, and servers with few and with many tools.
fn start(arena: &Arena, home: &Path, echo: &str, many: &str) -> Result<Running> {
    let config = home.join("toolgate.yaml");
    fs::write(
        &config,
        format!(
            "version: 1\nlisten: {{ mcp: 127.0.0.1:0, sessions: off, admin: 127.0.0.1:0 }}\n\
             servers:\n  echo: {{ url: {echo} }}\n  many: {{ url: {many} }}\n\
             grants: [{{ label: load, token: 'env:TOKEN', policy: all }}]\n\
             policies:\n  all: {{ version: '1', default: allow }}\n"
        ),
    )?;
    let mut command = arena.serve(home, &config);
    command.env("TOKEN", TOKEN);
    Running::start(command, &home.join("stderr"))
}
