//! `toolgate policy list|show|apply|remove|rollback`: policies of a running gateway.

use anyhow::{Context as _, anyhow};
use http::Method;
use serde_json::{Value, json};
use toolgate_control::visible;
use toolgate_policy::Known;

use super::source::{Source, is_stdin};
use super::{number, problems};
use crate::admin_client::{AdminClient, NotValid, part};
use crate::args::{
    OneOutput, PolicyApplyArgs, PolicyNameArgs, PolicyRollbackArgs, PolicyShowArgs, ShownListArgs,
};
use crate::exit::Done;
use crate::{listing, print};

const COLUMNS: &[(&str, &str)] = &[
    ("NAME", "name"),
    ("VERSION", "version"),
    ("STATE", "state"),
    ("SOURCE", "source"),
    ("CREATED", "created"),
    ("HASH", "hash"),
];

pub(super) fn list(args: &ShownListArgs) -> anyhow::Result<Done> {
    let items = AdminClient::new(&args.admin)?.list("/api/v1/policies")?;
    listing::list(args.output, &items, COLUMNS);
    for item in &items {
        if let (Some(name), Some(version)) = (text(item, "name"), item.get("shadows")) {
            print::err(&format!(
                "policy `{name}` of toolgate.yaml shadows version {version} in the store \
                 (`toolgate policy remove {name}` removes that)\n"
            ));
        }
    }
    Ok(Done::Ok)
}

pub(super) fn show(args: &PolicyShowArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    let path = path(&args.name);
    let policy = match args.version {
        None => client.get(&path)?,
        Some(wanted) => {
            let versions = client.list(&format!("{path}/versions"))?;
            let is_wanted = |it: &Value| it.get("version").and_then(Value::as_u64) == Some(wanted);
            versions.into_iter().find(is_wanted).ok_or_else(|| {
                anyhow!("the policy `{}` has no version {wanted} in the store", args.name)
            })?
        }
    };
    print::out(&match args.output {
        OneOutput::Json => format!("{policy}\n"),
        OneOutput::Table => {
            let document = text(&policy, "document").unwrap_or_default();
            let end = if document.ends_with('\n') { "" } else { "\n" };
            format!("{}{end}", visible(&document))
        }
    });
    Ok(Done::Ok)
}

pub(super) fn apply(args: &PolicyApplyArgs) -> anyhow::Result<Done> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => stem(args).context("name the policy with --name")?,
    };
    let source = Source::read(&args.file)?;
    let client = AdminClient::new(&args.admin)?;
    let loaded = source.load(&Known::default());
    if loaded.policy.is_none() {
        problems::refuse(&source, &loaded.problems);
        return Ok(Done::Finding);
    }
    let applied = match client.send_text(&Method::PUT, &path(&name), source.text) {
        // A test of the document fails, or it does not fit this gateway.
        Err(error) if error.is::<NotValid>() => {
            print::err(&format!("toolgate: {error}\n"));
            return Ok(Done::Finding);
        }
        answered => answered?,
    };
    print_applied(args.output, &applied, &source.file, |version| {
        format!("policy `{name}` version {version} is active")
    });
    Ok(Done::Ok)
}

pub(super) fn remove(args: &PolicyNameArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    client.send(&Method::DELETE, &path(&args.name), None)?;
    let name = visible(&args.name);
    print::err(&format!(
        "policy `{name}` is removed (`toolgate policy rollback {name}` brings it back)\n"
    ));
    Ok(Done::Ok)
}

pub(super) fn rollback(args: &PolicyRollbackArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    let path = format!("{}/rollback", path(&args.name));
    let body = args.to.map_or_else(|| json!({}), |version| json!({ "version": version }));
    let applied = client.send(&Method::POST, &path, Some(&body))?;
    let to = args.to.map_or_else(|| "the earlier version".to_owned(), |to| format!("version {to}"));
    print_applied(args.output, &applied, &args.name, |version| {
        format!("policy `{}` is rolled back to {to}, as version {version}", args.name)
    });
    Ok(Done::Ok)
}

/// The result on stdout if it was asked for as JSON, else one sentence; warnings on stderr.
fn print_applied(
    output: OneOutput,
    applied: &Value,
    file: &str,
    sentence: impl FnOnce(u64) -> String,
) {
    let version = applied.get("version").and_then(Value::as_u64).unwrap_or_default();
    if output == OneOutput::Json {
        print::out(&format!("{applied}\n"));
        return;
    }
    let problems = applied.get("problems").and_then(Value::as_array);
    let problems = problems.map(Vec::as_slice).unwrap_or_default();
    for problem in problems {
        let part = |name| text(problem, name).unwrap_or_default();
        let at = |name| problem.get(name).and_then(Value::as_u64).unwrap_or_default();
        let (line, column) = (at("line"), at("column"));
        let (code, severity) = (part("code"), part("severity"));
        let (message, hint) = (part("message"), part("hint"));
        print::err(&visible(&format!(
            "{file}:{line}:{column}: {severity}[{code}]: {message}\n  = hint: {hint}\n"
        )));
    }
    let warnings = match problems.len() {
        0 => String::new(),
        count => format!(", with {}", number(count, "warning")),
    };
    print::err(&visible(&format!("{}{warnings}\n", sentence(version))));
}

/// The file's name without its extension.
fn stem(args: &PolicyApplyArgs) -> Option<String> {
    let stem = args.file.file_stem().filter(|_| !is_stdin(&args.file))?;
    stem.to_str().map(str::to_owned)
}

fn path(name: &str) -> String {
    format!("/api/v1/policies/{}", part(name))
}

fn text(of: &Value, name: &str) -> Option<String> {
    of.get(name).and_then(Value::as_str).map(str::to_owned)
}
