//! `toolgate tool show --diff`: the newest definition of a tool beside the approved one.

use serde_json::{Value, json};
use toolgate_catalog::{FieldChange, Piece, diff, draw, hidden_text};
use toolgate_control::visible;

use crate::admin_client::AdminClient;
use crate::args::{AdminArgs, OneOutput, ToolShowArgs};
use crate::exit::Done;
use crate::listing::text;
use crate::print;

pub(super) fn run(args: &ToolShowArgs) -> anyhow::Result<Done> {
    let path = super::path_of(&args.tool)?;
    let agent = &args.agent;
    let admin = AdminArgs { admin: agent.admin.clone(), data: agent.data.clone() };
    let mut tool = AdminClient::new(&admin)?.get(&path)?;
    let changes = changes(&tool);
    match args.output {
        OneOutput::Json => {
            if let Some(tool) = tool.as_object_mut() {
                tool.insert("diff".to_owned(), json!(changes));
            }
            print::out(&format!("{tool}\n"));
        }
        OneOutput::Table => print::out(&for_people(&args.tool, &tool, changes.as_deref())),
    }
    Ok(if changes.is_some_and(|changes| changes.is_empty()) { Done::Ok } else { Done::Finding })
}

/// What differs; `None` if there is nothing to compare with. A tool that was never approved is
/// compared with nothing.
fn changes(tool: &Value) -> Option<Vec<FieldChange>> {
    let new = text(tool, "source")?;
    let old = match (text(tool, "approved_source"), text(tool, "approved")) {
        (Some(old), _) => old,
        (None, None) => "{}",
        (None, Some(_)) => return None,
    };
    diff(old, new).ok()
}

fn for_people(named: &str, tool: &Value, changes: Option<&[FieldChange]>) -> String {
    let field = |name: &str| draw(text(tool, name).unwrap_or("-")).into_owned();
    let mut out = vec![format!("{}: {}\n", visible(named), field("state"))];
    if text(tool, "reason").is_some() {
        out.push(format!("{}\n", field("reason")));
    }
    out.push(format!("approved fingerprint: {}\n", field("approved")));
    out.push(format!("newest fingerprint:   {}\n\n", field("fingerprint")));
    match changes {
        None => out.push("The definitions cannot be compared: one of them was not kept.\n".into()),
        Some([]) => out.push("The newest definition is the approved one.\n".into()),
        Some(changes) => {
            for change in changes {
                let pieces: String = change.pieces.iter().map(piece).collect();
                out.push(format!("{}: {pieces}\n", change.field));
            }
        }
    }
    for found in text(tool, "source").map(hidden_text).unwrap_or_default() {
        out.push(format!("hidden text: {} in `{}`: {}\n", found.kind, found.field, found.shown));
    }
    if text(tool, "state") == Some("quarantined") {
        let fingerprint = field("fingerprint");
        out.push(format!(
            "\nTo approve it: toolgate tool approve {} --fingerprint {fingerprint}\n",
            visible(named)
        ));
    }
    visible(&out.concat())
}

fn piece(piece: &Piece) -> String {
    match piece {
        Piece::Same(text) => one_line(text),
        Piece::Removed(text) => format!("[-{}-]", one_line(text)),
        Piece::Added(text) => format!("{{+{}+}}", one_line(text)),
    }
}

/// A text of the definition must not look like a line of this output.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}
