//! `toolgate audit verify`.

use anyhow::Context as _;
use toolgate_audit::{Bad, Found};

use crate::args::{OneOutput, VerifyArgs};
use crate::exit::Done;
use crate::print;
use crate::serve::read_checkpoints;

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<Done> {
    let (folder, mut audit) = super::open(&args.data)?;
    let elsewhere = args.checkpoints.as_deref().map(read_checkpoints).transpose()?;
    let report = toolgate_store_sqlite::verify(&folder, elsewhere.unwrap_or_default())
        .with_context(|| format!("the audit in `{}` cannot be read", folder.display()))?;
    match (args.output, report.first_bad) {
        (OneOutput::Json, bad) => {
            let (ok, first_bad) = (bad.is_none(), bad.map(|bad| bad.seq));
            let rows = report.rows;
            let found = serde_json::json!({"ok": ok, "rows": rows, "first_bad": first_bad});
            print::out(&format!("{found}\n"));
        }
        (OneOutput::Table, None) => {
            let checked = audit.checkpoints_until(report.head.seq)?;
            let (rows, hash) = (report.rows, report.head.hash);
            print::out(&format!(
                "the audit is whole\nrows         {rows}\ncheckpoints  {checked}\nhead         {hash}\n"
            ));
        }
        (OneOutput::Table, Some(_)) => {}
    }
    let Some(bad) = report.first_bad else { return Ok(Done::Ok) };
    print::err(&format!("the audit is broken at row {}: {}\n", bad.seq, words(bad)));
    Ok(Done::Finding)
}

fn words(bad: Bad) -> &'static str {
    match bad.found {
        Found::Gap => "it is missing; another row stands in its place",
        Found::Undecodable => "it cannot be read as a row",
        Found::Hash => "its hash does not fit its content or the rows before it",
        Found::Checkpoint => "a signed checkpoint says that another row stood here",
        Found::Signature => "its checkpoint is not signed by the key of this folder",
        Found::Truncated => "the audit ends before it, and a checkpoint says that it went on",
    }
}
