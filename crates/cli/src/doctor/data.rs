//! The data folder: its permissions, schema, clock, audit, and local mode.

use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use toolgate_config::{Config, Listen};
use toolgate_control::local_mode::{self, LocalMode};
use toolgate_os::files::Rights;
use toolgate_store::StoreErrorKind;
use toolgate_store_sqlite::ReadOnlyStore;

use super::{Check, Installation};
use crate::admin_client::AdminClient;
use crate::data::check_folder;
use crate::version::VERSION;

/// If the clock is further behind, windows of limits do not end.
const BEHIND: SignedDuration = SignedDuration::from_hours(1);
/// Files that hold secrets.
const PRIVATE: [&str; 3] = ["admin.token", "audit.key", "hash.key"];

pub(super) fn checks(here: &Installation<'_>) -> Vec<Check> {
    let Some(folder) = here.folder.as_deref() else { return Vec::new() };
    let shown = folder.display();
    if folder.is_file() {
        let fix = "name a folder with --data";
        return vec![Check::fail("data_folder", format!("`{shown}` is a file")).fix(fix)];
    }
    if let Err(why) = check_folder(folder) {
        let fix = format!("chown -R $USER {shown} && chmod 700 {shown}");
        return vec![Check::fail("data_folder", why.to_string()).fix(fix)];
    }
    let mut store = match ReadOnlyStore::open(folder) {
        Ok(Some(store)) => store,
        Ok(None) => {
            let fix = "start `toolgate serve`, or name another with --data";
            let empty = Check::warn("data_folder", format!("`{shown}` holds no data yet"));
            return vec![empty.fix(fix), version(here)];
        }
        Err(why) => {
            let unusable = Check::fail("data_folder", format!("`{shown}`: {why}"));
            return vec![unusable.fix(fix_of(why.kind))];
        }
    };
    let mut checks =
        vec![Check::ok("data_folder", format!("`{shown}` can only be changed by its owner"))];
    checks.push(private_files(folder));
    checks.push(match store.mark() {
        Ok(mark) => clock(mark, Timestamp::now()),
        Err(why) => Check::fail("clock", why.to_string()),
    });
    checks.push(audit_chain(folder));
    checks.push(gateway(here));
    checks.push(version(here));
    if let Some(config) = &here.config {
        checks.push(local(config, &mut store));
    }
    checks
}

/// What helps if the database cannot be opened.
fn fix_of(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::OtherVersion => {
            "use the newest toolgate that wrote this folder, or another folder with --data"
        }
        StoreErrorKind::Full | StoreErrorKind::ReadOnly | StoreErrorKind::Io => {
            "free some space, and check that the file system can be written"
        }
        StoreErrorKind::Busy | StoreErrorKind::Lagging => "try again in a moment",
        StoreErrorKind::Corrupt | StoreErrorKind::Closed | StoreErrorKind::Internal => {
            "restore a backup of the folder (docs/operations.md), or name another with --data"
        }
    }
}

/// Whether secrets are readable for their owner alone.
fn private_files(folder: &Path) -> Check {
    for name in PRIVATE {
        let path = folder.join(name);
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        if Rights::of(&found).is_shared() {
            let shown = path.display();
            let message = format!("`{shown}` is readable for others, and holds a secret");
            return Check::fail("private_files", message).fix(format!("chmod 600 {shown}"));
        }
    }
    Check::ok("private_files", "tokens and keys are readable for their owner alone")
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
    Check::fail("clock", message).fix(fix)
}

fn audit_chain(folder: &Path) -> Check {
    match toolgate_store_sqlite::verify(folder, Vec::new()) {
        Ok(report) => match report.first_bad {
            None => Check::ok("audit_chain", format!("{} rows, intact", report.rows)),
            Some(bad) => {
                let message = format!("the audit is broken at row {}", bad.seq);
                Check::fail("audit_chain", message).fix("toolgate audit verify")
            }
        },
        Err(why) => Check::fail("audit_chain", why.to_string()).fix("toolgate audit verify"),
    }
}

fn gateway(here: &Installation<'_>) -> Check {
    if !here.has_gateway() {
        return Check::ok("gateway", "no gateway runs on this data folder");
    }
    match status(here) {
        Ok(status) => {
            let pid = status.get("pid").and_then(Value::as_u64).unwrap_or_default();
            Check::ok("gateway", format!("a gateway runs (pid {pid}) and answers"))
        }
        Err(why) => Check::warn("gateway", format!("{why:#}")).fix("start `toolgate serve` again"),
    }
}

/// The version of this program, and of the gateway.
fn version(here: &Installation<'_>) -> Check {
    let running = if here.has_gateway() { status(here).ok() } else { None };
    let running = running.as_ref().and_then(|it| it.get("version")).and_then(Value::as_str);
    match running {
        Some(other) if !VERSION.starts_with(other) && !other.starts_with(VERSION) => {
            let message = format!("this is toolgate {VERSION}, but the gateway is {other}");
            Check::warn("version", message).fix("restart the gateway with this version")
        }
        _ => Check::ok("version", format!("toolgate {VERSION}")),
    }
}

pub(super) fn status(here: &Installation<'_>) -> anyhow::Result<Value> {
    AdminClient::new(&here.args.admin).and_then(|client| client.get("/api/v1/status"))
}

/// Whether other users of this machine may call without a token.
fn local(config: &Config, store: &mut ReadOnlyStore) -> Check {
    let (Ok(snapshot), Ok(kept)) = (store.snapshot(), store.documents(local_mode::SPACE)) else {
        return Check::fail("local_mode", "the data folder cannot be read");
    };
    let kept = kept.first().map(|kept| LocalMode::parse(&kept.json));
    let bound: &Listen = &config.listen;
    let decided = local_mode::decide(config, bound, kept.as_ref(), !snapshot.grants.is_empty());
    if !decided.is_on {
        return Check::ok("local_mode", "off: every call needs the token of a grant");
    }
    match other_users() {
        0 => Check::ok("local_mode", "on: programs of this machine may call without a token"),
        others => {
            let message = format!(
                "on: {others} other users of this machine may call any tool without a token"
            );
            Check::warn("local_mode", message)
                .fix("toolgate grant create LABEL --policy recommended")
        }
    }
}

/// Other people who can log in.
fn other_users() -> usize {
    let own = toolgate_os::process::user();
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_person = |line: &&str| {
        let mut fields = line.split(':');
        let id = fields.nth(2).and_then(|id| id.parse::<u32>().ok());
        let shell = line.rsplit(':').next().unwrap_or_default();
        let logs_in = !shell.ends_with("nologin") && !shell.ends_with("false");
        id.is_some_and(|id| (1_000..60_000).contains(&id) && id != own) && logs_in
    };
    text.lines().filter(is_person).count()
}

#[cfg(test)]
mod tests {
    use super::super::Status;
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
