//! The configuration: readable, in UTF-8, valid, with its secrets and policies.

use toolgate_clients::text_of;
use toolgate_config::{Config, Problem, render};
use toolgate_control::{FileState, Inputs, PolicyFiles, offline, trusted};
use toolgate_policy::Severity;
use toolgate_store::Snapshot;

use super::Check;
use crate::config_source::{Here, Source};

/// The checks, and the configuration if it can be used.
pub(super) fn configuration(source: &Source) -> (Vec<Check>, Option<Config>) {
    let Some(file) = source.file() else {
        let fine = Check::ok("configuration", "no toolgate.yaml: defaults apply");
        return (vec![fine], Some(Config::default()));
    };
    let shown = file.display();
    let bytes = match trusted::read(file) {
        Ok(bytes) => bytes,
        Err(why) => {
            return (vec![Check::fail("permissions", why.to_string()).fix(why_fix(&why))], None);
        }
    };
    if let Err(why) = text_of(bytes) {
        let fix = "save the file as UTF-8";
        return (vec![Check::fail("encoding", format!("`{shown}`: {why}")).fix(fix)], None);
    }
    let mut checks = vec![Check::ok("encoding", format!("`{shown}` is UTF-8"))];
    let Ok(config) = source.load_quietly() else {
        let first = match Config::load(file, &Here) {
            Err(problems) => first_error(&problems),
            Ok(_) => String::new(),
        };
        let message = format!("`{shown}` has errors, so `serve` refuses it: {first}");
        let fix = format!("toolgate config check {shown}");
        checks.push(Check::fail("configuration", message).fix(fix));
        return (checks, None);
    };
    checks.push(Check::ok("configuration", format!("`{shown}` is valid")));
    checks.push(secrets(source));
    checks.push(policies(&config));
    (checks, Some(config))
}

fn why_fix(why: &std::io::Error) -> String {
    match why.kind() {
        std::io::ErrorKind::NotFound => "correct --config or TOOLGATE_CONFIG".to_owned(),
        _ => "make the file yours alone: chmod 600 FILE, chown $USER FILE".to_owned(),
    }
}

fn first_error(problems: &[Problem]) -> String {
    let error = problems.iter().find(|problem| problem.severity == Severity::Error);
    error.map(first_line).unwrap_or_default()
}

/// The place and the problem; `config check` shows the rest.
fn first_line(problem: &Problem) -> String {
    problem.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Whether every reference leads to a secret here, and no secret is in the file itself.
fn secrets(source: &Source) -> Check {
    let Some(file) = source.file() else { return Check::ok("secrets", "there are none") };
    match Config::load(file, &Here) {
        Err(problems) => {
            let message = format!("secrets are missing here: {}", first_error(&problems));
            Check::warn("secrets", message)
                .fix("set them where `serve` starts; ignore this if it starts elsewhere")
        }
        Ok(loaded) => {
            let literal =
                loaded.warnings.iter().find(|it| it.message.contains("looks like a secret"));
            match literal {
                Some(problem) => Check::warn("secrets", first_line(problem))
                    .fix("write it as env:NAME or file:PATH"),
                None => Check::ok("secrets", "every reference leads to a secret"),
            }
        }
    }
}

/// Whether every policy of the file can be used.
fn policies(config: &Config) -> Check {
    let policies = PolicyFiles::read(config, None, &mut Inputs::default());
    let file = FileState { config: config.clone(), policies, local_policy: None };
    let servers: Vec<String> = config.servers.iter().map(|server| server.name.clone()).collect();
    // No grant has this label, but every policy is loaded and tested to look for it.
    match offline::grant(&file, &Snapshot::default(), &servers, "") {
        Ok(_) => Check::ok("policies", format!("{} in toolgate.yaml", config.policies.len())),
        Err(why) => {
            let first = why.to_string();
            let first = first.lines().next().unwrap_or_default().to_owned();
            Check::fail("policies", first).fix("toolgate policy check FILE")
        }
    }
}

/// Problems as people see them, for the bundle.
pub(super) fn problems(source: &Source) -> String {
    match source.file().map(|file| Config::load(file, &Here)) {
        Some(Err(problems)) => render(&problems),
        Some(Ok(loaded)) => render(&loaded.warnings),
        None => String::new(),
    }
}
