//! `toolgate tool show`.

use anyhow::bail;

use super::definition;
use crate::args::{OneOutput, ToolShowArgs};
use crate::exit::Done;
use crate::print;
use crate::suggest::nearest;

pub(super) fn run(args: &ToolShowArgs) -> anyhow::Result<Done> {
    let tools = super::all(&args.agent)?;
    let mut names = Vec::with_capacity(tools.len());
    for raw in &tools {
        let tool = super::read(raw)?;
        if super::name(&tool) == args.tool {
            print::out(&match args.output {
                OneOutput::Json => format!("{}\n", raw.get()),
                OneOutput::Table => definition::details(&tool),
            });
            return Ok(Done::Ok);
        }
        names.push(super::name(&tool).to_owned());
    }
    let wanted = &args.tool;
    match nearest(wanted, names.iter().map(String::as_str)) {
        Some(near) => bail!("there is no tool `{wanted}`; did you mean `{near}`?"),
        None => {
            bail!("there is no tool `{wanted}` among the {} that `tool list` shows", names.len())
        }
    }
}
