//! `toolgate audit verify`.

use anyhow::Context as _;
use toolgate_audit::{BadRow, Defect};

use super::key::{self, Given};
use crate::args::{OneOutput, VerifyArgs};
use crate::exit::Done;
use crate::print;
use crate::serve::read_checkpoints;
use crate::waiting::Waiting;

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<Done> {
    let (folder, mut audit) = super::open(&args.data)?;
    let elsewhere = args.checkpoints.as_deref().map(read_checkpoints).transpose()?;
    let unreadable = || format!("cannot read the audit in `{}`", folder.display());
    let own = toolgate_store_sqlite::public_key(&folder);
    let given = args.key.as_deref().map(key::read).transpose()?;
    let elsewhere = elsewhere.unwrap_or_default();
    let waiting = Waiting::on_terminal("verifying");
    let (report, fingerprint) = match given {
        None => {
            let report = toolgate_store_sqlite::verify(&folder, elsewhere);
            (report.with_context(unreadable)?, own.with_context(unreadable)?.fingerprint())
        }
        Some(Given::Key(key)) => {
            let report = toolgate_store_sqlite::verify_by(&key, &folder, elsewhere);
            (report.with_context(unreadable)?, key.fingerprint())
        }
        Some(Given::Fingerprint(wanted)) => {
            let own = own.with_context(unreadable)?;
            let report = toolgate_store_sqlite::verify_by(&own, &folder, elsewhere);
            let mut report = report.with_context(unreadable)?;
            if own.fingerprint() != wanted {
                report.first_bad = Some(BadRow { seq: 1, found: Defect::Signature });
            }
            (report, wanted)
        }
    };
    drop(waiting);
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
            let unsigned = rows.saturating_sub(report.signed);
            print::out(&format!(
                "the audit is intact\nrows         {rows}\ncheckpoints  {checked}\nunsigned     {unsigned}\nhead         {hash}\nkey          {fingerprint}\n"
            ));
        }
        (OneOutput::Table, Some(_)) => {}
    }
    let Some(bad) = report.first_bad else { return Ok(Done::Ok) };
    let why = description(bad);
    print::err(&format!("the audit is broken at row {}: {why}\nkey: {fingerprint}\n", bad.seq));
    Ok(Done::Finding)
}

fn description(bad: BadRow) -> &'static str {
    match bad.found {
        Defect::Gap => "it is missing; another row has its position",
        Defect::Undecodable => "it cannot be decoded",
        Defect::Hash => "its hash does not match its content or the rows before it",
        Defect::Checkpoint => "a signed checkpoint has another hash for this row",
        Defect::Signature => "its checkpoint is not signed by this key",
        Defect::Truncated => "the audit ends before it, but a checkpoint covers later rows",
    }
}
