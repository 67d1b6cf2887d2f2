//! `toolgate audit list`.

use toolgate_audit::Row;
use toolgate_store::RowQuery;

use super::table;
use crate::args::{ListArgs, RowsOutput};
use crate::exit::Done;
use crate::print;

pub(super) fn run(args: &ListArgs) -> anyhow::Result<Done> {
    let (_, mut audit) = super::open(&args.data)?;
    let mut page = RowQuery {
        after: args.after,
        limit: usize::from(args.limit),
        grant: args.grant.clone(),
        tool: args.tool.clone(),
        decision: args.decision,
    };
    let rows = audit.rows(&page)?;
    let mut next = None;
    if let Some(last) = rows.last().filter(|_| rows.len() == page.limit) {
        (page.after, page.limit) = (last.seq, 1);
        next = (!audit.rows(&page)?.is_empty()).then_some(last.seq);
    }
    print::out(&text(args.output, &rows, next));
    Ok(Done::Ok)
}

/// Rows in any form; `next` is what to give as `--after` for more.
pub(super) fn text(output: RowsOutput, rows: &[Row], next: Option<u64>) -> String {
    match output {
        RowsOutput::Table => {
            std::iter::once(table::head()).chain(rows.iter().map(table::row)).collect()
        }
        RowsOutput::Jsonl => rows.iter().map(|row| row.to_json() + "\n").collect(),
        RowsOutput::Json => {
            let items: Vec<String> = rows.iter().map(Row::to_json).collect();
            let next = next.map_or_else(|| "null".to_owned(), |next| next.to_string());
            format!("{{\"items\":[{}],\"next\":{next}}}\n", items.join(","))
        }
    }
}
