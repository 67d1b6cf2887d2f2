//! `toolgate approval watch`: with keys on a terminal, and in lines without one.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use super::{Desk, code};
use crate::gate::eventually;

/// A person at a terminal.
struct Screen {
    child: Child,
    keyboard: File,
    seen: Arc<Mutex<String>>,
}

impl Screen {
    fn open(desk: &Desk) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = || {
            let flags = OFlags::RDWR | OFlags::NOCTTY;
            Stdio::from(open(name.as_c_str(), flags, Mode::empty()).unwrap())
        };
        let mut command = desk.gate.home.command(&["approval", "watch"]);
        command.stdin(terminal()).stdout(terminal()).stderr(terminal());
        let child = command.spawn().unwrap();
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().unwrap();
        let seen = Arc::new(Mutex::new(String::new()));
        let record = Arc::clone(&seen);
        thread::spawn(move || {
            let mut part = [0; 4096];
            // The read fails once the last program at the terminal has ended.
            while let Ok(read) = screen.read(&mut part) {
                record.lock().unwrap().push_str(&String::from_utf8_lossy(&part[..read]));
            }
        });
        Self { child, keyboard, seen }
    }

    fn shows(&self, words: &str) {
        eventually(&format!("the screen shows `{words}`"), || {
            self.seen.lock().unwrap().contains(words).then_some(())
        });
    }

    /// Presses a key until that had its effect: what is typed too early is discarded.
    fn presses(&mut self, key: char, is_done: impl Fn() -> bool) {
        eventually(&format!("the key `{key}` has its effect"), || {
            if is_done() {
                return Some(());
            }
            write!(self.keyboard, "{key}").unwrap();
            None
        });
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn state(desk: &Desk, approval: &Value) -> Value {
    let id = approval["id"].as_str().unwrap();
    desk.api().get(&format!("approvals/{id}"))["state"].clone()
}

#[test]
fn a_person_answers_with_one_key() {
    let desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    let mut screen = Screen::open(&desk);
    screen.shows("q quit");
    agent.call("pid", &json!({"text": "a\u{202e}b"}));
    let first = desk.pending();
    let id = first["id"].as_str().unwrap();
    // The bell, then everything that is needed to decide.
    screen.shows(&format!("\u{7}pending  {id}"));
    screen.shows(r#"{"text":"a\u{202E}b"}"#);
    assert!(!screen.seen.lock().unwrap().contains('\u{202e}'));
    screen.presses('d', || state(&desk, &first) == "denied");
    screen.shows(&format!("{id} is denied"));
    screen.shows("no other approval is pending");
    assert_eq!(code(&agent.call("pid", &json!({"text": "a\u{202e}b"}))), "approval_denied");

    assert_eq!(code(&agent.call("pid", &json!({"n": 2}))), "approval_required");
    let second = desk.pending();
    screen.shows(r#"{"n":2}"#);
    screen.presses('a', || state(&desk, &second) == "approved");
    assert_eq!(code(&agent.call("pid", &json!({"n": 2}))), "sent");
    assert_eq!(desk.received("pid"), 1);
    write!(screen.keyboard, "q").unwrap();
    assert_eq!(screen.child.wait().unwrap().code(), Some(0));
}

/// The stdin of a hook has the approval, its environment the values, and its text is the operator's.
#[test]
fn without_a_terminal_it_prints_lines() {
    let desk = Desk::new("");
    let agent = desk.agent("/mcp/peer");
    let file = desk.gate.home.path("hook");
    let hook = r#"printf '%s ' "$TOOLGATE_APPROVAL_ID" "$TOOLGATE_APPROVAL_TOOL" >>"$HOOK"; cat >>"$HOOK""#;
    let mut command = desk.gate.home.command(&["approval", "watch", "--exec", hook]);
    command.env("HOOK", &file).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    agent.call("pid", &json!({"text": "$(touch x)\u{202e}"}));
    let approval = desk.pending();
    let id = approval["id"].as_str().unwrap();
    let line = lines.next().unwrap();
    assert!(line.starts_with(&format!("pending  {id} g peer/pid ")), "{line}");
    desk.answer(&approval, "deny", "");
    assert_eq!(lines.next().unwrap(), format!("ended    {id}"));
    let (head, sent) = eventually("the hook has run", || {
        let text = std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'))?;
        let (head, json) = text.split_at(text.find('{')?);
        Some((head.to_owned(), serde_json::from_str::<Value>(json).unwrap()))
    });
    assert_eq!(head, format!("{id} pid "));
    assert_eq!(sent["arguments"], json!({"text": "$(touch x)\u{202e}"}));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
}
