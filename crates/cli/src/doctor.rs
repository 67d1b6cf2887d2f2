//! `toolgate doctor`: checks of this installation, with fixes.
//!
//! Invariant: checks change nothing. Only `--accept-clock` does, and it is audited.

use std::path::Path;

use anyhow::Context as _;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use toolgate_control::visible;
use toolgate_store_sqlite::ReadOnlyStore;

use crate::admin_client::AdminClient;
use crate::args::{DoctorArgs, OneOutput};
use crate::config_source::Source;
use crate::data::{check_folder, find_data, is_announced};
use crate::exit::Done;
use crate::print;
use crate::serve;

/// If the clock is further behind, windows of limits do not end.
const BEHIND: SignedDuration = SignedDuration::from_hours(1);

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<Done> {
    if args.accept_clock {
        accept_clock(args)?;
    }
    let checks = checks(args);
    let ok = checks.iter().all(|check| check.status != Status::Fail);
    print::out(&match args.output {
        OneOutput::Json => {
            let checks: Vec<Value> = checks.iter().map(Check::json).collect();
            format!("{}\n", json!({"ok": ok, "checks": checks}))
        }
        OneOutput::Table => checks.iter().map(Check::line).collect(),
    });
    Ok(if ok { Done::Ok } else { Done::Finding })
}

/// One check.
struct Check {
    id: &'static str,
    status: Status,
    message: String,
    /// What to do.
    fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Warn,
    Fail,
}

fn checks(args: &DoctorArgs) -> Vec<Check> {
    let data = &args.admin.data;
    let mut checks = vec![configuration(args)];
    let folder = match find_data(data.data.as_deref(), data.config.as_deref()) {
        Ok(folder) => folder,
        Err(why) => {
            let fix = "name it with --data".to_owned();
            checks.push(Check::fail("data_folder", format!("{why:#}"), Some(fix)));
            return checks;
        }
    };
    let shown = folder.display();
    if let Err(why) = check_folder(&folder) {
        checks.push(Check::fail("data_folder", why.to_string(), None));
        return checks;
    }
    let mut outside = match ReadOnlyStore::open(&folder) {
        Ok(Some(outside)) => outside,
        Ok(None) => {
            let message = format!("`{shown}` holds no data yet");
            let fix = Some("start `toolgate serve`, or name another with --data".to_owned());
            checks.push(Check { id: "data_folder", status: Status::Warn, message, fix });
            return checks;
        }
        Err(why) => {
            checks.push(Check::fail("data_folder", format!("`{shown}`: {why}"), None));
            return checks;
        }
    };
    checks.push(Check::ok("data_folder", format!("`{shown}` can only be changed by its owner")));
    checks.push(match outside.mark() {
        Ok(mark) => clock(mark, Timestamp::now()),
        Err(why) => Check::fail("clock", why.to_string(), None),
    });
    checks.push(audit_chain(&folder));
    checks.push(gateway(args, &folder));
    checks
}

fn configuration(args: &DoctorArgs) -> Check {
    let source = Source::find(args.admin.data.config.as_deref());
    let Some(file) = source.file() else {
        return Check::ok("configuration", "no toolgate.yaml: defaults apply".to_owned());
    };
    let shown = file.display();
    match source.errors() {
        0 => Check::ok("configuration", format!("`{shown}` is valid")),
        count => {
            let message = format!("`{shown}` has {count} errors, so `serve` refuses it");
            Check::fail("configuration", message, Some(format!("toolgate config check {shown}")))
        }
    }
}

/// The mark is the latest time used for counting.
fn clock(mark: Timestamp, now: Timestamp) -> Check {
    let behind = mark.duration_since(now);
    if behind <= BEHIND {
        return Check::ok("clock", format!("the clock is at {now:.0}"));
    }
    let hours = behind.as_hours();
    let message = format!(
        "the clock is at {now:.0} and was {hours} h ahead before ({mark:.0}): windows of limits do \
         not end until then"
    );
    let fix = "set the clock if it is wrong; if it is right now, toolgate doctor --accept-clock";
    Check::fail("clock", message, Some(fix.to_owned()))
}

fn audit_chain(folder: &Path) -> Check {
    match toolgate_store_sqlite::verify(folder, Vec::new()) {
        Ok(report) => match report.first_bad {
            None => Check::ok("audit_chain", format!("{} rows, intact", report.rows)),
            Some(bad) => {
                let message = format!("the audit is broken at row {}", bad.seq);
                Check::fail("audit_chain", message, Some("toolgate audit verify".to_owned()))
            }
        },
        Err(why) => Check::fail("audit_chain", why.to_string(), None),
    }
}

fn gateway(args: &DoctorArgs, folder: &Path) -> Check {
    if args.admin.admin.is_none() && !is_announced(folder) {
        return Check::ok("gateway", "no gateway runs on this data folder".to_owned());
    }
    let status = AdminClient::new(&args.admin).and_then(|client| client.get("/api/v1/status"));
    match status {
        Ok(status) => {
            let pid = status.get("pid").and_then(Value::as_u64).unwrap_or_default();
            Check::ok("gateway", format!("a gateway runs (pid {pid}) and answers"))
        }
        Err(why) => {
            let fix = Some("start `toolgate serve` again".to_owned());
            Check { id: "gateway", status: Status::Warn, message: format!("{why:#}"), fix }
        }
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

// === impl Check ===

impl Check {
    fn ok(id: &'static str, message: String) -> Self {
        Self { id, status: Status::Ok, message, fix: None }
    }

    fn fail(id: &'static str, message: String, fix: Option<String>) -> Self {
        Self { id, status: Status::Fail, message, fix }
    }

    fn status(&self) -> &'static str {
        match self.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "fail",
        }
    }

    fn json(&self) -> Value {
        json!({"id": self.id, "status": self.status(), "message": self.message, "fix": self.fix})
    }

    fn line(&self) -> String {
        let fix = self.fix.as_ref().map(|fix| format!("\n      {:<14} -> {fix}", ""));
        let line = format!("{:<5} {:<14} {}", self.status(), self.id, self.message);
        format!("{}\n", visible(&format!("{line}{}", fix.unwrap_or_default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_behind_the_mark_is_found() {
        let now: Timestamp = "2026-11-17T12:00:00Z".parse().unwrap();
        for (ahead, fine) in
            [(-9_999_999, true), (0, true), (3_600, true), (3_601, false), (31_536_000, false)]
        {
            let mark = now + SignedDuration::from_secs(ahead);
            assert_eq!(clock(mark, now).status == Status::Ok, fine, "{ahead}");
        }
    }
}
