//! `toolgate audit export`: every selected row, ascending, as JSON Lines or CSV.

use jiff::Timestamp;
use serde_json::{Map, Value};
use toolgate_audit::{ROW_FIELDS, Row};
use toolgate_store::RowQuery;

use crate::args::{ExportArgs, ExportOutput};
use crate::exit::{Done, Usage};
use crate::policy::{number, replace};
use crate::print;

/// Rows of one read.
const PAGE: usize = 1_000;

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Done> {
    let format = match (args.output, args.excel) {
        (ExportOutput::Jsonl, true) => {
            return Err(Usage("`--excel` needs `-o csv`".to_owned()).into());
        }
        (ExportOutput::Jsonl, false) => Format::Jsonl,
        (ExportOutput::Csv, excel) => Format::Csv { excel },
    };
    let (_, mut audit) = super::open(&args.data)?;
    let mut query = RowQuery { limit: PAGE, ..args.filter.query(Timestamp::now())? };
    let mut text = format.head();
    let mut count = 0;
    loop {
        let rows = audit.rows(&query)?;
        count += rows.len();
        for row in &rows {
            text.push_str(&format.line(row)?);
        }
        let last = rows.last().map(|row| row.seq).filter(|_| rows.len() == PAGE);
        if args.write.is_none() {
            if !print::out_if_read(&text) {
                return Ok(Done::Ok);
            }
            text.clear();
        }
        match last {
            Some(last) => query.after = last,
            None => break,
        }
    }
    if let Some(path) = &args.write {
        replace(path, &text)?;
        print::err(&format!("wrote {} to `{}`\n", number(count, "row"), path.display()));
    }
    Ok(Done::Ok)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Jsonl,
    /// RFC 4180; `excel` adds a byte order mark and escapes cells that Excel reads as formulas.
    Csv {
        excel: bool,
    },
}

impl Format {
    fn head(self) -> String {
        match self {
            Self::Jsonl => String::new(),
            Self::Csv { excel } => {
                let mark = if excel { "\u{feff}" } else { "" };
                format!("{mark}{}\r\n", ROW_FIELDS.join(","))
            }
        }
    }

    fn line(self, row: &Row) -> serde_json::Result<String> {
        let json = row.to_json();
        let Self::Csv { excel } = self else { return Ok(json + "\n") };
        let members: Map<String, Value> = serde_json::from_str(&json)?;
        Ok(csv(&members, excel))
    }
}

fn csv(members: &Map<String, Value>, excel: bool) -> String {
    let cell = |field: &&str| {
        let text = match members.get(*field) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) if excel => without_formula(text),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        quoted(&text)
    };
    let cells: Vec<String> = ROW_FIELDS.iter().map(cell).collect();
    format!("{}\r\n", cells.join(","))
}

/// Text that Excel does not evaluate: an apostrophe before a character that starts a formula.
fn without_formula(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_escaped() {
        let row = |tool: &str| json!({"tool": tool}).as_object().unwrap().clone();
        let cell = |tool: &str, excel| {
            let line = csv(&row(tool), excel);
            line.trim_end_matches("\r\n").trim_matches(',').to_owned()
        };
        for (tool, plain, excel) in [
            ("echo", "echo", "echo"),
            ("=1+1", "=1+1", "'=1+1"),
            ("+x", "+x", "'+x"),
            ("-x", "-x", "'-x"),
            ("@SUM(A1)", "@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "\t=1", "'\t=1"),
            ("\r=1", "\"\r=1\"", "\"'\r=1\""),
            ("a,\"b\"", "\"a,\"\"b\"\"\"", "\"a,\"\"b\"\"\""),
            ("Привет", "Привет", "Привет"),
        ] {
            assert_eq!((cell(tool, false), cell(tool, true)), (plain.to_owned(), excel.to_owned()));
        }
    }

    #[test]
    fn values_keep_their_json() {
        let row = json!({"seq": 7, "counters": [{"a": 1}], "rule": null});
        let line = csv(row.as_object().unwrap(), false);
        assert!(line.starts_with("7,,"), "{line}");
        assert!(line.contains(r#""[{""a"":1}]""#), "{line}");
        assert_eq!(line.matches(',').count(), ROW_FIELDS.len() - 1);
    }
}
