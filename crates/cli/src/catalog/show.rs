//! `toolgate catalog show`: one server, or one tool with everything that is known about it.

use anyhow::bail;
use serde_json::{Value, json};
use toolgate_catalog::{
    AttackPattern, Catalogue, CatalogueServer, CatalogueTool, RegistryServer, policy_key,
};
use toolgate_control::visible;

use super::import;
use crate::args::{CatalogShowArgs, OneOutput};
use crate::exit::Done;
use crate::print;
use crate::suggest::{did_you_mean, nearest};
use crate::table::{Column, Cut, render, terminal_width};

const ATTACKS: &str = "docs/attacks";

pub(super) fn run(args: &CatalogShowArgs) -> anyhow::Result<Done> {
    let catalogue = Catalogue::shipped();
    let Some(server) = catalogue.server(&args.server) else {
        let imported = import::imported(&args.data)?;
        return match imported.iter().find(|server| server.name == args.server) {
            Some(server) if args.tool.is_none() => Ok(show_imported(server, args.output)),
            Some(server) => bail!("`{}` is imported, its tools are not known", server.name),
            None => bail!("{}", unknown(catalogue, args)),
        };
    };
    let Some(name) = &args.tool else {
        print::out(&match args.output {
            OneOutput::Json => format!("{}\n", object(catalogue, server, &server.tools)),
            OneOutput::Table => of_server(server),
        });
        return Ok(Done::Ok);
    };
    let Some(tool) = server.tool(name) else {
        let names = server.tools.iter().map(|tool| tool.name.as_str());
        bail!("`{}` has no tool `{name}`{}", server.server, did_you_mean(name, names));
    };
    print::out(&match args.output {
        OneOutput::Json => format!("{}\n", object(catalogue, server, std::slice::from_ref(tool))),
        OneOutput::Table => of_tool(catalogue, server, tool),
    });
    Ok(Done::Ok)
}

fn unknown(catalogue: &Catalogue, args: &CatalogShowArgs) -> String {
    let names = catalogue.servers().iter().map(|server| server.server.as_str());
    match nearest(&args.server, names) {
        Some(near) => format!("`{}` is not in the catalogue; did you mean `{near}`?", args.server),
        None => {
            format!("`{}` is not in the catalogue; `toolgate scan` judges any server", args.server)
        }
    }
}

fn object(catalogue: &Catalogue, server: &CatalogueServer, tools: &[CatalogueTool]) -> Value {
    json!({
        "server": server.server,
        "version": server.version,
        "date": server.date,
        "registry": server.registry,
        "package": server.package,
        "summary": server.summary,
        "tools": tools.iter().map(|tool| item(catalogue, server, tool)).collect::<Vec<_>>(),
    })
}

/// As an item of `scan -o json`, with what the catalogue adds.
fn item(catalogue: &Catalogue, server: &CatalogueServer, tool: &CatalogueTool) -> Value {
    json!({
        "name": tool.name,
        "class": tool.class,
        "level": tool.level(),
        "confidence": tool.confidence,
        "signals": tool.signals,
        "labels": tool.labels,
        "parameters": tool.parameters,
        "required": tool.required,
        "arguments": tool.arguments,
        "recommended": tool.recommended(),
        "fingerprint": tool.fingerprint,
        "attacks": attacks(catalogue, server, tool),
        "summary": tool.summary,
        "what_could_go_wrong": tool.what_could_go_wrong(&server.server),
    })
}

/// The attack patterns of the definition, and shadowing if another server has the name too.
fn attacks(
    catalogue: &Catalogue,
    server: &CatalogueServer,
    tool: &CatalogueTool,
) -> Vec<AttackPattern> {
    let mut patterns = tool.attacks.clone();
    if !catalogue.also_in(server, tool).is_empty() {
        patterns.push(AttackPattern::Shadowing);
    }
    patterns
}

const COLUMNS: &[Column] = &[
    Column { head: "LEVEL", cut: Cut::Never },
    Column { head: "CLASS", cut: Cut::Never },
    Column { head: "TOOL", cut: Cut::Never },
    Column { head: "PARAMETERS", cut: Cut::Never },
    Column { head: "SUMMARY", cut: Cut::End },
];

fn of_server(server: &CatalogueServer) -> String {
    let row = |tool: &CatalogueTool| {
        vec![
            tool.level().as_str().to_owned(),
            tool.class.as_str().to_owned(),
            tool.name.clone(),
            format!("{} ({} required)", tool.parameters, tool.required),
            tool.summary.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = server.tools.iter().map(row).collect();
    let table = render(COLUMNS, &rows, terminal_width());
    let (name, command) = (&server.server, start(server));
    visible(&format!(
        "{}\n{}\n\n{table}\n\
         One tool:  toolgate catalog show {name} TOOL\n\
         Compare:   toolgate scan -- {command}\n",
        title(server),
        server.summary
    ))
}

fn title(server: &CatalogueServer) -> String {
    let CatalogueServer { server, registry, package, version, date, .. } = server;
    format!("{server} {version} ({registry} {package}), scanned {date}")
}

/// How people start this version.
fn start(server: &CatalogueServer) -> String {
    let CatalogueServer { package, version, .. } = server;
    match server.registry.as_str() {
        "npm" => format!("npx -y {package}@{version}"),
        _ => format!("uvx {package}@{version}"),
    }
}

fn of_tool(catalogue: &Catalogue, server: &CatalogueServer, tool: &CatalogueTool) -> String {
    let mut lines = vec![format!("{} of {}", tool.name, title(server)), tool.summary.clone()];
    lines.push(String::new());
    lines.extend(facts(tool));
    let wrong = tool.what_could_go_wrong(&server.server);
    lines.push(format!("\nWhat could go wrong\n  {wrong}"));
    let (key, rule) = (policy_key(&tool.name), tool.recommended().entry());
    lines.push(format!("\nRecommended rule\n  tools:\n    {key}: {rule}"));
    lines.push("\nAttack patterns".to_owned());
    let patterns = attacks(catalogue, server, tool);
    lines.extend(patterns.iter().map(|pattern| {
        let (slug, summary) = (pattern.slug(), pattern.summary());
        format!("  {slug:<26} {summary} ({ATTACKS}/{slug}.md)")
    }));
    let others = catalogue.also_in(server, tool);
    if !others.is_empty() {
        lines.push(format!("\nThe same name in: {}", others.join(", ")));
    }
    visible(&format!("{}\n", lines.join("\n")))
}

/// Class, reasons, parameters, labels and fingerprint, one per line.
fn facts(tool: &CatalogueTool) -> Vec<String> {
    let or_none = |names: Vec<&str>| {
        if names.is_empty() { "-".to_owned() } else { names.join(", ") }
    };
    let (class, level) = (tool.class.as_str(), tool.level().as_str());
    let mut lines =
        vec![format!("class        {class} (level {level}, confidence {:.2})", tool.confidence)];
    for (at, signal) in tool.signals.iter().enumerate() {
        let head = if at == 0 { "why" } else { "" };
        lines.push(format!("{head:<12} {} ({})", signal.what, signal.place));
    }
    let names = or_none(tool.arguments.iter().map(String::as_str).collect());
    lines.push(format!("parameters   {} ({} required): {names}", tool.parameters, tool.required));
    lines.push(format!("data         {}", or_none(tool.labels.names().collect())));
    lines.push(format!("fingerprint  {}", tool.fingerprint));
    lines
}

fn show_imported(server: &RegistryServer, output: OneOutput) -> Done {
    if output == OneOutput::Json {
        let RegistryServer { name, version, description, packages, remotes } = server;
        print::out(&format!(
            "{}\n",
            json!({
                "server": name, "version": version, "date": null, "summary": description,
                "packages": packages, "remotes": remotes, "tools": [],
            })
        ));
        return Done::Ok;
    }
    let RegistryServer { name, version, description, .. } = server;
    let mut lines =
        vec![format!("{name} {version} (imported)"), description.clone(), String::new()];
    lines.extend(server.packages.iter().map(|package| {
        let at = package.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        format!("{} {}{at}", package.registry, package.identifier)
    }));
    let remotes = server.remotes.iter();
    lines.extend(remotes.map(|remote| format!("{} {}", remote.transport, remote.url)));
    lines.push("\nIts tools are not known. `toolgate scan` lists and judges them.".to_owned());
    print::out(&visible(&format!("{}\n", lines.join("\n"))));
    Done::Ok
}
