//! `--exec`: a command of the operator for each new approval.
//!
//! Invariant: the command line is the operator's alone. What agents sent reaches the command as
//! environment variables, with hidden and control characters drawn, and as JSON on its stdin.
//! Invariant: one command runs at a time, and a bounded number waits, whatever an agent does.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use serde_json::Value;

use crate::listing::cell;
use crate::print;

/// How many approvals may wait for their command.
const WAITING: usize = 1_000;

/// Variables of the command, and the members of the approval they are of.
const VARIABLES: [(&str, &str); 8] = [
    ("TOOLGATE_APPROVAL_ID", "id"),
    ("TOOLGATE_APPROVAL_GRANT", "grant"),
    ("TOOLGATE_APPROVAL_IDENTITY", "identity"),
    ("TOOLGATE_APPROVAL_SERVER", "server"),
    ("TOOLGATE_APPROVAL_SESSION", "session_id"),
    ("TOOLGATE_APPROVAL_TOOL", "tool"),
    ("TOOLGATE_APPROVAL_CLASS", "class"),
    ("TOOLGATE_APPROVAL_EXPIRES", "expires"),
];

pub(super) struct Commands {
    next: SyncSender<Value>,
}

impl Commands {
    /// Runs this command line; `is_quiet` if its output would spoil the screen.
    pub(super) fn new(line: &str, is_quiet: bool) -> Self {
        let (next, approvals) = sync_channel(WAITING);
        let line = line.to_owned();
        // It ends with the process; a command that runs then is not stopped.
        thread::spawn(move || run_all(&line, is_quiet, &approvals));
        Self { next }
    }

    /// Runs the command for this approval, after those before it. If too many wait, it is not run.
    pub(super) fn run(&self, approval: &Value) {
        if self.next.try_send(approval.clone()).is_err() {
            let id = approval.get("id").map(cell).unwrap_or_default();
            print::err(&format!("the command of `--exec` is too slow: not run for `{id}`\n"));
        }
    }
}

fn run_all(line: &str, is_quiet: bool, approvals: &Receiver<Value>) {
    for approval in approvals {
        match run(line, is_quiet, &approval) {
            Ok(true) => {}
            Ok(false) => print::err("the command of `--exec` failed\n"),
            Err(error) => {
                print::err(&format!("the command of `--exec` cannot be run: {error}\n"));
            }
        }
    }
}

/// Runs the command to its end; whether it succeeded.
fn run(line: &str, is_quiet: bool, approval: &Value) -> std::io::Result<bool> {
    let output = || if is_quiet { Stdio::null() } else { Stdio::inherit() };
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).stdin(Stdio::piped()).stdout(output()).stderr(output());
    command.env_remove("TOOLGATE_ADMIN_TOKEN");
    for (name, member) in VARIABLES {
        let value = approval.get(member).filter(|value| !value.is_null());
        command.env(name, value.map(cell).unwrap_or_default());
    }
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read it closes the pipe.
        drop(input.write_all(format!("{approval}\n").as_bytes()));
    }
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_agents_sent_is_data() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seen");
        let line = format!(
            "printf '%s\\n' \"$TOOLGATE_APPROVAL_TOOL\" $TOOLGATE_APPROVAL_ID >'{0}'; cat >>'{0}'",
            file.display()
        );
        let tool = "$(touch x); `id`\n\u{202e}\u{0}";
        let approval = json!({"id": "apr_1", "tool": tool, "arguments": {"a": "';exit 1"}});
        assert!(run(&line, true, &approval).unwrap());
        let seen = std::fs::read_to_string(&file).unwrap();
        let (shown, rest) = seen.split_once('\n').unwrap();
        assert_eq!(shown, r"$(touch x); `id` \u{202e}\u{0}");
        let (id, json) = rest.split_once('\n').unwrap();
        assert_eq!((id, serde_json::from_str::<Value>(json).unwrap()), ("apr_1", approval));
        assert!(!run("exit 3", true, &json!({"id": "x", "more": "x".repeat(1 << 20)})).unwrap());
    }
}
