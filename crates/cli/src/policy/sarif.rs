//! Problems as SARIF 2.1.0, which code scanning services show beside the lines of a change.

use serde_json::{Value, json};
use toolgate_policy::{Code, Problem, Severity};

use super::check::Checked;
use crate::sarif;

/// The whole log: one run, every code as a rule, every problem as a result.
pub(super) fn log(checked: &[Checked]) -> Value {
    let results =
        checked.iter().flat_map(|one| one.problems.iter().map(|it| result(&one.source.file, it)));
    let rules: Vec<Value> = Code::ALL.iter().copied().map(rule).collect();
    sarif::log(&rules, &results.collect::<Vec<_>>())
}

fn rule(code: Code) -> Value {
    json!({
        "id": code.as_str(),
        "shortDescription": { "text": code.title() },
        "fullDescription": { "text": code.advice() },
        "defaultConfiguration": { "level": level(code.severity()) },
    })
}

fn result(file: &str, problem: &Problem) -> Value {
    json!({
        "ruleId": problem.code.as_str(),
        "ruleIndex": Code::ALL.iter().position(|code| *code == problem.code),
        "level": level(problem.severity),
        "message": { "text": format!("{}; {}", problem.message, problem.hint) },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(file) },
            "region": { "startLine": problem.line, "startColumn": problem.column },
        } }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// A path as a URI reference: everything but plain characters is percent-encoded.
fn uri(file: &str) -> String {
    let encoded = file.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    let scheme = if file.starts_with('/') { "file://" } else { "" };
    std::iter::once(scheme.to_owned()).chain(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_become_uri_references() {
        for (path, expected) in [
            ("policies/a.yaml", "policies/a.yaml"),
            ("/etc/a b#1?.yaml", "file:///etc/a%20b%231%3F.yaml"),
            ("c:x", "c%3Ax"),
            ("правила.yaml", "%D0%BF%D1%80%D0%B0%D0%B2%D0%B8%D0%BB%D0%B0.yaml"),
        ] {
            assert_eq!(uri(path), expected, "{path}");
        }
    }
}
