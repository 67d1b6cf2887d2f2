//! Literal secrets in a server's entry. The database stores entries unchanged, so an entry that is
//! added must refer to its secrets: `env:NAME`, `file:PATH` or `${NAME}`.
//!
//! Invariant: results name the place, never the value.

use serde_json::{Map, Value};

/// Parts of names of secrets.
const NAMES: [&str; 16] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "auth",
    "cookie",
    "credential",
    "bearer",
    "private",
    "signature",
    "session",
    "dsn",
    "connection_string",
];
/// Prefixes of well-known secrets.
const BEGINNINGS: [&str; 17] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xox",
    "akia",
    "eyj",
    "aiza",
    "tg_",
    "bearer ",
    "-----begin",
];
/// A value of at least this length, of letters and digits without words, is taken for a secret.
const LONG: usize = 20;

/// The places of an entry (`env.NAME`, `headers.NAME`, `args[2]`, `url`) that hold a literal secret.
pub(crate) fn literal_secrets(entry: &str) -> Vec<String> {
    let Ok(entry) = serde_json::from_str::<Map<String, Value>>(entry) else { return Vec::new() };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let map = |key: &str| entry.get(key).and_then(Value::as_object).into_iter().flatten();
    let mut found = Vec::new();
    for (name, value) in map("env") {
        let secret = |value: String| !is_reference(&value) && is_secret(name, &value);
        if text(value).is_some_and(secret) {
            found.push(format!("env.{name}"));
        }
    }
    for (name, value) in map("headers") {
        // Headers are for secrets.
        if text(value).is_some_and(|value| !is_reference(&value)) {
            found.push(format!("headers.{name}"));
        }
    }
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let args: Vec<String> = args.map(|arg| text(arg).unwrap_or_default()).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    found.extend(secret_args(&args).into_iter().map(|(place, _)| format!("args[{place}]")));
    if entry.get("url").and_then(text).is_some_and(|url| is_secret_url(&url)) {
        found.push("url".to_owned());
    }
    found
}

/// The arguments that hold a literal secret: their places, and the secrets.
fn secret_args<'a>(args: &[&'a str]) -> Vec<(usize, &'a str)> {
    let (mut found, mut before) = (Vec::new(), "");
    for (place, arg) in args.iter().copied().enumerate() {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, value),
            _ if before.starts_with('-') && !before.contains('=') => (before, arg),
            _ => ("", arg),
        };
        let is_flag = arg.starts_with("--") && !arg.contains('=');
        if !is_flag && !is_reference(value) && !value.starts_with('-') && is_secret(name, value) {
            found.push((place, value));
        }
        before = arg;
    }
    found
}

/// A command line for people: references as they are written, and `***` for literal secrets.
pub(crate) fn shown_command(command: &str, args: &[&str]) -> String {
    let secrets = secret_args(args);
    let mut line = quoted(command);
    for (place, arg) in args.iter().enumerate() {
        let secret = secrets.iter().find(|(secret, _)| *secret == place);
        let shown = match secret.and_then(|(_, value)| arg.strip_suffix(value)) {
            Some(head) => format!("{head}***"),
            None => (*arg).to_owned(),
        };
        line = format!("{line} {}", quoted(&shown));
    }
    line
}

/// Quoted as for a shell, if necessary.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,{}$*~".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn is_reference(value: &str) -> bool {
    value.starts_with("env:") || value.starts_with("file:") || value.contains("${")
}

fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_lowercase().replace('-', "_");
    let harmless = value.is_empty() || matches!(value, "true" | "false" | "0" | "1");
    !harmless && (NAMES.iter().any(|part| name.contains(part)) || looks_secret(value))
}

fn looks_secret(value: &str) -> bool {
    let lower = value.trim_start().to_lowercase();
    if BEGINNINGS.iter().any(|start| lower.starts_with(start) && lower.len() > start.len() + 8) {
        return true;
    }
    if let Some((_, rest)) = value.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        return password.is_some_and(|(_, password)| !password.is_empty()) || is_secret_url(value);
    }
    let word = |c: char| c.is_ascii_alphanumeric() || "+=_-".contains(c);
    value.len() >= LONG
        && value.chars().all(word)
        && value.chars().any(|c| c.is_ascii_digit())
        && value.chars().any(|c| c.is_ascii_alphabetic())
        && entropy(value) >= 3.2
}

/// Whether the query of an address has a secret in it.
fn is_secret_url(url: &str) -> bool {
    let query = url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .any(|(name, value)| !is_reference(value) && is_secret(name, value))
}

/// Bits per character.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let all = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let parts = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / all);
    parts.map(|part| -part * part.log2()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn command_lines_show_references_and_no_secrets() {
        let cases: [(&[&str], &str); 6] = [
            (&[], "npx"),
            (&["-y", "@scope/server-everything"], "npx -y @scope/server-everything"),
            (&["--token", "abc", "--port=80"], "npx --token *** --port=80"),
            (&["--api-key=abc"], "npx --api-key=***"),
            (&["--token", "${TOKEN}"], "npx --token ${TOKEN}"),
            (&["-c", "sleep 3; exec it's", ""], r"npx -c 'sleep 3; exec it'\''s' ''"),
        ];
        for (args, expected) in cases {
            assert_eq!(shown_command("npx", args), expected);
        }
    }

    #[test]
    fn secrets_are_found_by_name_and_by_look() {
        let cases = [
            (json!({"env": {"API_KEY": "abc"}}), vec!["env.API_KEY"]),
            (json!({"env": {"apiKey": "x", "DB_PWD": "y"}}), vec!["env.DB_PWD", "env.apiKey"]),
            (
                json!({"env": {"API_KEY": "env:API_KEY", "TOKEN": "file:t", "X": "${SECRET}"}}),
                vec![],
            ),
            (json!({"env": {"MODE": "ghp_0123456789abcdefghij"}}), vec!["env.MODE"]),
            (json!({"env": {"MODE": "9f86d081884c7d659a2feaa0c55ad015"}}), vec!["env.MODE"]),
            (json!({"env": {"DB": "postgres://me:hunter2@db/x"}}), vec!["env.DB"]),
            (
                json!({"env": {"DB": "postgres://db:5432/x", "PATHS": "/usr/lib/node-v20.11.0/modules"}}),
                vec![],
            ),
            (
                json!({"env": {"NODE_ENV": "production", "LANG": "de_DE.UTF-8", "DEBUG": "1"}}),
                vec![],
            ),
            (json!({"env": {"USE_KEYRING": "true"}}), vec![]),
            (json!({"headers": {"X-Tenant": "main"}}), vec!["headers.X-Tenant"]),
            (json!({"headers": {"Authorization": "Bearer ${T}"}}), vec![]),
            (json!({"args": ["--api-key", "abc", "--port=80"]}), vec!["args[1]"]),
            (json!({"args": ["--token=abc"]}), vec!["args[0]"]),
            (json!({"args": ["-y", "@modelcontextprotocol/server-everything"]}), vec![]),
            (json!({"args": ["--token-file", "--verbose"]}), vec![]),
            (json!({"url": "https://x/mcp?api_key=abc"}), vec!["url"]),
            (json!({"url": "https://x/mcp?api_key=${KEY}&lang=de"}), vec![]),
        ];
        for (entry, expected) in cases {
            let mut found = literal_secrets(&entry.to_string());
            found.sort();
            assert_eq!(found, expected, "{entry}");
        }
    }
}
