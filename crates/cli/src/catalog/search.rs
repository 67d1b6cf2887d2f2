//! `toolgate catalog search`: servers and tools by words.

use serde_json::{Value, json};
use toolgate_catalog::{Catalogue, CatalogueServer, CatalogueTool, RegistryServer};

use super::import;
use crate::args::{CatalogSearchArgs, ListOutput};
use crate::exit::Done;
use crate::{listing, print};

const COLUMNS: &[(&str, &str)] = &[
    ("NAME", "id"),
    ("VERSION", "version"),
    ("SOURCE", "source"),
    ("TOOLS", "tools"),
    ("LEVEL", "level"),
    ("SUMMARY", "summary"),
];

pub(super) fn run(args: &CatalogSearchArgs) -> anyhow::Result<Done> {
    let mut items = Vec::new();
    for found in Catalogue::shipped().search(&args.words) {
        if found.tools.is_empty() {
            items.push(of_server(found.server));
        }
        items.extend(found.tools.iter().map(|tool| of_tool(found.server, tool)));
    }
    let imported = import::imported(&args.data)?;
    items.extend(imported.iter().filter(|server| matches(server, &args.words)).map(of_registry));
    if items.is_empty() && args.output == ListOutput::Table {
        print::done("nothing found; `toolgate catalog search` lists all servers");
        return Ok(Done::Ok);
    }
    listing::list(args.output, &items, COLUMNS);
    Ok(Done::Ok)
}

fn of_server(server: &CatalogueServer) -> Value {
    let highest = server.tools.iter().map(CatalogueTool::level).max();
    json!({
        "id": server.server,
        "server": server.server,
        "version": server.version,
        "date": server.date,
        "source": server.registry,
        "package": server.package,
        "tools": server.tools.len(),
        "level": highest.map(toolgate_catalog::Level::as_str),
        "summary": server.summary,
    })
}

fn of_tool(server: &CatalogueServer, tool: &CatalogueTool) -> Value {
    json!({
        "id": format!("{} {}", server.server, tool.name),
        "server": server.server,
        "tool": tool.name,
        "version": server.version,
        "date": server.date,
        "source": server.registry,
        "package": server.package,
        "class": tool.class.as_str(),
        "level": tool.level().as_str(),
        "summary": tool.summary,
    })
}

fn of_registry(server: &RegistryServer) -> Value {
    json!({
        "id": server.name,
        "server": server.name,
        "version": server.version,
        "source": "imported",
        "packages": server.packages,
        "remotes": server.remotes,
        "summary": server.description,
    })
}

fn matches(server: &RegistryServer, words: &[String]) -> bool {
    let packages: Vec<&str> =
        server.packages.iter().map(|package| package.identifier.as_str()).collect();
    let text = format!("{} {} {}", server.name, server.description, packages.join(" "));
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(&word.to_lowercase()))
}
