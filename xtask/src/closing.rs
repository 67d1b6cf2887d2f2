//! The four closing tools by the wall clock: zulipchat-mcp's own `close_agent_session` and three
//! scripted ones, each under its recommended policy, all at once.
//!
//! The test is in `tests/peers/python/closing.py`; this module starts its servers. It runs until
//! the next minute has begun, because limits per minute are tested.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::gate::binary;
use crate::peers::{folder, python, sources};
use crate::process::run_logged;
use crate::real::servers::{start_desk, start_zulip_with};

/// Two minutes by the clock, and what starting takes.
const LIMIT: Duration = Duration::from_mins(4);
/// Sessions to close; more than are closed.
const SESSIONS: usize = 40;

pub(crate) fn run() -> Result<()> {
    let work = folder("runs").join("closing");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let record = work.join("record");
    let (_desk_group, desk) = start_desk(&work, &record)?;
    let (_zulip_group, zulip) = start_zulip_with(&work, SESSIONS)?;
    let job = json!({
        "toolgate": binary(),
        "folder": work,
        "data": work.join("data"),
        "desk": desk,
        "zulip": zulip,
        "record": record,
    });
    let job_file = work.join("job.json");
    fs::write(&job_file, format!("{job:#}\n"))?;
    let mut command = Command::new(python("client", "python"));
    command.arg(sources().join("python/closing.py")).arg(job_file);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    run_logged(&mut command, &work.join("closing.log"), LIMIT)
}
