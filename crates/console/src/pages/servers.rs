//! Servers: list, add, test, remove.

use askama::Template;
use axum::http::Method;
use serde_json::{Map, Value, json};
use toolgate_control::Role;

use crate::assets;
use crate::items::{Server, Tool};
use crate::look::Look as _;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::shown::{foreign, shell_word};
use crate::visit::{Outcome, Visit, page, part};

#[derive(Template)]
#[template(path = "servers.html")]
struct ServersPage {
    s: Shell,
    assets: &'static str,
    servers: Vec<ServerLine>,
    preview: Option<Preview>,
}

struct ServerLine {
    server: Server,
    path: String,
    state: String,
    what: String,
    error: String,
    /// Tools by class.
    classes: Vec<(String, usize)>,
    /// The last lines of its stderr.
    log: String,
}

/// A server that is about to be added, with what it runs.
struct Preview {
    name: String,
    entry: String,
    command: String,
    /// The rest of the entry: environment, headers and the like; empty without any.
    settings: String,
    cli: String,
    offered: Vec<Offered>,
    /// Why its tools are not known.
    failure: String,
}

/// A tool of such a server.
struct Offered {
    name: String,
    class: String,
    class_text: String,
    labels: Vec<String>,
    has_hidden: bool,
}

const CLASSES: [&str; 6] = ["read", "write", "execute", "destructive", "financial", "other"];

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    render(&visit, None).await
}

async fn render(visit: &Visit, preview: Option<Preview>) -> Outcome {
    let s = Shell::of(visit, "servers").await?;
    let servers: Vec<Server> = visit.list("/api/v1/servers").await?;
    let tools: Vec<Tool> = visit.list("/api/v1/tools").await?;
    let mut lines = Vec::new();
    for server in servers {
        let log = if s.is_admin { log(visit, &server.name).await? } else { String::new() };
        let of = |class: &str| {
            tools.iter().filter(|tool| tool.server == server.name && tool.class == class).count()
        };
        let classes = CLASSES.map(|class| (class.to_owned(), of(class)));
        lines.push(ServerLine {
            log,
            path: part(&server.name),
            state: s.tr(&format!("state-{}", server.state)),
            what: foreign(server.command.as_deref().unwrap_or(&server.address), 400),
            error: foreign(server.last_error.as_deref().unwrap_or_default(), 600),
            classes: classes.into_iter().filter(|(_, count)| *count > 0).collect(),
            server,
        });
    }
    page(&ServersPage { s, assets: &assets::VERSION, servers: lines, preview })
}

/// The last lines of a server's stderr.
async fn log(visit: &Visit, name: &str) -> Result<String, Problem> {
    let log: Value = visit.get(&format!("/api/v1/servers/{}/log", part(name))).await?;
    let lines = log.at("lines").as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(lines.map(|line| foreign(line, 512)).collect::<Vec<_>>().join("\n"))
}

/// Adds a server. The first form shows what would run; its own form adds it.
pub(crate) async fn add(visit: Visit) -> Outcome {
    if !visit.may(Role::Admin) {
        let sent = visit.send(&Method::POST, "/api/v1/servers", &json!({})).await;
        return visit.ended(sent, "/servers", String::new());
    }
    let form = &visit.form;
    let name = form.text("name").to_owned();
    let entry = match entry(&visit) {
        Ok(mut entry) => {
            if let (Some(pin @ ("strict" | "off")), false) =
                (form.some("pin"), entry.contains_key("pin"))
            {
                entry.insert("pin".to_owned(), pin.into());
            }
            entry
        }
        Err(key) => {
            return visit.ended(Err::<(), _>(refused(visit.tr(key))), "/servers", String::new());
        }
    };
    if form.has("confirmed") {
        let mut body = entry;
        body.insert("name".to_owned(), name.clone().into());
        let sent = visit.send(&Method::POST, "/api/v1/servers", &Value::Object(body)).await;
        return visit.ended(sent, "/servers", visit.trv("done-server-added", &name));
    }
    let command = shown_command(&entry);
    let (settings, cli) = (shown_settings(&entry), shown_cli(&name, &entry));
    let mut asked = entry.clone();
    asked.insert("name".to_owned(), name.clone().into());
    let looked = visit.send(&Method::POST, "/api/v1/look", &Value::Object(asked)).await;
    let looked = match looked {
        Ok(looked) => looked,
        refused => return visit.ended(refused, "/servers", String::new()),
    };
    let tools = looked.at("tools").as_array().into_iter().flatten();
    let offered = tools.map(|tool| Offered::of(&visit, tool)).collect();
    let failure = foreign(looked.at("message").as_str().unwrap_or_default(), 600);
    let entry = Value::Object(entry).to_string();
    render(&visit, Some(Preview { name, entry, command, settings, cli, offered, failure })).await
}

impl Offered {
    fn of(visit: &Visit, tool: &Value) -> Self {
        let text = |key: &str| tool.at(key).as_str().unwrap_or_default();
        let labels = tool.at("labels").as_array().into_iter().flatten().filter_map(Value::as_str);
        Self {
            name: foreign(text("name"), 120),
            class_text: visit.tr(&format!("class-{}", text("class"))),
            class: text("class").to_owned(),
            labels: labels
                .map(|label| visit.tr(&format!("label-{}", label.replace('_', "-"))))
                .collect(),
            has_hidden: tool.at("hidden").as_u64().unwrap_or_default() > 0,
        }
    }
}

fn refused(text: String) -> Problem {
    Problem::Refused(toolgate_admin::Fault::bad_request(text))
}

/// The entry of the form: JSON of the preview, a URL, or a command line.
fn entry(visit: &Visit) -> Result<Map<String, Value>, &'static str> {
    let form = &visit.form;
    if let Some(entry) = form.some("entry") {
        return serde_json::from_str(entry).map_err(|_| "servers-bad-entry");
    }
    let given = form.text("command");
    let mut entry = Map::new();
    if given.is_empty() {
        return Err("servers-no-command");
    }
    if given.starts_with('{') {
        return pasted(given).ok_or("servers-bad-entry");
    }
    if given.starts_with("http://") || given.starts_with("https://") {
        entry.insert("url".to_owned(), given.into());
        return Ok(entry);
    }
    let mut words = split(given).ok_or("servers-bad-quotes")?.into_iter();
    entry.insert("command".to_owned(), words.next().unwrap_or_default().into());
    entry.insert("args".to_owned(), words.collect::<Vec<_>>().into());
    Ok(entry)
}

/// An entry of `mcpServers`, or the whole of it with one entry, as a README shows it.
fn pasted(text: &str) -> Option<Map<String, Value>> {
    let given: Map<String, Value> = serde_json::from_str(text).ok()?;
    let Some(Value::Object(servers)) = given.get("mcpServers").or_else(|| given.get("servers"))
    else {
        return Some(given);
    };
    let mut servers = servers.values();
    match (servers.next(), servers.next()) {
        (Some(Value::Object(entry)), None) => Some(entry.clone()),
        _ => None,
    }
}

/// What an entry has beside its command or URL: it changes what runs, too.
fn shown_settings(entry: &Map<String, Value>) -> String {
    let rest = entry.iter().filter(|(key, _)| !["command", "args", "url"].contains(&key.as_str()));
    rest.map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>().join("\n")
}

/// The same on the command line.
fn shown_cli(name: &str, entry: &Map<String, Value>) -> String {
    let pairs = |key: &str, flag: &str| {
        let members = entry.get(key).and_then(Value::as_object).into_iter().flatten();
        let one = |(name, value): (&String, &Value)| {
            let pair = format!("{name}={}", value.as_str().unwrap_or_default());
            format!(" --{flag} {}", shell_word(&pair))
        };
        members.map(one).collect::<String>()
    };
    let flags = pairs("env", "env") + &pairs("headers", "header");
    let (name, command) = (shell_word(name), shown_command(entry));
    if entry.contains_key("url") {
        format!("toolgate server add {name}{flags} --url {}", shell_word(&command))
    } else {
        format!("toolgate server add {name}{flags} -- {command}")
    }
}

fn shown_command(entry: &Map<String, Value>) -> String {
    if let Some(url) = entry.get("url").and_then(Value::as_str) {
        return url.to_owned();
    }
    let program = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let args = args.filter_map(Value::as_str);
    std::iter::once(program).chain(args).map(shell_word).collect::<Vec<_>>().join(" ")
}

/// The words of a command line, with single and double quotes; `None` if a quote is not closed.
fn split(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Lists a server now.
pub(crate) async fn test(visit: Visit) -> Outcome {
    let name = visit.param("name");
    let target = format!("/api/v1/servers/{}/test", part(name));
    let sent = visit.send(&Method::POST, &target, &Value::Null).await;
    let text = match &sent {
        Ok(tested) if tested.at("ok") == true => {
            let tools = tested.at("tools").as_array().map(Vec::len).unwrap_or_default();
            visit.trv("done-server-answered", &format!("{name}: {tools}"))
        }
        Ok(tested) => {
            let said = tested.at("message").as_str().unwrap_or_default();
            let text = visit.trv("done-server-failed", &format!("{name}: {}", foreign(said, 400)));
            return visit.ended(Err::<(), _>(refused(text)), "/servers", String::new());
        }
        Err(_) => String::new(),
    };
    visit.ended(sent, "/servers", text)
}

/// Removes a server.
pub(crate) async fn remove(visit: Visit) -> Outcome {
    let name = visit.param("name");
    let target = format!("/api/v1/servers/{}", part(name));
    let sent = visit.send(&Method::DELETE, &target, &Value::Null).await;
    visit.ended(sent, "/servers", visit.trv("done-server-removed", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_split_like_a_shell_does() {
        let words = |line| split(line).map(|words| words.join("|"));
        assert_eq!(words("npx -y  server").as_deref(), Some("npx|-y|server"));
        assert_eq!(words("a 'b c' \"d e\"f ''").as_deref(), Some("a|b c|d ef|"));
        assert_eq!(words("a 'b"), None);
    }

    #[test]
    fn an_entry_of_a_readme_is_read_with_or_without_what_is_around_it() {
        let entry = r#"{"command":"node","env":{"K":"env:K"}}"#;
        for text in [entry.to_owned(), format!(r#"{{"mcpServers":{{"files":{entry}}}}}"#)] {
            let read = pasted(&text).unwrap();
            assert_eq!(shown_settings(&read), r#"env: {"K":"env:K"}"#);
            assert_eq!(shown_cli("a", &read), "toolgate server add a --env K=env:K -- node");
        }
        assert!(pasted(r#"{"mcpServers":{"a":{},"b":{}}}"#).is_none());
        assert!(pasted("{").is_none());
    }

    #[test]
    fn a_command_is_shown_whole() {
        let entry = json!({ "command": "node", "args": ["a b.js", "it's", "-x"] });
        let shown = shown_command(entry.as_object().unwrap());
        assert_eq!(shown, "node 'a b.js' 'it'\\''s' -x");
        assert_eq!(split("node 'a b.js'").unwrap(), ["node", "a b.js"]);
    }
}
