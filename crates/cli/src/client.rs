//! `toolgate client`: writes toolgate into the configuration of MCP clients.
//!
//! `toolgate-clients` knows the files and edits their text; `client/file.rs` reads and writes them,
//! `client/target.rs` finds the address and the token.
//!
//! Invariant: the difference is shown before anything is written, without tokens.
//! Invariant: a file is replaced whole or not at all, and what it held is kept beside it.

mod diff;
pub(crate) mod file;
mod target;

use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_clients::{McpClient, Places, connect, disconnect, entry_of, fragment};
use toolgate_control::visible;

use crate::args::{ClientArgs, ClientListArgs, ClientVerb, ConnectArgs, DisconnectArgs, EditArgs};
use crate::ask::{Answer, ask};
use crate::exit::Done;
use crate::listing;
use crate::print;
use file::ClientFile;

const NEEDS_TOKEN: &str = "this gateway refuses calls without a token: add --grant LABEL to create \
                           one, or write the token of a grant into the entry";

pub(crate) fn run(args: &ClientArgs) -> anyhow::Result<Done> {
    match &args.verb {
        ClientVerb::Connect(args) => connect_client(args),
        ClientVerb::Disconnect(args) => disconnect_client(args),
        ClientVerb::List(args) => {
            list(args);
            Ok(Done::Ok)
        }
    }
}

fn connect_client(args: &ConnectArgs) -> anyhow::Result<Done> {
    let EditArgs { client, name, .. } = &args.edit;
    let target = target::find(args)?;
    if args.print {
        print::out(&fragment(*client, name, &client.entry(&target.shown())));
        return Ok(Done::Ok);
    }
    let file = ClientFile::open(path(&args.edit))?;
    let shown = client.entry(&target.shown());
    let after = connect(*client, file.text(), name, &shown).map_err(|why| file.refused(&why))?;
    if !target.makes_grant() && after == file.text() {
        print::done(&format!("{} is connected already: {}", client.name(), file.shown()));
        return Ok(Done::Ok);
    }
    print_diff(&file, &after);
    if target.needs_token() {
        print::done(NEEDS_TOKEN);
    }
    if !may_write(&args.edit)? {
        return Ok(Done::Ok);
    }
    let entry = client.entry(&target.with_token()?);
    let after = connect(*client, file.text(), name, &entry).map_err(|why| file.refused(&why))?;
    let kept = file.write(&after, target.makes_grant())?;
    report(&file, kept);
    print::done(&format!("restart {} to use it", client.name()));
    Ok(Done::Ok)
}

fn disconnect_client(args: &DisconnectArgs) -> anyhow::Result<Done> {
    let EditArgs { client, name, .. } = &args.edit;
    let file = ClientFile::open(path(&args.edit))?;
    let after = disconnect(*client, file.text(), name).map_err(|why| file.refused(&why))?;
    let Some(after) = after else {
        print::done(&format!("{} is not connected: {}", client.name(), file.shown()));
        return Ok(Done::Ok);
    };
    let after = before_connect(*client, name, &file).unwrap_or(after);
    print_diff(&file, &after);
    if !may_write(&args.edit)? {
        return Ok(Done::Ok);
    }
    let kept = file.write(&after, false)?;
    report(&file, kept);
    Ok(Done::Ok)
}

/// What the file held before `connect`, if nothing else has changed it since.
fn before_connect(client: McpClient, name: &str, file: &ClientFile) -> Option<String> {
    let entry = entry_of(client, file.text(), name).ok()??;
    let is_it = |before: &String| {
        connect(client, before, name, &entry).is_ok_and(|made| made == file.text())
    };
    file.backups().find(is_it)
}

fn path(edit: &EditArgs) -> PathBuf {
    edit.file.clone().unwrap_or_else(|| edit.client.file(&places()))
}

/// The folders of this user.
pub(crate) fn places() -> Places {
    let path =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = path("HOME").or_else(|| path("USERPROFILE")).unwrap_or_default();
    let config = if cfg!(target_os = "macos") {
        home.join("Library/Application Support")
    } else if cfg!(windows) {
        path("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
    } else {
        path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
    };
    Places { home, config }
}

fn print_diff(file: &ClientFile, after: &str) {
    let text = diff::unified(&file.shown(), file.text(), after);
    print::out(&text.split('\n').map(mask).collect::<Vec<_>>().join("\n"));
}

/// A line without the token in it.
fn mask(line: &str) -> String {
    match line.split_once("Bearer ") {
        Some((before, token)) if !token.starts_with('<') => {
            let rest = token.find('"').and_then(|end| token.get(end..)).unwrap_or_default();
            visible(&format!("{before}Bearer ***{rest}"))
        }
        _ => visible(line),
    }
}

fn may_write(edit: &EditArgs) -> anyhow::Result<bool> {
    if edit.dry_run {
        print::done("nothing was written (--dry-run)");
        return Ok(false);
    }
    if edit.yes {
        return Ok(true);
    }
    match ask("Write this file?")? {
        Answer::Yes => Ok(true),
        Answer::No => {
            print::done("nothing was written");
            Ok(false)
        }
    }
}

fn report(file: &ClientFile, kept: Option<PathBuf>) {
    if let Some(kept) = kept {
        print::done(&format!("kept the previous file as {}", kept.display()));
    }
    print::done(&format!("written to {}", file.shown()));
}

fn list(args: &ClientListArgs) {
    let places = places();
    let items: Vec<Value> = McpClient::ALL.iter().map(|client| item(*client, &places)).collect();
    let columns = [
        ("ID", "id"),
        ("CLIENT", "name"),
        ("INSTALLED", "installed"),
        ("CONNECTED", "connected"),
        ("FILE", "file"),
        ("PROBLEM", "problem"),
    ];
    listing::list(args.output, &items, &columns);
}

/// What is known about a client on this machine.
pub(crate) fn item(client: McpClient, places: &Places) -> Value {
    let file = client.file(places);
    let (traces, programs) = client.traces(places);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path =
        |program: &&str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let installed = traces.iter().any(|trace| trace.exists()) || programs.iter().any(in_path);
    let text = std::fs::read(&file).ok().and_then(|bytes| toolgate_clients::text_of(bytes).ok());
    let entry = text.as_deref().map(|text| entry_of(client, text, "toolgate"));
    let problem = match &entry {
        Some(Err(why)) => Some(why.to_string()),
        _ => None,
    };
    let connected = matches!(entry, Some(Ok(Some(_))));
    json!({
        "id": client.id(), "name": client.name(), "file": file.display().to_string(),
        "installed": installed, "connected": connected, "problem": problem,
    })
}
