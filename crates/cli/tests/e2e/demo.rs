//! `toolgate demo`: it checks what it prints, and leaves nothing behind.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::gate::{Home, Log, eventually};
use crate::recording;

const STEPS: [&str; 9] = [
    "an allowed call",
    "a destructive tool",
    "a looping agent",
    "a hidden tool",
    "a poisoned tool",
    "a call for a person",
    "two 1C bases",
    "the kill switch",
    "a rug-puller",
];

#[test]
fn every_control_fires_and_nothing_is_left() {
    let home = Home::new();
    let temp = home.path("temp");
    std::fs::create_dir(&temp).unwrap();
    let output = home.command(&["demo", "--once"]).env("TMPDIR", &temp).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{errors}");
    for step in STEPS {
        assert!(text.contains(step), "{step}: {text}");
    }
    recording::check("demo", "toolgate demo", &text);
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0, "its folder is removed");
    assert!(!home.path(".local/share/toolgate").exists(), "the user's own folder is not used");
}

#[test]
fn it_ends_with_ctrl_c() {
    let home = Home::new();
    let temp = home.path("temp");
    std::fs::create_dir(&temp).unwrap();
    let mut command = home.command(&["demo"]);
    let mut child = command.env("TMPDIR", &temp).stdout(Stdio::null()).spawn().unwrap();
    let log = Log::default();
    let reading = log.follow(child.stderr.take().unwrap());
    log.wait_for("Ctrl-C ends the demo");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = eventually("the demo ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    reading.join().unwrap();
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
}
