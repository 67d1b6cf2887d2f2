//! `toolgate tool list`.

use super::definition;
use crate::args::{RowsOutput, ToolListArgs};
use crate::exit::Done;
use crate::print;
use crate::table::terminal_width;

pub(super) fn run(args: &ToolListArgs) -> anyhow::Result<Done> {
    let tools = super::all(&args.agent)?;
    let text = match args.output {
        RowsOutput::Json => {
            let items: Vec<&str> = tools.iter().map(|tool| tool.get()).collect();
            format!("{{\"items\":[{}],\"next\":null}}\n", items.join(","))
        }
        RowsOutput::Jsonl => tools.iter().map(|tool| definition::one_line(tool) + "\n").collect(),
        RowsOutput::Table => {
            let tools: Vec<_> =
                tools.iter().map(|tool| super::read(tool)).collect::<Result<_, _>>()?;
            definition::table(&tools, terminal_width())
        }
    };
    print::out(&text);
    Ok(Done::Ok)
}
