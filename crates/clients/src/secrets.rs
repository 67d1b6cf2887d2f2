//! Literal secrets of imported entries: each becomes a reference, and its value is handed to the
//! caller, who writes it to a file for its owner alone.
//!
//! A value of `env` or `headers` becomes `file:PATH`. Inside `args` and `url`, where a file cannot be
//! named, it becomes `${NAME}`.
//!
//! Invariant: no value that was recognised as a secret stays in an entry.
//! Invariant: two secrets never have one name, whatever their servers are called.

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
/// to the configuration. `is_secret` judges the names of variables and headers. The secrets are added
/// to those of other servers of the same file.
pub fn externalise(
    server: &str,
    entry: &mut FileValue,
    folder: &str,
    is_secret: &dyn Fn(&str) -> bool,
    secrets: &mut Vec<TakenSecret>,
) {
    let FileValue::Object(members) = entry else { return };
    for (key, value) in members {
        match (key.as_str(), value) {
            ("env" | "headers", FileValue::Object(values)) => {
                for (name, value) in values {
                    let FileValue::Text(text) = value else { continue };
                    if is_reference(text) || text.is_empty() {
                        continue;
                    }
                    if is_secret(name) || looks_secret(text) || password_in(text).is_some() {
                        let file = free(format!("{}-{}", slug(server), slug(name)), '-', secrets);
                        let place = SecretPlace::File;
                        secrets.push(taken(server, file.clone(), place, text.clone()));
                        *text = format!("file:{folder}/{file}");
                    }
                }
            }
            ("args", FileValue::List(args)) => of_args(server, args, is_secret, secrets),
            ("url", FileValue::Text(url)) => of_url(server, url, is_secret, secrets),
            _ => {}
        }
    }
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
        if text.contains("://") && text.contains('?') {
            of_url(server, text, is_secret, secrets);
        }
        let found = match before {
            Some(label) if !text.starts_with('-') => {
                Some(Part { label, before: "", value: text, after: "" })
            }
            _ => secret_part(text, is_secret),
        };
        if let Some(Part { label, before, value, after }) = found {
            let (name, value) = (variable(server, &label, secrets), value.to_owned());
            *text = format!("{before}${{{name}}}{after}");
            secrets.push(taken(server, name, SecretPlace::Variable, value));
        } else if text.starts_with('-') && is_secret(text) {
            named = Some(text.trim_start_matches('-').to_owned());
        }
    }
}

/// A secret in the middle of an argument.
struct Part<'a> {
    /// What it is, for its name.
    label: String,
    before: &'a str,
    value: &'a str,
    after: &'a str,
}

/// The secret in `--flag=VALUE`, `NAME=VALUE`, `Header: VALUE`, in the password of a URL, or a
/// well-known kind of token.
fn secret_part<'a>(text: &'a str, is_secret: &dyn Fn(&str) -> bool) -> Option<Part<'a>> {
    if let Some((before, value, after)) = password_in(text) {
        return Some(Part { label: "PASSWORD".to_owned(), before, value, after });
    }
    // The secret is the end of the text.
    let part = |label: &str, value: &'a str| {
        let label = label.trim_start_matches('-').to_owned();
        let before = text.strip_suffix(value)?;
        Some(Part { label, before, value, after: "" }).filter(|_| !value.is_empty())
    };
    if looks_secret(text) {
        return part("SECRET", without_scheme(text));
    }
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    if let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_name(name)) {
        let value = without_scheme(value);
        return (is_secret(name) || looks_secret(value)).then(|| part(name, value))?;
    }
    let (name, value) = text.split_once(':').filter(|(name, _)| is_name(name))?;
    let bare = without_scheme(value.trim_start());
    let is_header = is_secret(name) && bare.len() < value.len();
    (is_header || looks_secret(bare)).then(|| part(name, bare))?
}

/// The part of a header's value that is secret.
fn without_scheme(value: &str) -> &str {
    let schemes = ["Bearer ", "bearer ", "Basic ", "Token ", "token "];
    schemes.iter().find_map(|scheme| value.strip_prefix(scheme)).unwrap_or(value).trim_start()
}

/// The password in `scheme://user:password@host`, with what is before and after it.
fn password_in(text: &str) -> Option<(&str, &str, &str)> {
    let authority = text.find("://")? + 3;
    let (_, rest) = text.split_at_checked(authority)?;
    let length = rest.split(['/', '?', '#']).next()?.rfind('@')?;
    let (user, _) = rest.split_at_checked(length)?;
    let start = authority + user.find(':')? + 1;
    let (before, rest) = text.split_at_checked(start)?;
    let (password, after) = rest.split_at_checked(authority + length - start)?;
    (!password.is_empty() && !is_reference(password)).then_some((before, password, after))
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
                let name = variable(server, key, secrets);
                let replaced = format!("{key}=${{{name}}}");
                secrets.push(taken(server, name, SecretPlace::Variable, value.to_owned()));
                replaced
            }
            _ => part.to_owned(),
        })
        .collect();
    *url = format!("{base}?{}", parts.join("&"));
}

/// The name of a variable that no other secret has.
fn variable(server: &str, label: &str, secrets: &[TakenSecret]) -> String {
    free(format!("{}_{}", variable_name(server), variable_name(label)), '_', secrets)
}

/// The name, with a number if another secret has it. Upper and lower case are one on some disks.
fn free(base: String, joint: char, secrets: &[TakenSecret]) -> String {
    let numbered = (2..).map(|number| format!("{base}{joint}{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered);
    let is_free = |name: &String| secrets.iter().all(|it| !it.name.eq_ignore_ascii_case(name));
    names.find(is_free).unwrap_or(base)
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
    fn servers_with_like_names_keep_their_own_secrets() {
        let mut secrets = Vec::new();
        for (number, server) in ["сервер", "версер", "------", "СЕРВЕР"].into_iter().enumerate()
        {
            let (file, argument) = (format!("file{number}"), format!("--token=argument{number}"));
            let env = FileValue::object([
                ("A_KEY", FileValue::text(&file)),
                ("A-KEY", FileValue::text(format!("{file}b"))),
            ]);
            let args = FileValue::List(vec![FileValue::text(&argument)]);
            let mut entry = FileValue::object([("env", env), ("args", args)]);
            externalise(server, &mut entry, "secrets", &is_secret, &mut secrets);
            let shown = entry.to_string();
            for (value, form) in
                [(file, "file:secrets/NAME\""), (format!("argument{number}"), "${NAME}")]
            {
                let secret = secrets.iter().find(|it| it.value == value).unwrap();
                assert!(shown.contains(&form.replace("NAME", &secret.name)), "{value}: {shown}");
            }
        }
        let mut names: Vec<&str> = secrets.iter().map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((secrets.len(), names.len()), (12, 12), "{names:?}");
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
                        "-e",
                        "GITHUB_TOKEN=mno345",
                        "--header",
                        "Authorization: Bearer pqr678",
                        "postgresql://stu901:stu901@host/db",
                        "https://y/?token=vwx234",
                        "--auth",
                        "-v",
                        "C:\\keys\\path",
                        "http://localhost:8080/",
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
                    ("DATABASE_URL", text("postgres://u:yza567@h/d")),
                ]),
            ),
            ("url", text("https://x/?api_key=jkl012&a=1")),
        ]);
        let mut secrets = Vec::new();
        externalise("my.srv", &mut entry, "secrets", &is_secret, &mut secrets);
        let shown = entry.to_string();
        for value in [
            "abc123", "def456", "ghi789", "jkl012", "ghp_0", "sk-0", "mno345", "pqr678", ":stu901",
            "vwx234", "yza567",
        ] {
            assert!(!shown.contains(value), "{value}: {shown}");
            let value = value.trim_start_matches(':');
            assert!(secrets.iter().any(|secret| secret.value.contains(value)), "{value}");
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
            "GITHUB_TOKEN=${MY_SRV_GITHUB_TOKEN}",
            "Authorization: Bearer ${MY_SRV_AUTHORIZATION}",
            "postgresql://stu901:${MY_SRV_PASSWORD}@host/db",
            "-v",
            "C:\\\\keys",
            "http://localhost:8080/",
        ] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
    }
}
