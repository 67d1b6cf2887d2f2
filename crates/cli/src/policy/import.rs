//! `toolgate policy import`: an Intercept file becomes a policy, and nothing changes silently.

use toolgate_policy::{Imported, Known, format, import_intercept};

use super::source::Source;
use super::{problems, write};
use crate::args::PolicyImportArgs;
use crate::exit::Done;
use crate::print;

const NOTHING: &str = "nothing: this is a policy already, and can be used as it is";

pub(super) fn run(args: &PolicyImportArgs) -> anyhow::Result<Done> {
    let source = Source::read(&args.file)?;
    let imported = match import_intercept(&source.text) {
        Ok(imported) => imported,
        // A document of this language, or PolicyLayer's JSON, is read as it is.
        Err(_) if source.load(&Known::default()).policy.is_some() => {
            Imported { document: source.text.clone(), changes: vec![NOTHING.to_owned()] }
        }
        Err(found) => {
            problems::refuse(&source, &found);
            return Ok(Done::Finding);
        }
    };
    let document = format(&imported.document).unwrap_or(imported.document);
    match &args.write {
        Some(path) => write::replace(path, &document)?,
        None => print::out(&document),
    }
    let mut report = vec!["what changes against Intercept:\n".to_owned()];
    report.extend(imported.changes.iter().map(|change| format!("  - {change}\n")));
    if let Some(path) = &args.write {
        report.push(format!("written to {}\n", path.display()));
    }
    print::err(&toolgate_control::visible(&report.concat()));
    Ok(Done::Ok)
}
