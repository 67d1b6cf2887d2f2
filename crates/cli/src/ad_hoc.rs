//! Servers of the command line (`scan`, `run`): a command or a URL becomes an entry of `servers`.
//!
//! Values are handed over as variables of their own, so that nothing in them is expanded, and secrets
//! never become part of a text that is shown.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use toolgate_config::{Surroundings, secret_name};

use crate::config_source::Here;
use crate::exit::Usage;
use crate::print;

/// Values by the names of their variables, beside the environment.
#[derive(Default)]
pub(crate) struct Variables(HashMap<String, String>);

impl Surroundings for Variables {
    fn env(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned().or_else(|| Here.env(name))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Here.read(path)
    }
}

impl Variables {
    /// A reference to a value.
    pub(crate) fn keep(&mut self, value: &str) -> String {
        let name = format!("TOOLGATE_AD_HOC_{}", self.0.len());
        self.0.insert(name.clone(), value.to_owned());
        format!("${{{name}}}")
    }

    /// The value itself, or a reference to it if it would be expanded.
    pub(crate) fn plain(&mut self, value: &str) -> String {
        if is_reference(value) { self.keep(value) } else { value.to_owned() }
    }
}

pub(crate) fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:") || text.contains("${")
}

pub(crate) fn of_command(command: &[String], variables: &mut Variables) -> anyhow::Result<Value> {
    let (program, rest) = command.split_first().context("no program is named")?;
    let args: Vec<String> = rest.iter().map(|arg| variables.plain(arg)).collect();
    Ok(json!({ "command": variables.plain(program), "args": args }))
}

/// `literal` values of headers are accepted with a warning, or refused.
pub(crate) fn of_url(
    url: &str,
    headers: &[String],
    literal: bool,
    variables: &mut Variables,
) -> anyhow::Result<Value> {
    let mut given = Map::new();
    for header in headers {
        // The value may be a secret, so it is not repeated.
        let wrong = || Usage("write --header \"NAME: env:VARIABLE\"".to_owned());
        let (name, value) = header.split_once(':').ok_or_else(wrong)?;
        let (name, value) = (name.trim(), value.trim());
        let value = match reference(value) {
            Some(reference) => reference,
            None if literal => {
                if secret_name(name) {
                    print::err(&format!(
                        "toolgate: the value of the header `{name}` is in the list of processes; \
                         write env:VARIABLE or file:PATH instead\n"
                    ));
                }
                variables.keep(value)
            }
            None => {
                let why = "is not a reference; write env:VARIABLE or file:PATH, so that no secret \
                           is in the list of processes";
                return Err(Usage(format!("the value of `--header {name}` {why}")).into());
            }
        };
        given.insert(name.to_owned(), value.into());
    }
    // Unlike commands, addresses are not expanded.
    Ok(json!({ "url": url, "headers": given }))
}

/// A header value that is a reference, as the configuration writes it; `Bearer env:NAME` too.
fn reference(value: &str) -> Option<String> {
    if let Some((scheme, name)) = value.split_once(" env:")
        && !scheme.contains(' ')
    {
        return Some(format!("{scheme} ${{{}}}", name.trim()));
    }
    is_reference(value).then(|| value.to_owned())
}

/// How people call a command: by its package or script, else by its program.
pub(crate) fn called(command: &[String]) -> String {
    let runners = ["npx", "uvx", "node", "python", "python3", "uv", "docker", "bunx", "deno", "sh"];
    let last = |word: &String| word.rsplit('/').next().unwrap_or(word).to_owned();
    let program = command.first().map(last).unwrap_or_default();
    if !runners.contains(&program.as_str()) {
        return program;
    }
    let rest = command.iter().skip(1).filter(|word| !word.starts_with('-'));
    rest.clone().next().map_or(program, last)
}

/// The name of a server, made of what people call it.
pub(crate) fn server_name(called: &str) -> String {
    let stem = called.split(['@', '?']).find(|part| !part.is_empty()).unwrap_or_default();
    let stem = [".js", ".mjs", ".ts", ".py", ".sh", ".exe"]
        .iter()
        .find_map(|end| stem.strip_suffix(end))
        .unwrap_or(stem);
    let dashed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = stem.chars().map(dashed).take(32).collect();
    match name.trim_matches('-') {
        "" | "sessions" | "session" | "toolgate" => "server".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_names() {
        for (command, expected, name) in [
            (
                vec!["npx", "-y", "@modelcontextprotocol/server-memory"],
                "server-memory",
                "server-memory",
            ),
            (vec!["/usr/bin/server", "--x"], "server", "server"),
            (vec!["python3", "-m", "tool"], "tool", "tool"),
            (vec!["node"], "node", "node"),
            (vec!["node", "dist/My_Server.js"], "My_Server.js", "my-server"),
            (vec!["uvx", "mcp-git@1.2"], "mcp-git@1.2", "mcp-git"),
            (vec!["toolgate"], "toolgate", "server"),
            (vec!["/opt/сервер"], "сервер", "server"),
        ] {
            let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
            assert_eq!(called(&command), expected);
            assert_eq!(server_name(&called(&command)), name);
        }
    }

    #[test]
    fn header_values_are_references() {
        for (value, expected) in [
            ("env:TOKEN", Some("env:TOKEN")),
            ("file:t.txt", Some("file:t.txt")),
            ("Bearer env:TOKEN", Some("Bearer ${TOKEN}")),
            ("Bearer ${TOKEN}", Some("Bearer ${TOKEN}")),
            ("Bearer abc", None),
            ("plain", None),
        ] {
            assert_eq!(reference(value).as_deref(), expected, "{value}");
        }
    }
}
