//! `toolgate policy check`: every problem of one or more documents.

use toolgate_policy::Problem;

use super::problems::Judgement;
use super::source::Source;
use super::{known, problems, sarif};
use crate::args::{CheckArgs, PolicyCheckOutput};
use crate::exit::Done;
use crate::print;

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<Done> {
    let known = known::of(args)?;
    let mut checked = Vec::new();
    let mut unread = Vec::new();
    for file in &args.files {
        match Source::read(file) {
            Ok(source) => {
                let loaded = source.load(&known);
                checked.push(Checked {
                    source,
                    valid: loaded.policy.is_some(),
                    problems: loaded.problems,
                });
            }
            Err(error) => unread.push(error),
        }
    }
    // Readable files are reported in any case; an empty report would look like success.
    if !checked.is_empty() {
        report(args, &checked)?;
    }
    let last = unread.pop();
    for error in unread {
        print::err(&format!("toolgate: {error:#}\n"));
    }
    match last {
        Some(error) => Err(error),
        None if checked.iter().all(|one| one.valid) => Ok(Done::Ok),
        None => Ok(Done::Finding),
    }
}

/// One document and its problems.
pub(super) struct Checked {
    pub(super) source: Source,
    pub(super) valid: bool,
    pub(super) problems: Vec<Problem>,
}

fn report(args: &CheckArgs, checked: &[Checked]) -> serde_json::Result<()> {
    match args.output {
        PolicyCheckOutput::Table => {
            for one in checked {
                print::out(&problems::text(&one.source, &one.problems));
                let between = if one.problems.is_empty() { "" } else { "\n" };
                let summary = problems::summary(&one.source, &one.problems);
                let pointer = problems::pointer(&one.problems);
                print::err(&format!("{between}{summary}\n{pointer}"));
            }
        }
        PolicyCheckOutput::Json => {
            let judged = checked.iter().map(|one| Judgement::new(&one.source, &one.problems));
            let judged: Vec<Judgement<'_>> = judged.collect();
            let text = match (args.files.len(), judged.as_slice()) {
                (1, [only]) => serde_json::to_string(only)?,
                (_, all) => serde_json::to_string(all)?,
            };
            print::out(&format!("{text}\n"));
        }
        PolicyCheckOutput::Sarif => {
            print::out(&format!("{}\n", serde_json::to_string_pretty(&sarif::log(checked))?));
        }
    }
    Ok(())
}
