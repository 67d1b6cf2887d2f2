//! `toolgate doctor`: checks of this installation, with fixes.
//!
//! One file per subject under `doctor/`; `doctor/bundle.rs` writes the archive for support.
//!
//! Invariant: checks change nothing but a file of their own, which they remove. Only
//! `--accept-clock` does, and it is audited.

mod bundle;
mod check;
mod clients;
mod data;
mod files;
mod machine;
mod servers;

use std::path::PathBuf;

use anyhow::Context as _;
use http::Method;
use serde_json::{Value, json};
use toolgate_config::Config;

use crate::admin_client::AdminClient;
use crate::args::{DataArgs, DoctorArgs, OneOutput};
use crate::config_source::Source;
use crate::data::{announced_config, find_data, is_announced};
use crate::exit::Done;
use crate::print;
use crate::serve;
use crate::waiting::Waiting;
use check::{Check, Status};

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<Done> {
    if args.accept_clock {
        accept_clock(args)?;
    }
    let waiting = Waiting::on_terminal("checking");
    let checks = checks(args);
    drop(waiting);
    let ok = checks.iter().all(|check| check.status != Status::Fail);
    let items: Vec<Value> = checks.iter().map(Check::json).collect();
    let result = json!({"ok": ok, "checks": items});
    if let Some(path) = &args.bundle {
        bundle::write(path, args, &result)?;
        print::done(&format!("written to {}; look through it before you send it", path.display()));
    }
    print::out(&match args.output {
        _ if args.json => format!("{result}\n"),
        OneOutput::Json => format!("{result}\n"),
        OneOutput::Table => checks.iter().map(Check::line).collect(),
    });
    Ok(if ok { Done::Ok } else { Done::Finding })
}

/// What the checks look at.
struct Installation<'a> {
    args: &'a DoctorArgs,
    source: Source,
    /// Without an error, apart from secrets that are not here.
    config: Option<Config>,
    folder: Option<PathBuf>,
}

impl Installation<'_> {
    /// Whether a gateway runs on the data folder, or an address was given.
    fn has_gateway(&self) -> bool {
        self.args.admin.admin.is_some() || self.folder.as_deref().is_some_and(is_announced)
    }
}

fn checks(args: &DoctorArgs) -> Vec<Check> {
    let data = &args.admin.data;
    let source = source(data);
    let (mut checks, config) = files::configuration(&source);
    let mut here = Installation { args, source, config, folder: None };
    match find_data(data.data.as_deref(), data.config.as_deref()) {
        Ok(folder) => here.folder = Some(folder),
        Err(why) => {
            let fix = "correct the configuration, or name a folder with --data";
            checks.push(Check::fail("data_folder", format!("{why:#}")).fix(fix));
        }
    }
    checks.extend(data::checks(&here));
    checks.extend(machine::checks(&here));
    if !args.no_servers {
        checks.extend(servers::checks(&here));
    }
    checks.extend(clients::checks(&here));
    checks
}

/// The configuration that is named or lies here, else that of the running gateway.
fn source(data: &DataArgs) -> Source {
    let here = Source::find(data.config.as_deref());
    if here.file().is_some() {
        return here;
    }
    let folder = find_data(data.data.as_deref(), None).ok();
    match folder.and_then(|folder| announced_config(&folder)) {
        Some(running) => Source::find(Some(&running)),
        None => here,
    }
}

/// Through the running gateway, else in the data folder.
fn accept_clock(args: &DoctorArgs) -> anyhow::Result<()> {
    let data = &args.admin.data;
    let running = args.admin.admin.is_some()
        || is_announced(&find_data(data.data.as_deref(), data.config.as_deref())?);
    if running {
        let client = AdminClient::new(&args.admin)?;
        client.send(&Method::POST, "/api/v1/clock/accept", Some(&json!({})))?;
    } else {
        let folder = find_data(data.data.as_deref(), data.config.as_deref())?;
        serve::accept_clock(folder).context("cannot accept the clock")?;
    }
    print::err("the clock is accepted; counters keep their values\n");
    Ok(())
}
