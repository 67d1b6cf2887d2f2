//! Compares a scan with an earlier one.

use std::collections::HashMap;

use serde_json::Value;
use toolgate_catalog::{Definition, classify};

use super::report::{Report, Scanned, ScannedTool};

/// Leaves only the tools that are new, changed or gone since `before`, a result of `scan -o json`.
pub(super) fn keep_changes(report: &mut Report, before: &Value) {
    for server in &mut report.servers {
        let old = tools_before(before, &server.name, report.many);
        compare(server, &old);
    }
    if report.many {
        report.servers.extend(gone(&report.servers, before));
    }
    report.is_compared = true;
}

/// The servers that were scanned before and not now.
fn gone(now: &[Scanned], before: &Value) -> Vec<Scanned> {
    let servers = before.get("servers").and_then(Value::as_array).into_iter().flatten();
    let names = servers.filter_map(|server| server.get("server").and_then(Value::as_str));
    let gone = names.filter(|name| !now.iter().any(|server| server.name == *name));
    let scanned = |name: &str| {
        let mut server = Scanned { name: name.to_owned(), tools: Ok(Vec::new()), catalogue: None };
        compare(&mut server, &tools_before(before, name, true));
        server
    };
    gone.map(scanned).collect()
}

fn tools_before<'v>(before: &'v Value, server: &str, many: bool) -> HashMap<&'v str, &'v Value> {
    let of = |object: &'v Value| object.get("tools").and_then(Value::as_array);
    let listed = match before.get("servers").and_then(Value::as_array) {
        Some(servers) => {
            let is_it =
                |object: &&Value| object.get("server").and_then(Value::as_str) == Some(server);
            servers.iter().find(is_it).and_then(of)
        }
        // Of a single server the name does not matter: a command may have been spelled otherwise.
        None => of(before).filter(|_| !many),
    };
    let named = |tool: &'v Value| Some((tool.get("name")?.as_str()?, tool));
    listed.into_iter().flatten().filter_map(named).collect()
}

fn compare(server: &mut Scanned, old: &HashMap<&str, &Value>) {
    let Ok(tools) = &mut server.tools else { return };
    let gone: Vec<&&str> =
        old.keys().filter(|name| !tools.iter().any(|tool| tool.name == ***name)).collect();
    let mut gone: Vec<ScannedTool> = gone.into_iter().map(|name| removed(name)).collect();
    for tool in tools.iter_mut() {
        tool.change = match old.get(tool.name.as_str()) {
            None => Some("added"),
            Some(before) if differs(tool, before) => Some("changed"),
            Some(_) => None,
        };
    }
    tools.retain(|tool| tool.change.is_some());
    gone.sort_by(|a, b| a.name.cmp(&b.name));
    tools.append(&mut gone);
}

fn differs(tool: &ScannedTool, before: &Value) -> bool {
    let text = |key: &str| before.get(key).and_then(Value::as_str);
    let class = text("class") != Some(tool.assessment.class.as_str());
    class || tool.fingerprint.as_deref() != text("fingerprint")
}

/// A tool that is gone: only its name is known.
fn removed(name: &str) -> ScannedTool {
    ScannedTool {
        name: name.to_owned(),
        description: None,
        assessment: classify(&Definition::named(name)),
        parameters: 0,
        required: 0,
        arguments: Vec::new(),
        recommended: toolgate_catalog::Recommended::default(),
        attacks: Vec::new(),
        fingerprint: None,
        hidden_text: Vec::new(),
        change: Some("removed"),
    }
}
