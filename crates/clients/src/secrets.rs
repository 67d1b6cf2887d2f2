//! Literal secrets of imported entries: each becomes a reference, and its value is handed to the
//! caller, who writes it to a file for its owner alone.
//!
//! A value of `env` or `headers` becomes `file:PATH`. Inside `args` and `url`, where a file cannot be
//! named, it becomes `${NAME}`.
//!
//! Invariant: no value that was recognised as a secret stays in an entry.

use crate::servers::variable_name;
use crate::value::FileValue;

/// A secret that was taken out of an entry.
#[derive(Clone, PartialEq, Eq)]
pub struct TakenSecret {
    /// The server it belongs to.
    pub server: String,
    /// The name of its file or variable.
    pub name: String,
    /// Where it was.
    pub place: SecretPlace,
    /// The value.
    pub value: String,
}

/// Where a secret was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPlace {
    /// In `env` or `headers`: a file replaces it.
    File,
    /// In `args` or `url`: a variable replaces it.
    Variable,
}

impl std::fmt::Debug for TakenSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TakenSecret({}/{}, {:?})", self.server, self.name, self.place)
    }
}

/// Replaces the literal secrets of a server's entry by references; `folder` is where files go, relative
/// to the configuration. `is_secret` judges the names of variables and headers.
pub fn externalise(
    server: &str,
    entry: &mut FileValue,
    folder: &str,
    is_secret: &dyn Fn(&str) -> bool,
) -> Vec<TakenSecret> {
    let mut secrets = Vec::new();
    let FileValue::Object(members) = entry else { return secrets };
    for (key, value) in members {
        match (key.as_str(), value) {
            ("env" | "headers", FileValue::Object(values)) => {
                for (name, value) in values {
                    let FileValue::Text(text) = value else { continue };
                    if is_reference(text) || text.is_empty() {
                        continue;
                    }
                    if is_secret(name) || looks_secret(text) {
                        let file = format!("{}-{}", slug(server), slug(name));
                        let place = SecretPlace::File;
                        secrets.push(taken(server, file.clone(), place, text.clone()));
                        *text = format!("file:{folder}/{file}");
                    }
                }
            }
            ("args", FileValue::List(args)) => of_args(server, args, is_secret, &mut secrets),
            ("url", FileValue::Text(url)) => of_url(server, url, is_secret, &mut secrets),
            _ => {}
        }
    }
    secrets
}

fn taken(server: &str, name: String, place: SecretPlace, value: String) -> TakenSecret {
    TakenSecret { server: server.to_owned(), name, place, value }
}

fn of_args(
    server: &str,
    args: &mut [FileValue],
    is_secret: &dyn Fn(&str) -> bool,
    secrets: &mut Vec<TakenSecret>,
) {
    // `--token VALUE`: whether the argument before names a secret.
    let mut named: Option<String> = None;
    for arg in args {
        let FileValue::Text(text) = arg else { continue };
        let before = named.take();
        if is_reference(text) {
            continue;
        }
        if let Some((flag, value)) = text.split_once('=').filter(|_| text.starts_with('-'))
            && !value.is_empty()
            && (is_secret(flag) || looks_secret(value))
        {
            let name = free(server, flag.trim_start_matches('-'), secrets);
            let replaced = format!("{flag}=${{{name}}}");
            secrets.push(taken(server, name, SecretPlace::Variable, value.to_owned()));
            *text = replaced;
        } else if text.starts_with('-') {
            named = is_secret(text).then(|| text.trim_start_matches('-').to_owned());
        } else if let Some(flag) =
            before.or_else(|| looks_secret(text).then(|| "SECRET".to_owned()))
        {
            let name = free(server, &flag, secrets);
            let replaced = format!("${{{name}}}");
            secrets.push(taken(server, name, SecretPlace::Variable, text.clone()));
            *text = replaced;
        }
    }
}

/// Values of the query whose names are those of secrets.
fn of_url(
    server: &str,
    url: &mut String,
    is_secret: &dyn Fn(&str) -> bool,
    secrets: &mut Vec<TakenSecret>,
) {
    let Some((base, query)) =
        url.clone().split_once('?').map(|(a, b)| (a.to_owned(), b.to_owned()))
    else {
        return;
    };
    let parts: Vec<String> = query
        .split('&')
        .map(|part| match part.split_once('=') {
            Some((key, value))
                if !value.is_empty()
                    && !is_reference(value)
                    && (is_secret(key) || looks_secret(value)) =>
            {
                let name = free(server, key, secrets);
                let replaced = format!("{key}=${{{name}}}");
                secrets.push(taken(server, name, SecretPlace::Variable, value.to_owned()));
                replaced
            }
            _ => part.to_owned(),
        })
        .collect();
    *url = format!("{base}?{}", parts.join("&"));
}

/// A variable name that no other secret has.
fn free(server: &str, flag: &str, secrets: &[TakenSecret]) -> String {
    let base = format!("{}_{}", variable_name(server), variable_name(flag));
    let numbered = (2..).map(|number| format!("{base}_{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered);
    names.find(|name| secrets.iter().all(|it| it.name != *name)).unwrap_or(base)
}

fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    text.chars().map(plain).collect()
}

fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:") || text.contains("${")
}

/// Prefixes of well-known keys and tokens.
const PREFIXES: [&str; 16] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "ntn_",
    "Bearer ",
    "tg_",
];

fn looks_secret(text: &str) -> bool {
    text.len() >= 12 && PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_secret(name: &str) -> bool {
        let name = name.to_lowercase();
        ["key", "token", "auth"].iter().any(|part| name.contains(part))
    }

    #[test]
    fn secrets_leave_the_entry() {
        let text = |text: &str| FileValue::text(text);
        let mut entry = FileValue::object([
            ("command", text("npx")),
            (
                "args",
                FileValue::List(
                    [
                        "--api-key",
                        "abc123",
                        "--token=def456",
                        "--port",
                        "80",
                        "ghp_0123456789ab",
                        "--key=${KEY}",
                    ]
                    .map(text)
                    .into(),
                ),
            ),
            (
                "env",
                FileValue::object([
                    ("API_TOKEN", text("ghi789")),
                    ("MODE", text("fast")),
                    ("OTHER", text("sk-0123456789ab")),
                    ("REF_KEY", text("env:X")),
                ]),
            ),
            ("url", text("https://x/?api_key=jkl012&a=1")),
        ]);
        let secrets = externalise("my.srv", &mut entry, "secrets", &is_secret);
        let shown = entry.to_string();
        for value in ["abc123", "def456", "ghi789", "jkl012", "ghp_0", "sk-0"] {
            assert!(!shown.contains(value), "{value}: {shown}");
            assert!(secrets.iter().any(|secret| secret.value.starts_with(value)), "{value}");
            assert!(!format!("{secrets:?}").contains(value), "not in logs");
        }
        for kept in [
            "\"80\"",
            "\"fast\"",
            "env:X",
            "${KEY}",
            "a=1",
            "file:secrets/my-srv-API-TOKEN",
            "--token=${MY_SRV_TOKEN}",
        ] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
    }
}
