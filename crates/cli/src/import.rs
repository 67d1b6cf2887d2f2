//! `toolgate import`: the configuration and the tools of another program.
//!
//! The file of an MCP client (`import/client_file.rs`) or a `v8project.yaml` becomes a `toolgate.yaml`. The `tools_cache.json`
//! of the latter, or one that is named itself, goes into the showcase of the data folder.
//!
//! Invariant: without `--write` nothing is written.
//! Invariant: a file that this command did not write, or that was edited since, is replaced only
//! with `--force`, and then a backup is kept.
//! Invariant: a file that another user can have written is refused, as configuration is.
//! Invariant: settings that are not understood are refused, never left out silently.
//! Invariant: a literal secret is neither printed nor written to the configuration.

mod client_file;
mod target;
mod variables;

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, anyhow};
use serde_json::Value;
use toolgate_config::Config;
use toolgate_control::{trusted, visible};
use toolgate_session::{ShowcaseEntry, import};

use crate::args::ImportArgs;
use crate::ask::{Answer, ask};
use crate::config_source::Here;
use crate::exit::Done;
use crate::policy::number;
use crate::print;
use crate::serve::take_over;
use client_file::ClientFile;
use target::Target;

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<Done> {
    if let Some(entries) = tools_cache(&args.file) {
        let entries = entries.with_context(|| cannot(&args.file))?;
        if args.write.is_none() {
            preview(None, &entries);
            return Ok(Done::Ok);
        }
        return keep(args, &Config::default(), &entries);
    }
    let client = ClientFile::read(&args.file)?;
    let read = match &client {
        Some(client) => Config::import(&args.file, client),
        None => Config::import(&args.file, &Here),
    };
    let imported = match read {
        Ok(imported) => imported,
        Err(problems) => {
            print::problems(&problems);
            return Err(anyhow!("{}", cannot(&args.file)));
        }
    };
    let cache = imported.cache_file.as_deref().map(read_cache).transpose()?.unwrap_or_default();
    print::problems(&imported.loaded.warnings);
    if let Some(client) = &client {
        print::err(&visible(&client.notes()));
    }
    let Some(to) = &args.write else {
        preview(Some(&imported.text), &cache);
        return Ok(Done::Ok);
    };
    let target = Target::open(to, args.force)?;
    if let Some(client) = client.filter(ClientFile::has_secrets) {
        let question = "Write these secrets to files for you alone?";
        if !args.yes && ask(question)? == Answer::No {
            print::done("nothing was written");
            return Ok(Done::Ok);
        }
        let may_replace = args.force || target.is_rewritten();
        print::err(&visible(&client.write_secrets(to, may_replace)?));
    }
    let done = keep(args, &imported.loaded.config, &cache)?;
    print::err(&visible(&target.write(&imported.text)?));
    Ok(done)
}

/// Shows what would be written.
fn preview(config: Option<&str>, entries: &[ShowcaseEntry]) {
    print::out(config.unwrap_or_default());
    let tools: usize = entries.iter().map(|entry| entry.tools.len()).sum();
    let what = match (config, tools) {
        (Some(_), 0) => "this configuration".to_owned(),
        (Some(_), tools) => {
            format!("this configuration, and {} into the showcase", number(tools, "tool"))
        }
        (None, tools) => format!("{} into the showcase", number(tools, "tool")),
    };
    print::err(&format!("preview: nothing was written; `--write` writes {what}\n"));
}

fn cannot(file: &Path) -> String {
    format!("`{}` cannot be imported", file.display())
}

/// The entries of a tools cache; `None` if the file is something else, or does not exist.
fn tools_cache(file: &Path) -> Option<anyhow::Result<Vec<ShowcaseEntry>>> {
    let is_json = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
    let text = trusted::read_text(file).ok().filter(|_| is_json)?;
    let root: Value = serde_json::from_str(&text).ok()?;
    root.get("entries").is_some().then(|| Ok(import(&text)?))
}

/// The tools that the other program has cached, if any.
fn read_cache(file: &Path) -> anyhow::Result<Vec<ShowcaseEntry>> {
    match trusted::read_text(file) {
        Ok(text) => import(&text).with_context(|| cannot(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| cannot(file)),
    }
}

fn keep(args: &ImportArgs, config: &Config, entries: &[ShowcaseEntry]) -> anyhow::Result<Done> {
    if entries.is_empty() {
        return Ok(Done::Ok);
    }
    let tools: usize = entries.iter().map(|entry| entry.tools.len()).sum();
    let (folder, new, left_out) = take_over(args.data.as_deref(), config, entries)?;
    print::err(&visible(&format!(
        "read {} of the tools cache; {} new in the showcase of {}\n",
        number(tools, "tool"),
        if new == 1 { "1 entry is".to_owned() } else { format!("{new} entries are") },
        folder.display()
    )));
    if left_out > 0 {
        print::err(&format!("{left_out} entries were left out: the showcase is full\n"));
    }
    Ok(Done::Ok)
}
