//! `toolgate console`: a link that signs in to the console.

use std::process::{Command, Stdio};

use anyhow::Context as _;
use http::Method;

use crate::admin_client::AdminClient;
use crate::args::ConsoleArgs;
use crate::exit::Done;
use crate::listing::text;
use crate::print;

/// Programs that open a link in a browser.
const OPENERS: [&str; 3] = ["xdg-open", "open", "wslview"];

pub(crate) fn run(args: &ConsoleArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    let made = client.send(&Method::POST, "/api/v1/console/link", None)?;
    let path = text(&made, "path").context("the gateway returned no link")?;
    let link = format!("{}{path}", client.base());
    print::out(&format!("{link}\n"));
    let opened = !args.no_open && has_screen() && open(&link);
    let what = if opened { "opened in your browser; " } else { "" };
    print::err(&format!("{what}the link works once, within 60 seconds\n"));
    Ok(Done::Ok)
}

/// Whether a browser could be shown; without a screen an opener may start a browser in the terminal.
fn has_screen() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(not(target_os = "linux")) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

fn open(link: &str) -> bool {
    OPENERS.iter().any(|opener| {
        let mut command = Command::new(opener);
        command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    })
}
