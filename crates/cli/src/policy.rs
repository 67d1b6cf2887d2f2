//! `toolgate policy …`: check, test, explain, format and import policies.
//!
//! One file per verb. [`source`] reads documents, [`problems`] prints problems.
//!
//! Invariant: results go to stdout, everything else to stderr; a document that is not valid is a
//! finding (exit 1), a file that cannot be read an error (exit 2).

mod check;
mod explain;
mod fmt;
mod granted;
mod import;
mod junit;
mod known;
mod manage;
mod plan;
mod preflight;
mod problems;
mod resolved;
mod sarif;
mod source;
mod test;
mod write;

pub(crate) use preflight::run as preflight;
pub(crate) use problems::number;
pub(crate) use source::Source;
pub(crate) use test::place;
pub(crate) use write::replace;

use toolgate_policy::json_schema;

use crate::args::{PolicyArgs, PolicyVerb};
use crate::exit::Done;
use crate::print;

pub(crate) fn run(args: &PolicyArgs) -> anyhow::Result<Done> {
    match &args.verb {
        PolicyVerb::List(args) => manage::list(args),
        PolicyVerb::Show(args) => manage::show(args),
        PolicyVerb::Apply(args) => manage::apply(args),
        PolicyVerb::Remove(args) => manage::remove(args),
        PolicyVerb::Rollback(args) => manage::rollback(args),
        PolicyVerb::Plan(args) => plan::run(args),
        PolicyVerb::Check(args) => check::run(args),
        PolicyVerb::Test(args) => test::run(args),
        PolicyVerb::Explain(args) => explain::run(args),
        PolicyVerb::Fmt(args) => fmt::run(args),
        PolicyVerb::Import(args) => import::run(args),
        PolicyVerb::Schema => {
            print::out(&format!("{}\n", serde_json::to_string_pretty(&json_schema())?));
            Ok(Done::Ok)
        }
    }
}
