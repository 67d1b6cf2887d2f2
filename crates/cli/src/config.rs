//! `toolgate config check|schema`.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_config::{Config, PolicySource, Syslog, schema};
use toolgate_control::{
    Finding, Inputs, PolicyError, PolicyFiles, policy_check, unsafe_start, visible,
};
use toolgate_os::datagram;
use toolgate_policy::Known;
use toolgate_store_sqlite::ReadOnlyStore;

use crate::args::{CheckOutput, ConfigArgs, ConfigVerb};
use crate::config_source::Here;
use crate::data::data_path;
use crate::exit::Done;
use crate::print;

pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<Done> {
    match &args.verb {
        ConfigVerb::Check { file, config, output } => {
            let variable = std::env::var_os("TOOLGATE_CONFIG").filter(|file| !file.is_empty());
            let file = file.as_deref().or(config.as_deref()).or(variable.as_deref().map(Path::new));
            let here = Path::new("toolgate.yaml");
            if file.is_none() && !here.exists() {
                anyhow::bail!(
                    "there is no toolgate.yaml in this folder (`toolgate serve` needs none); \
                     name the file to check: `toolgate config check FILE`"
                );
            }
            check(file.unwrap_or(here), *output)
        }
        ConfigVerb::Schema => {
            print::out(&format!("{}\n", serde_json::to_string_pretty(&schema())?));
            Ok(Done::Ok)
        }
    }
}

fn check(file: &Path, output: CheckOutput) -> anyhow::Result<Done> {
    let (mut valid, problems, policies) = match Config::load(file, &Here) {
        Ok(loaded) => {
            let mut problems = unsafe_start::problems(&loaded, has_stored_grants(&loaded.config));
            let mut found = places(file, &loaded.config);
            found.extend(policies(file, &loaded.config));
            let valid = problems.is_empty();
            problems.extend(loaded.warnings);
            problems.sort_by_key(|problem| (problem.line, problem.column));
            (valid, problems, found)
        }
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
            print::problems(&problems);
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

/// Whether the data folder has a grant that is not revoked, which makes a listener for agents safe.
fn has_stored_grants(config: &Config) -> bool {
    let folder = data_path(None, config).ok();
    let store = folder.and_then(|folder| ReadOnlyStore::open(&folder).ok().flatten());
    let stored = store.and_then(|mut store| store.snapshot().ok());
    stored.is_some_and(|stored| stored.grants.iter().any(|grant| grant.revoked.is_none()))
}

/// A finding in a policy, with the document it is in, or about a place without a position.
struct Found {
    is_error: bool,
    text: String,
    json: Value,
}

/// Places that `serve` could not use: the data folder and copies of checkpoints.
fn places(file: &Path, config: &Config) -> Vec<Found> {
    let is_folder = |path: &Path| path.is_dir();
    let data = config.data.as_deref().filter(|path| path.exists() && !is_folder(path));
    let data = data.map(|path| ("data", path, "it is not a folder".to_owned()));
    let copy = config.audit.checkpoint_file.as_deref().and_then(|path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let why = match folder {
            _ if is_folder(path) => "it is a folder",
            Some(folder) if !is_folder(folder) => "its folder does not exist",
            _ => return None,
        };
        Some(("audit.checkpoints.file", path, why.to_owned()))
    });
    let socket = match &config.audit.checkpoint_syslog {
        Some(Syslog::Socket(path)) => datagram::check(path)
            .err()
            .map(|error| ("audit.checkpoints.syslog", path.as_path(), error.to_string())),
        _ => None,
    };
    let found = [data, copy, socket].into_iter().flatten();
    found.map(|(key, path, why)| Found::unusable(key, path, &why, file)).collect()
}

/// Errors and warnings in policies; `serve` would refuse the file for the errors.
fn policies(file: &Path, config: &Config) -> Vec<Found> {
    let servers = config.servers.iter().map(|server| server.name.clone()).collect();
    let known = Known { servers, ..Known::default() };
    let files = PolicyFiles::read(config, None, &mut Inputs::default());
    let mut found = Vec::new();
    for policy in &config.policies {
        let (shown, text) = match &policy.source {
            PolicySource::Inline(text) => (file.display().to_string(), Ok(text.clone())),
            PolicySource::File(path) => (path.display().to_string(), files.text(path)),
        };
        match text {
            Ok(text) => {
                let checked = policy_check::check(&policy.name, &text, &known);
                let findings = checked.findings(&shown, &text);
                found.extend(findings.into_iter().map(|finding| Found::of(finding, &shown)));
            }
            Err(error) => found.push(Found::unreadable(&policy.name, &error, &shown)),
        }
    }
    found
}

impl Found {
    fn of(finding: Finding, file: &str) -> Self {
        let mut json = json!(finding);
        if let Some(members) = json.as_object_mut() {
            members.insert("file".to_owned(), file.into());
        }
        Self { is_error: finding.is_error(), text: finding.text, json }
    }

    fn unusable(key: &str, path: &Path, why: &str, file: &Path) -> Self {
        let message = format!("`{key}` is `{}`, which cannot be used: {why}", path.display());
        let hint = "create it, or name another place";
        let file = file.display().to_string();
        let text = format!("{file}: error[TG1015]: {message}; {hint}\n");
        let json = json!({
            "code": "TG1015", "severity": "error", "file": file, "line": 0, "column": 0,
            "message": message, "hint": hint,
        });
        Self { is_error: true, text, json }
    }

    fn unreadable(policy: &str, error: &PolicyError, file: &str) -> Self {
        let json = json!({
            "code": "TG1015", "severity": "error", "file": file, "line": 0, "column": 0,
            "message": error.to_string(),
            "hint": "a relative path is relative to the folder of the configuration file",
        });
        Self { is_error: true, text: format!("policy `{policy}`: {error}\n"), json }
    }
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
