//! `toolgate config check|schema`.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_admin::two_seconds;
use toolgate_config::{Config, PolicySource, render, schema};
use toolgate_policy::{Known, Policy, Severity};

use crate::args::{CheckOutput, ConfigArgs, ConfigVerb};
use crate::exit::Done;
use crate::policy::{Source, visible};
use crate::print;
use crate::serve::Here;

pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<Done> {
    match &args.verb {
        ConfigVerb::Check { file, output } => check(file, *output),
        ConfigVerb::Schema => {
            print::out(&format!("{}\n", serde_json::to_string_pretty(&schema())?));
            Ok(Done::Ok)
        }
    }
}

fn check(file: &Path, output: CheckOutput) -> anyhow::Result<Done> {
    let (mut valid, problems, policies) = match Config::load(file, &Here) {
        Ok(loaded) => (true, loaded.warnings, policies(file, &loaded.config)),
        Err(problems) => (false, problems, Vec::new()),
    };
    valid &= policies.iter().all(|found| !found.is_error);
    let count = problems.len() + policies.len();
    let unread = problems.iter().any(|problem| problem.code == "TG1001");
    match output {
        CheckOutput::Json => {
            let of_file = problems.iter().map(serde_json::to_value);
            let mut all = of_file.collect::<Result<Vec<Value>, _>>()?;
            all.extend(policies.into_iter().map(|found| found.json));
            let file = file.display().to_string();
            let judged = json!({"file": file, "valid": valid, "problems": all});
            print::out(&format!("{judged}\n"));
        }
        CheckOutput::Text => {
            print::err(&render(&problems));
            let texts: Vec<_> = policies.into_iter().map(|found| found.text).collect();
            print::err(&visible(&texts.join("\n")));
            if !unread {
                print::err(&summary(file, valid, count));
            }
        }
    }
    anyhow::ensure!(!unread, "there is nothing to check");
    Ok(if valid { Done::Ok } else { Done::Finding })
}

/// Something wrong or doubtful with a policy that the file has or names.
struct Found {
    is_error: bool,
    text: String,
    json: Value,
}

/// What keeps policies from being in force, or is doubtful in them: the file could not be used.
fn policies(file: &Path, config: &Config) -> Vec<Found> {
    let servers = config.servers.iter().map(|server| server.name.clone()).collect();
    let known = Known { servers, tools: None };
    let mut found = Vec::new();
    for policy in &config.policies {
        let (shown, text) = match &policy.source {
            PolicySource::Inline(text) => (file.display().to_string(), text.clone()),
            PolicySource::File(path) => match Source::read(path) {
                Ok(source) => (source.file, source.text),
                Err(error) => {
                    let text = format!("policy `{}`: {error:#}\n", policy.name);
                    let json = json!({
                        "code": "TG1015", "severity": "error",
                        "file": path.display().to_string(), "line": 0, "column": 0,
                        "message": format!("{error:#}"),
                        "hint": "a relative path begins at the folder of the configuration file",
                    });
                    found.push(Found { is_error: true, text, json });
                    continue;
                }
            },
        };
        let loaded = Policy::load(&policy.name, &text, &known);
        found.extend(loaded.problems.iter().map(|problem| {
            let mut json = json!(problem);
            if let Some(members) = json.as_object_mut() {
                members.insert("file".to_owned(), shown.as_str().into());
            }
            let is_error = problem.severity == Severity::Error;
            Found { is_error, text: problem.render(&shown, &text), json }
        }));
        let tested = loaded.policy.map(|policy| policy.run_tests_while(&two_seconds()));
        let results = tested.map(|report| report.results).unwrap_or_default();
        found.extend(results.into_iter().filter_map(|result| {
            let message = format!("test `{}` fails: {}", result.name, result.failure?);
            let text = format!("{shown}:{}: error: {message}\n", result.line);
            let json = json!({
                "code": "test_failed", "severity": "error", "file": shown,
                "line": result.line, "column": 1, "message": message,
                "hint": "mend the rule, or the test",
            });
            Some(Found { is_error: true, text, json })
        }));
    }
    found
}

fn summary(file: &Path, valid: bool, count: usize) -> String {
    let file = file.display();
    match (valid, count) {
        (true, 0) => format!("{file} is valid\n"),
        (true, 1) => format!("\n{file} is valid, with 1 warning\n"),
        (true, count) => format!("\n{file} is valid, with {count} warnings\n"),
        (false, 1) => format!("\n{file} is not valid: 1 problem\n"),
        (false, count) => format!("\n{file} is not valid: {count} problems\n"),
    }
}
