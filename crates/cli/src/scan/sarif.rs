//! The result of a scan as SARIF 2.1.0: one result per tool that does more than read.

use serde_json::{Value, json};
use toolgate_catalog::{Class, Level};

use super::report::{Report, ScannedTool};
use crate::sarif;

pub(super) fn log(report: &Report) -> Value {
    let tools = report.tools();
    let results = tools
        .iter()
        .filter(|(_, tool)| tool.level() > Level::Low || tool.change.is_some())
        .map(|(server, tool)| result(server, tool));
    sarif::log(&Class::ALL.map(rule), &results.collect::<Vec<_>>())
}

fn rule(class: Class) -> Value {
    json!({
        "id": id(class),
        "shortDescription": { "text": format!("tool of class {}", class.as_str()) },
        "defaultConfiguration": { "level": severity(class.level()) },
    })
}

fn result(server: &str, tool: &ScannedTool) -> Value {
    let class = tool.assessment.class;
    let change = tool.change.map(|change| format!("{change}: ")).unwrap_or_default();
    let text = format!("{change}{} of {server}: {}", tool.name, tool.reason());
    json!({
        "ruleId": id(class),
        "ruleIndex": Class::ALL.iter().position(|other| *other == class),
        "level": severity(tool.level()),
        "message": { "text": text },
        "locations": [{ "logicalLocations": [{
            "name": tool.name,
            "fullyQualifiedName": format!("{server}/{}", tool.name),
            "kind": "function",
        }] }],
        "partialFingerprints": { "definition": tool.fingerprint },
    })
}

fn id(class: Class) -> String {
    format!("tool-{}", class.as_str())
}

fn severity(level: Level) -> &'static str {
    match level {
        Level::Critical => "error",
        Level::High => "warning",
        Level::Medium | Level::Low => "note",
    }
}
