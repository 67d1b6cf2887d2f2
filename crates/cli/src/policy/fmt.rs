//! `toolgate policy fmt`.

use anyhow::bail;
use toolgate_policy::format;

use super::source::{Source, is_stdin};
use super::{problems, write};
use crate::args::FmtArgs;
use crate::exit::Done;
use crate::print;

pub(super) fn run(args: &FmtArgs) -> anyhow::Result<Done> {
    if args.write && is_stdin(&args.file) {
        bail!("stdin cannot be written back; leave out `--write` and use stdout");
    }
    let source = Source::read(&args.file)?;
    let formatted = match format(&source.text) {
        Ok(formatted) => formatted,
        Err(found) => {
            problems::refuse(&source, &found);
            return Ok(Done::Finding);
        }
    };
    let same = formatted == source.text;
    if args.check {
        if same {
            return Ok(Done::Ok);
        }
        print::err(&not_formatted(&source, &formatted));
        return Ok(Done::Finding);
    }
    if !args.write {
        print::out(&formatted);
    } else if !same {
        write::replace(&args.file, &formatted)?;
    }
    Ok(Done::Ok)
}

fn not_formatted(source: &Source, formatted: &str) -> String {
    let pairs = source.text.lines().zip(formatted.lines());
    let line = pairs.take_while(|(is, would)| is == would).count() + 1;
    let file = source.shown();
    format!(
        "{file} is not formatted: line {line} would change; `toolgate policy fmt --write` does it\n"
    )
}
