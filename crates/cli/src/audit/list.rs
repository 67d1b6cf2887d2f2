//! `toolgate audit list`.

use jiff::Timestamp;
use toolgate_audit::Row;
use toolgate_store::RowQuery;

use super::table::RowTable;
use crate::args::{ListArgs, RowsOutput};
use crate::exit::Done;
use crate::print;
use crate::table::terminal_width;

pub(super) fn run(args: &ListArgs) -> anyhow::Result<Done> {
    let (_, mut audit) = super::open(&args.data)?;
    let mut query = RowQuery {
        after: args.after.unwrap_or(0),
        before: args.before,
        newest_first: args.after.is_none(),
        limit: usize::from(args.limit),
        ..args.filter.query(Timestamp::now())?
    };
    let rows = audit.rows(&query)?;
    let last = rows.last().map(|row| row.seq).filter(|_| rows.len() == query.limit);
    let mut more = 0;
    if let Some(last) = last {
        if query.newest_first {
            query.before = Some(last);
        } else {
            query.after = last;
        }
        more = audit.count_rows(&query)?;
    }
    let next = last.filter(|_| more > 0);
    print::out(&text(args.output, &rows, next));
    if let (Some(next), RowsOutput::Table) = (next, args.output) {
        let flag = if query.newest_first { "--before" } else { "--after" };
        let rows = if more == 1 { "row" } else { "rows" };
        print::err(&format!("{more} more {rows}; continue with `{flag} {next}`\n"));
    }
    Ok(Done::Ok)
}

/// Rows in any format; `next` continues the list.
pub(super) fn text(output: RowsOutput, rows: &[Row], next: Option<u64>) -> String {
    match output {
        RowsOutput::Table => {
            let table = RowTable::new(rows, terminal_width());
            std::iter::once(table.head()).chain(rows.iter().map(|row| table.line(row))).collect()
        }
        RowsOutput::Jsonl => rows.iter().map(|row| row.to_json() + "\n").collect(),
        RowsOutput::Json => {
            let items: Vec<String> = rows.iter().map(Row::to_json).collect();
            let next = next.map_or_else(|| "null".to_owned(), |next| next.to_string());
            format!("{{\"items\":[{}],\"next\":{next}}}\n", items.join(","))
        }
    }
}
