//! `toolgate audit tail`.

use std::time::Duration;

use toolgate_store::RowQuery;
use toolgate_store_sqlite::AuditReader;

use super::list;
use super::table::RowTable;
use crate::args::{RowsOutput, TailArgs};
use crate::exit::{Done, Usage};
use crate::print;
use crate::table::terminal_width;

const LAST: u64 = 20;
const POLL: Duration = Duration::from_millis(200);

pub(super) fn run(args: &TailArgs) -> anyhow::Result<Done> {
    if args.follow && args.output == RowsOutput::Json {
        let why = "`--follow` does not end, so it cannot print one JSON object; use -o jsonl";
        return Err(Usage(why.to_owned()).into());
    }
    let (_, mut audit) = super::open(&args.data)?;
    let after = audit.last()?.saturating_sub(LAST);
    let rows = audit.rows(&RowQuery { after, limit: 1_000, ..RowQuery::default() })?;
    let last = rows.last().map_or(after, |row| row.seq);
    if !print::out_if_read(&list::text(args.output, &rows, None)) || !args.follow {
        return Ok(Done::Ok);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let table = RowTable::new(&rows, terminal_width());
    runtime.block_on(follow(&mut audit, last, args.output, &table))
}

/// Ends when interrupted, or when the output is closed.
async fn follow(
    audit: &mut AuditReader,
    mut last: u64,
    output: RowsOutput,
    table: &RowTable,
) -> anyhow::Result<Done> {
    let mut poll = tokio::time::interval(POLL);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            done = &mut interrupted => return Ok(done.map(|()| Done::Ok)?),
            _ = poll.tick() => {}
        }
        let rows = audit.rows(&RowQuery { after: last, limit: 1_000, ..RowQuery::default() })?;
        last = rows.last().map_or(last, |row| row.seq);
        let text = match output {
            RowsOutput::Table => rows.iter().map(|row| table.line(row)).collect(),
            _ => list::text(RowsOutput::Jsonl, &rows, None),
        };
        if !rows.is_empty() && !print::out_if_read(&text) {
            return Ok(Done::Ok);
        }
    }
}
