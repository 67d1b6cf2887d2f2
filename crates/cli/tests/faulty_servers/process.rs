//! Processes as the system sees them.

use std::fs;
use std::path::PathBuf;

/// How many files a process has open, but for those of its database: SQLite opens them when it
/// first needs them, a fixed number of them, and keeps them.
pub(crate) fn files(pid: u32) -> usize {
    let all = fs::read_dir(folder(pid).join("fd")).unwrap();
    let targets = all.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
    targets.filter(|target| !target.to_string_lossy().contains("/toolgate.db")).count()
}

/// The most memory that a process has had so far, in MiB.
pub(crate) fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(folder(pid).join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// The children of a process, dead ones that it has not reaped among them.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let mut all = pids();
    all.retain(|pid| {
        let stat = fs::read_to_string(folder(*pid).join("stat")).unwrap_or_default();
        // `pid (name) state parent …`, and the name may hold anything.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1) == Some(parent.to_string().as_str())
    });
    all
}

/// The processes that have this text in their environment.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let mut all = pids();
    all.retain(|pid| {
        // One that has ended meanwhile has no environment.
        let environment = fs::read(folder(*pid).join("environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|window| window == mark.as_bytes())
    });
    all
}

fn pids() -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn folder(pid: u32) -> PathBuf {
    PathBuf::from("/proc").join(pid.to_string())
}
