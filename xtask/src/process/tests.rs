use std::io::{BufRead as _, BufReader};

use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_failing_command_is_an_error_that_names_it() {
    let error = output(&mut shell("echo reason >&2; exit 3")).unwrap_err().to_string();
    assert!(error.contains("exit status: 3") && error.contains("reason"), "{error}");
}

#[test]
fn a_logged_command_shows_the_end_of_its_log() {
    let log = std::env::temp_dir().join(format!("xtask-log-{}", std::process::id()));
    let error = run_logged(&mut shell("echo why; exit 1"), &log, GRACE).unwrap_err().to_string();
    std::fs::remove_file(&log).unwrap();
    assert!(error.contains("| why"), "{error}");
}

#[test]
fn dropping_a_group_ends_the_grandchildren_too() {
    let mut command = shell("sleep 1000 & echo $!; wait");
    command.stdout(Stdio::piped());
    let mut group = Group::start("a shell", &mut command).unwrap();
    let mut grandchild = String::new();
    BufReader::new(group.child().stdout.take().unwrap()).read_line(&mut grandchild).unwrap();
    let grandchild = format!("/proc/{}/stat", grandchild.trim());
    assert!(Path::new(&grandchild).exists());
    drop(group);
    // Gone, or a zombie that init has not collected yet.
    let alive = || std::fs::read_to_string(&grandchild).is_ok_and(|state| !state.contains(") Z"));
    while alive() {
        std::thread::sleep(POLL);
    }
}

#[test]
fn a_group_that_does_not_end_is_an_error() {
    let group = Group::start("a sleeper", &mut shell("sleep 1000")).unwrap();
    let error = group.wait(Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("a sleeper did not end"), "{error}");
}
