//! The servers of a client's file, in the form of `mcpServers` that `toolgate.yaml` accepts.
//!
//! Other spellings of the same setting are translated (`serverUrl`, `httpUrl`, `http_headers`, …).
//! Settings that toolgate does not need are left out, with a note each; settings that are not known
//! stay, so that the configuration refuses them.

use crate::client::Format;
use crate::edit::json_value;
use crate::not_edited::NotEdited;
use crate::toml;
use crate::value::FileValue;

/// The servers of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Name and entry, in the order of the file.
    pub servers: Vec<(String, FileValue)>,
    /// What was left out or changed, for people.
    pub notes: Vec<String>,
}

/// Why a file has no servers to import.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotServers {
    /// It cannot be parsed.
    #[error(transparent)]
    Malformed(#[from] NotEdited),
    /// No client writes servers like this.
    #[error(
        "there are no MCP servers in it: no `mcpServers`, `servers`, `context_servers` or `mcp_servers`"
    )]
    None,
}

/// Where clients keep their servers.
const KEYS: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp_servers"];

/// The servers in the text of a file.
pub fn servers(text: &str, format: Format) -> Result<Found, NotServers> {
    let root = match format {
        Format::Json => json_value(text)?,
        Format::Toml => toml::value(text)?,
    };
    let mut found = Found::default();
    let mut places: Vec<&FileValue> = KEYS.iter().filter_map(|key| root.get(key)).collect();
    // The settings of VS Code, and the projects of Claude Code.
    places.extend(root.get("mcp").and_then(|mcp| mcp.get("servers")));
    let projects = root.get("projects").and_then(FileValue::members).unwrap_or_default();
    places.extend(projects.iter().filter_map(|(_, project)| project.get("mcpServers")));
    if places.is_empty() {
        return Err(NotServers::None);
    }
    for (name, entry) in places.iter().filter_map(|place| place.members()).flatten() {
        found.add(name, entry);
    }
    found.add_inputs(&root);
    Ok(found)
}

/// Keys that toolgate does not need, and why.
const UNUSED: [(&str, &str); 18] = [
    ("type", ""),
    ("transportType", ""),
    ("source", ""),
    ("enabled", ""),
    ("disabled", ""),
    ("autoApprove", "a policy decides which calls need no approval"),
    ("alwaysAllow", "a policy decides which calls need no approval"),
    ("trust", "a policy decides which calls need no approval"),
    ("includeTools", "a policy decides which tools may be called"),
    ("excludeTools", "a policy decides which tools may be called"),
    ("enabled_tools", "a policy decides which tools may be called"),
    ("disabled_tools", "a policy decides which tools may be called"),
    ("disabledTools", "a policy decides which tools may be called"),
    ("description", ""),
    ("gallery", ""),
    ("settings", "toolgate passes no settings to an extension; add its arguments by hand"),
    ("networkTimeout", ""),
    ("dev", ""),
];

impl Found {
    fn add(&mut self, name: &str, entry: &FileValue) {
        let is_off = entry.get("disabled") == Some(&FileValue::Bool(true))
            || entry.get("enabled") == Some(&FileValue::Bool(false));
        if is_off {
            self.notes.push(format!("`{name}` is switched off in the client and was left out"));
            return;
        }
        let translated = self.translate(name, entry);
        if is_toolgate(&translated) {
            self.notes.push(format!("`{name}` is toolgate itself and was left out"));
            return;
        }
        match self.servers.iter().find(|(other, _)| other == name) {
            None => self.servers.push((name.to_owned(), translated)),
            Some((_, same)) if *same == translated => {}
            Some(_) => {
                let taken = |name: &String| self.servers.iter().any(|(other, _)| other == name);
                let mut numbered = (2..=self.servers.len() + 2).map(|at| format!("{name}-{at}"));
                let other = numbered.find(|name| !taken(name)).unwrap_or_else(|| name.to_owned());
                self.notes.push(format!("another server called `{name}` became `{other}`"));
                self.servers.push((other, translated));
            }
        }
    }

    fn translate(&mut self, name: &str, entry: &FileValue) -> FileValue {
        let mut made: Vec<(String, FileValue)> = Vec::new();
        for (key, value) in entry.members().unwrap_or_default() {
            if let Some((_, why)) = UNUSED.iter().find(|(unused, _)| unused == key) {
                if !why.is_empty() {
                    self.notes.push(format!("`{key}` of `{name}` was left out: {why}"));
                }
                continue;
            }
            match (key.as_str(), value) {
                // Zed nests the command.
                ("command", FileValue::Object(members)) => {
                    for (key, value) in members {
                        let key = if key == "path" { "command" } else { key };
                        made.push((key.to_owned(), value.clone()));
                    }
                }
                ("env", FileValue::Null) => {}
                ("serverUrl" | "server_url" | "httpUrl" | "sseUrl", _) => {
                    made.push(("url".to_owned(), value.clone()));
                }
                ("http_headers", _) => merge(&mut made, "headers", value.clone()),
                ("requestInit", _) => {
                    let headers = value.get("headers").cloned().unwrap_or(FileValue::Null);
                    merge(&mut made, "headers", headers);
                }
                ("env_http_headers", FileValue::Object(members)) => {
                    let members = members.iter().filter_map(|(header, variable)| {
                        Some((
                            header.clone(),
                            FileValue::text(format!("env:{}", variable.as_text()?)),
                        ))
                    });
                    merge(&mut made, "headers", FileValue::Object(members.collect()));
                }
                ("bearer_token_env_var", FileValue::Text(variable)) => {
                    let value = FileValue::text(format!("Bearer ${{{variable}}}"));
                    merge(&mut made, "headers", FileValue::object([("Authorization", value)]));
                }
                ("env_vars", FileValue::List(names)) => {
                    let members = names.iter().filter_map(FileValue::as_text);
                    let members =
                        members.map(|it| (it.to_owned(), FileValue::text(format!("env:{it}"))));
                    merge(&mut made, "env", FileValue::Object(members.collect()));
                }
                ("environment", _) => made.push(("env".to_owned(), value.clone())),
                ("startup_timeout_sec", FileValue::Number(seconds)) => {
                    made.push(("start_timeout".to_owned(), FileValue::text(format!("{seconds}s"))));
                }
                ("tool_timeout_sec", FileValue::Number(seconds)) => {
                    made.push(("timeout".to_owned(), FileValue::text(format!("{seconds}s"))));
                }
                // Cline counts seconds, Gemini milliseconds.
                ("timeout", FileValue::Number(number)) => {
                    let unit = if number.len() > 3 { "ms" } else { "s" };
                    made.push(("timeout".to_owned(), FileValue::text(format!("{number}{unit}"))));
                }
                _ => made.push((key.clone(), value.clone())),
            }
        }
        FileValue::Object(made)
    }

    /// `${input:id}` of VS Code becomes a variable of the environment.
    fn add_inputs(&mut self, root: &FileValue) {
        let inputs = root.get("inputs").or_else(|| root.get("mcp")?.get("inputs"));
        let Some(FileValue::List(inputs)) = inputs else { return };
        for id in inputs.iter().filter_map(|input| input.get("id")?.as_text()) {
            let variable = variable_name(id);
            let mut is_used = false;
            for (_, entry) in &mut self.servers {
                is_used |=
                    substitute(entry, &format!("${{input:{id}}}"), &format!("${{{variable}}}"));
            }
            if is_used {
                self.notes.push(format!(
                    "the input `{id}` is the variable `{variable}`: set it where toolgate starts"
                ));
            }
        }
    }
}

/// The name of a variable, made of any text: `api-key` becomes `API_KEY`.
pub(crate) fn variable_name(text: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = text.chars().map(upper).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Replaces a text in every string; whether it was there.
fn substitute(value: &mut FileValue, what: &str, with: &str) -> bool {
    match value {
        FileValue::Text(text) if text.contains(what) => {
            *text = text.replace(what, with);
            true
        }
        FileValue::List(items) => {
            items.iter_mut().fold(false, |any, it| substitute(it, what, with) | any)
        }
        FileValue::Object(members) => {
            members.iter_mut().fold(false, |any, (_, it)| substitute(it, what, with) | any)
        }
        _ => false,
    }
}

fn merge(made: &mut Vec<(String, FileValue)>, key: &str, value: FileValue) {
    let FileValue::Object(more) = value else { return };
    match made.iter_mut().find(|(name, _)| name == key) {
        Some((_, FileValue::Object(members))) => members.extend(more),
        _ => made.push((key.to_owned(), FileValue::Object(more))),
    }
}

/// Whether an entry starts or addresses toolgate; importing it would make a loop.
fn is_toolgate(entry: &FileValue) -> bool {
    let command = entry.get("command").and_then(FileValue::as_text).unwrap_or_default();
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    ["toolgate", "toolgate.exe"].contains(&program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str, format: Format) -> (Vec<String>, Vec<String>) {
        let found = servers(text, format).unwrap();
        let shown = found.servers.iter().map(|(name, entry)| format!("{name}: {entry}")).collect();
        (shown, found.notes)
    }

    #[test]
    fn every_client_is_understood() {
        let cases = [
            (
                r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}}}}"#,
                Format::Json,
                vec![r#"a: {"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}}"#],
            ),
            (
                r#"{"inputs": [{"type": "promptString", "id": "api-key", "password": true}],
                    "servers": {"a": {"type": "http", "url": "https://x", "headers": {"X-Key": "${input:api-key}"}}}}"#,
                Format::Json,
                vec![r#"a: {"url": "https://x", "headers": {"X-Key": "${API_KEY}"}}"#],
            ),
            (
                r#"{"mcpServers": {"w": {"serverUrl": "https://x", "disabledTools": []}, "off": {"command": "x", "disabled": true}}}"#,
                Format::Json,
                vec![r#"w: {"url": "https://x"}"#],
            ),
            (
                r#"{"mcpServers": {"g": {"httpUrl": "https://x", "timeout": 30000, "trust": true}}}"#,
                Format::Json,
                vec![r#"g: {"url": "https://x", "timeout": "30000ms"}"#],
            ),
            (
                r#"{"mcpServers": {"c": {"type": "streamableHttp", "url": "https://x", "timeout": 60, "autoApprove": ["a"]}}}"#,
                Format::Json,
                vec![r#"c: {"url": "https://x", "timeout": "60s"}"#],
            ),
            (
                "// settings\n{\"context_servers\": {\"z\": {\"source\": \"custom\", \"command\": {\"path\": \"node\", \"args\": [\"s.js\"], \"env\": null,}}}}",
                Format::Json,
                vec![r#"z: {"command": "node", "args": ["s.js"], "env": null}"#],
            ),
            (
                r#"{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}, "/q": {"mcpServers": {"a": {"command": "x"}, "b": {"command": "toolgate"}}}}, "mcpServers": {}}"#,
                Format::Json,
                vec![r#"a: {"command": "x"}"#],
            ),
            (
                "[mcp_servers.docs]\nurl = \"https://x\"\nbearer_token_env_var = \"DOCS\"\nstartup_timeout_sec = 20\n[mcp_servers.docs.http_headers]\nX-A = \"1\"\n",
                Format::Toml,
                vec![
                    r#"docs: {"url": "https://x", "headers": {"Authorization": "Bearer ${DOCS}", "X-A": "1"}, "start_timeout": "20s"}"#,
                ],
            ),
        ];
        for (text, format, expected) in cases {
            assert_eq!(entries(text, format).0, expected, "{text}");
        }
    }

    #[test]
    fn what_is_left_out_is_named() {
        let text = r#"{"mcpServers": {"a": {"command": "x", "autoApprove": ["y"]}, "off": {"command": "x", "enabled": false}, "t": {"command": "/usr/bin/toolgate", "args": ["run"]}}}"#;
        let (_, notes) = entries(text, Format::Json);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(servers("{}", Format::Json).is_err() && servers("{", Format::Json).is_err());
    }
}
