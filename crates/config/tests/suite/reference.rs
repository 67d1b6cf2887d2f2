//! `docs/reference/config.md` is generated from the schema; this test fails when it is stale.

use std::fmt::Write as _;

use serde_json::Value;
use toolgate_config::CODES;

use crate::support::{differs, none, repository};

#[test]
fn the_reference_page_is_fresh() {
    let page = repository().join("docs/reference/config.md");
    std::fs::create_dir_all(page.parent().unwrap()).unwrap();
    none(&differs(&page, &reference()).into_iter().collect::<Vec<_>>());
}

const INTRODUCTION: &str = "\
<!-- Generated from the schema: UPDATE=1 cargo test -p toolgate-config -->

# Key reference of toolgate.yaml

For annotated examples, ranges, environment variables and files, see [config.md](../config.md). Complete files are in [`examples/`](../../examples).
`toolgate config check` reports every problem of a file in one run; `toolgate config schema` prints the JSON Schema for editors.

* Durations: whole numbers with a unit of `d`, `h`, `m`, `s`, `ms`, larger units first: `45s`, `15m`, `1h30m`, `100ms`, `7d`.
* Sizes: `4MiB`, `512KiB`, `1GiB`, or a number of bytes.
* Switches: `on` or `true`, `off` or `false`.
* References: `env:NAME` is the value of an environment variable, `file:PATH` the content of a file without its last line
  break. In `command`, `args`, `env`, `cwd`, `url` and `headers` of a server, `${NAME}`, `${env:NAME}` and
  `${NAME:-default}` work anywhere in a text; `$${` is a literal `${`. In `command`, `args` and `cwd`, `file:PATH` is not a reference.
* Secrets must be references: a literal in a header whose name looks like a secret is an error, in an environment variable
  a warning. Tokens have at least 20 characters; `openssl rand -hex 32` creates one.
* Globs: `*` any run, `?` one character, `[abc]`, `[a-z]`, `[!a]`, `\\` escapes; case-sensitive.
* YAML 1.2: `off` and `on` are strings. JSON is valid YAML. Anchors and aliases work; tags and merge keys (`<<`) do not.
";

fn reference() -> String {
    let schema = toolgate_config::schema();
    let mut page = INTRODUCTION.to_owned();
    section(&mut page, "Top level", &schema);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        section(&mut page, name, definition);
    }
    page += "\n## Problem codes\n\n| code | meaning |\n|---|---|\n";
    for (code, meaning) in CODES {
        writeln!(page, "| {code} | {} |", meaning.trim()).unwrap();
    }
    page
}

fn section(page: &mut String, name: &str, schema: &Value) {
    let description = schema["description"].as_str().unwrap_or_default();
    write!(page, "\n## {name}\n\n{}\n", escaped(description, "\n")).unwrap();
    let Some(properties) = schema["properties"].as_object() else { return };
    *page += "\n| key | value | default | meaning |\n|---|---|---|---|\n";
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    let mut properties: Vec<_> = properties.iter().collect();
    properties.sort_by_key(|(key, _)| !required.iter().any(|name| name == key));
    for (key, property) in properties {
        let default = match &property["default"] {
            Value::Null if required.iter().any(|name| *name == key) => "**required**".to_owned(),
            Value::Null => String::new(),
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        let meaning = escaped(property["description"].as_str().unwrap_or_default(), " ");
        writeln!(page, "| `{key}` | {} | {default} | {meaning} |", kind(property)).unwrap();
    }
}

/// What may stand as the value, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(target) = schema["$ref"].as_str() {
        let name = target.rsplit('/').next().unwrap();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter(|word| !word.is_null());
        let words = words.map(|word| format!("`{}`", word.to_string().trim_matches('"')));
        return words.collect::<Vec<_>>().join(", ");
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let choices = choices.iter().filter(|choice| choice["type"] != "null");
        return choices.map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(inner) = schema.get("items") {
        return format!("list of {}", kind(inner));
    }
    if let Some(inner) = schema.get("additionalProperties").filter(|inner| inner.is_object()) {
        return format!("name → {}", kind(inner));
    }
    scalar(schema)
}

fn scalar(schema: &Value) -> String {
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    let known = [
        ("ms)?", "duration"),
        ("MiB", "size"),
        ("localhost", "`HOST:PORT` or `off`"),
        ("env:", "reference"),
        ("{64}", "64 hex digits"),
        ("[0-9]{4}-", "date"),
        ("udp://", "address of syslog"),
        ("://", "origin"),
        ("a-fA-F:.", "network"),
        ("A-Za-z0-9.-", "host name"),
    ];
    if let Some((_, name)) = known.iter().find(|(part, _)| pattern.contains(part)) {
        return (*name).to_owned();
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => vec![one.as_str().unwrap_or("anything")],
    };
    if types.contains(&"string") { "text".to_owned() } else { types[0].to_owned() }
}

fn escaped(text: &str, line_break: &str) -> String {
    text.replace('|', "\\|").replace('\n', line_break)
}
