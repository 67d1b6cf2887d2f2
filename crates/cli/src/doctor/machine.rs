//! The machine: ports, disk, file system, locale, proxy variables.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use toolgate_control::trusted;

use super::{Check, Installation};

const MIB: u64 = 1024 * 1024;
/// Below this the audit may soon not be written, and then every call is refused.
const LITTLE: u64 = 1024 * MIB;
const TOO_LITTLE: u64 = 100 * MIB;
/// A sync that takes longer delays every call with `durability: power`.
const SLOW_SYNC: Duration = Duration::from_millis(100);
const SYNCS: usize = 5;
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

pub(super) fn checks(here: &Installation<'_>) -> Vec<Check> {
    let mut checks = ports(here);
    if let Some(folder) = here.folder.as_deref().filter(|folder| folder.is_dir()) {
        checks.push(disk(folder));
        checks.push(sync_time(folder));
    }
    checks.push(proxies());
    checks.push(locale());
    checks
}

/// Whether every listener can be bound; a running gateway has bound them.
fn ports(here: &Installation<'_>) -> Vec<Check> {
    let Some(config) = &here.config else { return Vec::new() };
    if here.has_gateway() {
        return vec![Check::ok("ports", "used by the running gateway")];
    }
    let listen = &config.listen;
    let listeners = [
        ("mcp", listen.mcp),
        ("sessions", listen.sessions),
        ("admin", listen.admin),
        ("metrics", listen.metrics),
    ];
    let taken = listeners.into_iter().filter_map(|(name, address)| {
        let error = bind(address?)?;
        let message = format!("`listen.{name}` ({}) cannot be used: {error}", address?);
        let fix = format!("stop the other program, or set `listen.{name}` in toolgate.yaml");
        Some(Check::fail("ports", message).fix(fix))
    });
    let taken: Vec<Check> = taken.collect();
    if taken.is_empty() { vec![Check::ok("ports", "every listener can be bound")] } else { taken }
}

fn bind(address: SocketAddr) -> Option<String> {
    TcpListener::bind(address).err().map(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => "another program uses this port".to_owned(),
        std::io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege".to_owned(),
        _ => error.to_string(),
    })
}

fn disk(folder: &Path) -> Check {
    let Ok(free) = toolgate_os::files::free_space(folder) else {
        return Check::warn("disk", "the free space is not known");
    };
    let message = format!("{} MiB free", free / MIB);
    let fix = "free some space; without it the audit cannot be written and calls are refused";
    match free {
        ..TOO_LITTLE => Check::fail("disk", message).fix(fix),
        TOO_LITTLE..LITTLE => Check::warn("disk", message).fix(fix),
        _ => Check::ok("disk", message),
    }
}

/// The median time of a sync of a small file.
fn sync_time(folder: &Path) -> Check {
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    let measured = (|| {
        let mut file = trusted::create(&path)?;
        let mut times = Vec::new();
        for _ in 0..SYNCS {
            file.write_all(&[0; 4096])?;
            let since = Instant::now();
            file.sync_data()?;
            times.push(since.elapsed());
        }
        times.sort_unstable();
        std::io::Result::Ok(times.get(SYNCS / 2).copied().unwrap_or_default())
    })();
    if let Err(error) = fs::remove_file(&path) {
        tracing::debug!(%error, "no file of the check to remove");
    }
    match measured {
        Ok(time) if time > SLOW_SYNC => {
            let message = format!("a sync takes {} ms", time.as_millis());
            Check::warn("sync_time", message)
                .fix("move the data folder to a local disk; a network folder is not safe for it")
        }
        Ok(time) => Check::ok("sync_time", format!("a sync takes {} µs", time.as_micros())),
        Err(error) => {
            let fix = match error.kind() {
                std::io::ErrorKind::StorageFull => "free some space",
                _ => "check its owner, and that the file system is not read-only",
            };
            Check::fail("sync_time", format!("the data folder cannot be written: {error}")).fix(fix)
        }
    }
}

/// Clients with a proxy variable send requests for loopback to the proxy, unless it is excluded.
fn proxies() -> Check {
    let set: Vec<&str> = PROXIES
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some_and(|it| !it.is_empty()))
        .collect();
    if set.is_empty() {
        return Check::ok("proxy", "no proxy variables");
    }
    let excluded = ["NO_PROXY", "no_proxy"].into_iter().filter_map(|name| std::env::var(name).ok());
    let is_excluded = |list: String| {
        list.split(',')
            .any(|part| ["127.0.0.1", "localhost", "*", "127.0.0.0/8"].contains(&part.trim()))
    };
    let names = set.join(", ");
    if excluded.into_iter().any(is_excluded) {
        return Check::ok("proxy", format!("{names} set, loopback excluded"));
    }
    Check::warn("proxy", format!("{names} set: clients may send calls for 127.0.0.1 to the proxy"))
        .fix("export NO_PROXY=127.0.0.1,localhost")
}

/// Children inherit the locale.
fn locale() -> Check {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| {
        std::env::var(name).ok().filter(|it| !it.is_empty()).map(|value| (name, value))
    });
    match set {
        Some((name, value)) if !is_unicode(&value) => {
            let message =
                format!("{name}={value} is not UTF-8: servers may write another encoding");
            Check::warn("locale", message).fix(format!("export {name}=C.UTF-8"))
        }
        _ => Check::ok("locale", "servers write UTF-8, or decide themselves"),
    }
}

fn is_unicode(locale: &str) -> bool {
    let locale = locale.to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8") || locale == "c" || locale == "posix"
}
