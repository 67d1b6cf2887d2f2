//! What the figures were taken on.

use std::fs;
use std::process::Command;
use std::thread;

/// One paragraph: date, commit, processor, memory, kernel, compiler, and how busy the machine was.
pub(super) fn describe() -> String {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let model = value_of("/proc/cpuinfo", "model name");
    let memory = value_of("/proc/meminfo", "MemTotal");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?");
    format!(
        "{date}, commit {commit}; {processors} × {model}, {memory} of memory, Linux {kernel}, {rustc}. \
         Load average before the first measurement: {load}.",
        date = output("date", &["-u", "+%F"]),
        commit = output("git", &["rev-parse", "--short", "HEAD"]),
        kernel = kernel.trim(),
        rustc = output("rustc", &["--version"]),
    )
}

fn value_of(file: &str, key: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    let value = line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim());
    value.unwrap_or("unknown").to_owned()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(crate::root()).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    if text.is_empty() { "unknown".to_owned() } else { text }
}
