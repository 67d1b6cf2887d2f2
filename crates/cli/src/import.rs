//! `toolgate import`: an existing installation becomes one of toolgate.
//!
//! A `v8project.yaml` becomes a `toolgate.yaml`; the `tools_cache.json` that belongs to it, or one
//! that is named itself, goes into the showcase of the data folder.
//!
//! Invariant: a file that another user can have written is refused, as configuration is.
//! Invariant: what is not understood is refused, never left out silently; nothing is written then.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, anyhow};
use toolgate_config::{Config, render};
use toolgate_control::{trusted, visible};
use toolgate_session::{ShowcaseEntry, import};

use crate::args::ImportArgs;
use crate::config_source::Here;
use crate::exit::Done;
use crate::policy::{number, replace};
use crate::print;
use crate::serve::take_over;

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<Done> {
    if let Some(entries) = tools_cache(&args.file) {
        let entries = entries.with_context(|| cannot(&args.file))?;
        return keep(args, &Config::default(), &entries);
    }
    let imported = match Config::import(&args.file, &Here) {
        Ok(imported) => imported,
        Err(problems) => {
            print::err(&render(&problems));
            return Err(anyhow!("{}", cannot(&args.file)));
        }
    };
    let cache = imported.cache_file.as_deref().map(read_cache).transpose()?.unwrap_or_default();
    print::err(&render(&imported.loaded.warnings));
    let done = keep(args, &imported.loaded.config, &cache)?;
    match &args.write {
        Some(path) => {
            replace(path, &imported.text)?;
            print::err(&visible(&format!("written to {}\n", path.display())));
        }
        None => print::out(&imported.text),
    }
    Ok(done)
}

fn cannot(file: &Path) -> String {
    format!("`{}` cannot be imported", file.display())
}

/// The entries of a file that is a tools cache; none if it is something else.
fn tools_cache(file: &Path) -> Option<anyhow::Result<Vec<ShowcaseEntry>>> {
    let is_json = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
    is_json.then(|| Ok(import(&trusted::read_text(file)?)?))
}

/// The tools that the other program knew, if it has written any down.
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
        "looked at {} of the tools cache; {} new to the showcase in {}\n",
        number(tools, "tool"),
        if new == 1 { "1 entry is".to_owned() } else { format!("{new} entries are") },
        folder.display()
    )));
    if left_out > 0 {
        print::err(&format!("{left_out} more entries are left out: the showcase is full\n"));
    }
    Ok(Done::Ok)
}
