//! `toolgate approval watch`: pending approvals as they come, answered with one key.
//!
//! On a terminal it shows one approval at a time and reads keys; otherwise it prints one line for each
//! approval that begins or stops to wait.
//!
//! Invariant: a key answers the approval that is on the screen (`watch/view.rs`), and keys typed
//! before it could be read are discarded (`watch/terminal.rs`).
//! Invariant: no text of an agent becomes part of a command line (`watch/command.rs`).

mod command;
mod terminal;
mod view;

use std::io::{IsTerminal as _, stdin, stdout};
use std::thread::sleep;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use toolgate_control::visible;

use crate::admin_client::{AdminClient, part};
use crate::args::ApprovalWatchArgs;
use crate::exit::Done;
use crate::listing::{cell, text};
use crate::print;

use command::Commands;
use terminal::Terminal;
use view::{Key, Step, View};

/// How often the gateway is asked.
const EVERY: Duration = Duration::from_secs(1);
const PENDING: &str = "/api/v1/approvals?state=pending&limit=1000";
/// How many new approvals have a line each while another one is read.
const LINES: usize = 5;
const KEYS: &str = "a approve   d deny   n next   q quit";

pub(super) fn run(args: &ApprovalWatchArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    let pending = client.list(PENDING)?;
    let is_terminal = stdin().is_terminal() && stdout().is_terminal();
    let watch = Watch {
        client,
        commands: args.exec.as_deref().map(|line| Commands::new(line, is_terminal)),
        is_unreachable: false,
    };
    if is_terminal { watch.on_terminal(&pending) } else { watch.in_lines(pending) }
}

struct Watch {
    client: AdminClient,
    commands: Option<Commands>,
    /// The gateway did not answer the last time.
    is_unreachable: bool,
}

impl Watch {
    /// Prints a line for each change, until the output is closed or the process ends.
    fn in_lines(mut self, mut pending: Vec<Value>) -> anyhow::Result<Done> {
        let mut view = View::default();
        loop {
            let update = view.update(&pending);
            for approval in &update.new {
                self.started(approval);
                if !print::out_if_read(&format!("{}\n", line("pending", approval))) {
                    return Ok(Done::Ok);
                }
            }
            for id in &update.ended {
                if !print::out_if_read(&format!("ended    {}\n", visible(id))) {
                    return Ok(Done::Ok);
                }
            }
            sleep(EVERY);
            if let Some(listed) = self.pending() {
                pending = listed;
            }
        }
    }

    /// Shows one approval after the other, until the person quits.
    fn on_terminal(mut self, pending: &[Value]) -> anyhow::Result<Done> {
        let terminal = Terminal::open()?;
        let mut view = View::default();
        print::out(&format!("{KEYS}\n"));
        self.shows(&terminal, &mut view, pending);
        loop {
            match terminal.key(EVERY)? {
                Some(key) => {
                    let step = view.press(key);
                    if self.takes(&terminal, &mut view, step) {
                        return Ok(Done::Ok);
                    }
                }
                None => {
                    if let Some(pending) = self.pending() {
                        self.shows(&terminal, &mut view, &pending);
                    }
                }
            }
        }
    }

    /// Shows what has changed.
    fn shows(&mut self, terminal: &Terminal, view: &mut View, pending: &[Value]) {
        let update = view.update(pending);
        for approval in &update.new {
            self.started(approval);
        }
        for approval in update.new.iter().take(LINES) {
            print::out(&format!("\u{7}{}\n", line("pending", approval)));
        }
        if update.new.len() > LINES {
            print::out(&format!("and {} more\n", update.new.len() - LINES));
        }
        // The last line must not seem to be what a key answers.
        if let (Some(id), false) = (view.shown(), update.new.is_empty() || update.show.is_some()) {
            print::out(&format!("{KEYS}   (this answers {})\n", visible(id)));
        }
        if let Some(id) = update.shown_ended {
            print::out(&format!("{} waits no more; n shows the next\n", visible(&id)));
        }
        if let Some(id) = update.show {
            self.show(terminal, &id);
        }
    }

    /// Does what a key asks for; whether that ends the view.
    fn takes(&mut self, terminal: &Terminal, view: &mut View, step: Step) -> bool {
        match step {
            Step::Nothing => {}
            Step::Quit => return true,
            Step::Show(id) => self.show(terminal, &id),
            Step::Empty => print::out("no other approval is pending\n"),
            Step::Answer(key, id) => {
                let verb = if key == Key::Approve { "approve" } else { "deny" };
                let path = format!("/api/v1/approvals/{}/{verb}", part(&id));
                match self.client.send(&Method::POST, &path, Some(&json!({}))) {
                    Ok(answered) => {
                        print::out(&format!("{}\n", super::result(&answered)));
                        let next = view.answered();
                        return self.takes(terminal, view, next);
                    }
                    Err(error) => print::out(&format!("{}\n", visible(&error.to_string()))),
                }
            }
        }
        false
    }

    fn show(&self, terminal: &Terminal, id: &str) {
        match self.client.get(&format!("/api/v1/approvals/{}", part(id))) {
            Ok(approval) => print::out(&format!("\n{}{KEYS}\n", super::shown(&approval))),
            Err(error) => print::out(&format!("{}\n", visible(&error.to_string()))),
        }
        // The person cannot have meant this approval with what was typed before.
        terminal.discard();
    }

    fn started(&self, approval: &Value) {
        if let Some(commands) = &self.commands {
            commands.run(approval);
        }
    }

    /// The pending approvals; `None` if the gateway cannot be asked now.
    fn pending(&mut self) -> Option<Vec<Value>> {
        let listed = self.client.list(PENDING);
        let was_unreachable = std::mem::replace(&mut self.is_unreachable, listed.is_err());
        listed
            .inspect_err(|error| {
                if !was_unreachable {
                    print::err(&format!("{}; trying again\n", visible(&error.to_string())));
                }
            })
            .ok()
    }
}

/// An approval on one line.
fn line(state: &str, approval: &Value) -> String {
    let of = |name: &str| cell(approval.get(name).unwrap_or(&Value::Null));
    let id = text(approval, "id").map(visible).unwrap_or_default();
    let (grant, server, tool) = (of("grant"), of("server"), of("tool"));
    format!("{state:<8} {id} {grant} {server}/{tool} {} until {}", of("class"), of("expires"))
}
