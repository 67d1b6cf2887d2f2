//! `toolgate catalog import`: servers of an MCP registry, kept in the data folder.
//!
//! Invariant: the file in the data folder is replaced whole or not at all, and never grows beyond what
//! can be read again.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, bail};
use toolgate_catalog::{RegistryServer, read_registry};
use toolgate_control::trusted;
use toolgate_os::files;

use crate::args::{CatalogImportArgs, DataArgs};
use crate::data::find_data;
use crate::exit::Done;
use crate::print;

/// The file in the data folder.
const FILE: &str = "registry.json";
/// The most that is stored: `trusted::read` reads no more.
const MOST: usize = 8 * 1024 * 1024;

pub(super) fn run(args: &CatalogImportArgs) -> anyhow::Result<Done> {
    let cannot = || format!("`{}` cannot be imported", args.file.display());
    let text = trusted::read_named(&args.file).with_context(cannot)?;
    let new = read_registry(&text).with_context(cannot)?;
    let folder = find_data(args.data.data.as_deref(), args.data.config.as_deref())?;
    let mut servers = read(&folder)?;
    let (mut added, mut replaced) = (0, 0);
    for server in new {
        if let Some(known) = servers.iter_mut().find(|known| known.name == server.name) {
            *known = server;
            replaced += 1;
        } else {
            servers.push(server);
            added += 1;
        }
    }
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    write(&folder, &servers)?;
    print::done(&format!(
        "imported {added} new servers and replaced {replaced}; `toolgate catalog search` finds them"
    ));
    Ok(Done::Ok)
}

/// The servers that were imported; none if there is no data folder.
pub(super) fn imported(args: &DataArgs) -> anyhow::Result<Vec<RegistryServer>> {
    match find_data(args.data.as_deref(), args.config.as_deref()) {
        Ok(folder) => read(&folder),
        // Without HOME there is no data folder, and the shipped catalogue needs none.
        Err(_) if args.data.is_none() && args.config.is_none() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn read(folder: &Path) -> anyhow::Result<Vec<RegistryServer>> {
    let path = folder.join(FILE);
    let text = match trusted::read_text(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read `{}`", path.display()))?,
    };
    let damaged = || format!("`{}` is damaged; remove it and import again", path.display());
    serde_json::from_str(&text).with_context(damaged)
}

fn write(folder: &Path, servers: &[RegistryServer]) -> anyhow::Result<()> {
    let text = serde_json::to_string(servers).context("the servers cannot be written as JSON")?;
    if text.len() > MOST {
        bail!("the imported servers take more than {} MiB together; import fewer", MOST >> 20);
    }
    let cannot = || format!("cannot write to the data folder `{}`", folder.display());
    files::create_folders(folder).with_context(cannot)?;
    trusted::check(folder).with_context(cannot)?;
    trusted::put(&folder.join(FILE), text.as_bytes()).with_context(cannot)
}
