//! `toolgate config check|schema`.

use std::path::Path;

use toolgate_config::{Config, Problem, render, schema};

use crate::args::{CheckOutput, ConfigArgs, ConfigVerb};
use crate::exit::Done;
use crate::print;
use crate::serve::Here;

pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<Done> {
    match &args.verb {
        ConfigVerb::Check { file, output } => check(file, *output),
        ConfigVerb::Schema => {
            print::out(&format!("{}\n", serde_json::to_string_pretty(&schema())?));
            Ok(Done::Ok)
        }
    }
}

fn check(file: &Path, output: CheckOutput) -> anyhow::Result<Done> {
    let (valid, problems) = match Config::load(file, &Here) {
        Ok(loaded) => (true, loaded.warnings),
        Err(problems) => (false, problems),
    };
    match output {
        CheckOutput::Json => print::out(&format!("{}\n", as_json(file, valid, &problems)?)),
        CheckOutput::Text => {
            print::err(&render(&problems));
            print::err(&summary(file, valid, problems.len()));
        }
    }
    Ok(if valid { Done::Ok } else { Done::Finding })
}

fn as_json(file: &Path, valid: bool, problems: &[Problem]) -> serde_json::Result<String> {
    serde_json::to_string(&serde_json::json!({
        "file": file.display().to_string(),
        "valid": valid,
        "problems": problems,
    }))
}

fn summary(file: &Path, valid: bool, count: usize) -> String {
    let file = file.display();
    match (valid, count) {
        (true, 0) => format!("{file} is valid\n"),
        (true, 1) => format!("\n{file} is valid, with 1 warning\n"),
        (true, count) => format!("\n{file} is valid, with {count} warnings\n"),
        (false, 1) => format!("\n{file} is not valid: 1 problem\n"),
        (false, count) => format!("\n{file} is not valid: {count} problems\n"),
    }
}
