//! The client of verbs that need a running gateway: they use the admin API.
//!
//! Invariant: the token is never printed, and sent only to the address that was given or that the
//! data folder names.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use http::{Method, Request, header};
use serde_json::Value;
use toolgate_control::visible;
use toolgate_edge::remote::Client;

use crate::args::AdminArgs;
use crate::data::{announced, client_of, find_data, read_token};

/// The variable with the token of a person.
const TOKEN: &str = "TOOLGATE_ADMIN_TOKEN";
/// The largest response.
const MAX_ANSWER: usize = 256 * 1024 * 1024;
/// How long a response may take: a test of a server takes at most a minute.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A client of the admin API.
pub(crate) struct AdminClient {
    base: String,
    token: String,
    /// Where the token is from.
    token_source: String,
    client: Client,
    runtime: tokio::runtime::Runtime,
}

impl AdminClient {
    /// Finds the gateway and the token. Nothing is sent yet.
    pub(crate) fn new(args: &AdminArgs) -> anyhow::Result<Self> {
        let folder = || find_data(args.data.data.as_deref(), args.data.config.as_deref());
        let line = match &args.admin {
            Some(url) => serde_json::json!({ "admin": url }),
            None => serde_json::from_str(&announced(&folder()?, "--admin")?)
                .context("`serve.json` cannot be read")?,
        };
        let base = running(&line)?;
        let (token, token_source) = match std::env::var(TOKEN) {
            Ok(token) if !token.is_empty() => (token, format!("the variable {TOKEN}")),
            _ => of_folder(&folder()?)?,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        let base = base.trim_end_matches('/').to_owned();
        // Its connection pool needs a runtime.
        let client = {
            let _inside = runtime.enter();
            client_of(&line)
        };
        Ok(Self { base, token, token_source, client, runtime })
    }

    /// The address of the admin listener.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// GETs a path.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(&Method::GET, path, None)
    }

    /// All items of a list, page by page.
    pub(crate) fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let (mut items, mut after) = (Vec::new(), String::new());
        loop {
            let mut part = self.get(&format!("{path}{after}"))?;
            match part.get_mut("items").map(Value::take) {
                Some(Value::Array(more)) => items.extend(more),
                _ => bail!("the response of the gateway is not a list"),
            }
            match part.get("next").and_then(Value::as_str) {
                Some(next) => {
                    let joint = if path.contains('?') { '&' } else { '?' };
                    after = format!("{joint}after={next}");
                }
                None => return Ok(items),
            }
        }
    }

    /// Sends a request; the body of the response, null if it is empty.
    pub(crate) fn send(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        self.send_text(method, path, body.map(Value::to_string).unwrap_or_default())
    }

    /// Creates something; whether it is new (201).
    pub(crate) fn create(&self, path: &str, body: &Value) -> anyhow::Result<(Value, bool)> {
        let (status, made) = self.exchange(&Method::POST, path, body.to_string())?;
        Ok((made, status == http::StatusCode::CREATED))
    }

    /// Sends a request with this text as its body.
    pub(crate) fn send_text(
        &self,
        method: &Method,
        path: &str,
        body: String,
    ) -> anyhow::Result<Value> {
        self.exchange(method, path, body).map(|(_, value)| value)
    }

    fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: String,
    ) -> anyhow::Result<(http::StatusCode, Value)> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Bytes::from(body))
            .with_context(|| format!("`{}` is not a valid address", self.base))?;
        let exchange =
            async { tokio::time::timeout(TIMEOUT, self.client.ask(request, MAX_ANSWER)).await };
        let answered = self.runtime.block_on(exchange);
        let unreachable = |why: String| {
            anyhow!("cannot reach the gateway at {}: {why}; is it running?", self.base)
        };
        let answered = answered.map_err(|_| unreachable("no answer".to_owned()))?;
        let response = answered.map_err(|error| unreachable(error.to_string()))?;
        let value = match response.body().as_ref() {
            b"" => Value::Null,
            text => serde_json::from_slice(text).unwrap_or(Value::Null),
        };
        if response.status().is_success() {
            return Ok((response.status(), value));
        }
        if response.status() == http::StatusCode::UNAUTHORIZED {
            let Self { base, token_source, .. } = self;
            bail!("the gateway at {base} does not accept the token from {token_source}");
        }
        Err(refused(response.status(), &value))
    }
}

/// The token of the person `admin` in a data folder, and where it is.
fn of_folder(folder: &Path) -> anyhow::Result<(String, String)> {
    let file = folder.join("admin.token");
    if !file.exists() {
        bail!(
            "there is no admin token in `{}`; set {TOKEN}, or name the data folder with --data",
            file.display()
        );
    }
    Ok((read_token(folder)?, format!("the file `{}`", file.display())))
}

/// The admin address of the running gateway.
fn running(line: &Value) -> anyhow::Result<String> {
    match line.get("admin").and_then(Value::as_str) {
        Some(url) => Ok(url.to_owned()),
        None => bail!("the running gateway has no admin listener (`listen.admin` is off)"),
    }
}

/// The error of the gateway, with all its problems.
fn refused(status: http::StatusCode, answer: &Value) -> anyhow::Error {
    let error = answer.get("error");
    let part = |of: Option<&Value>, name: &str| {
        of.and_then(|of| of.get(name)).and_then(Value::as_str).map(visible)
    };
    let message =
        part(error, "message").unwrap_or_else(|| format!("the gateway answered {status}"));
    if status != http::StatusCode::UNPROCESSABLE_ENTITY {
        return anyhow!(message);
    }
    let problems = error.and_then(|error| error.get("problems")).and_then(Value::as_array);
    let read = |problem: &Value| {
        let text = |name| part(Some(problem), name).unwrap_or_default();
        let number = |name| problem.get(name).and_then(Value::as_u64).unwrap_or_default();
        let code = text("code");
        let severity = part(Some(problem), "severity").unwrap_or_else(|| "error".to_owned());
        let text = format!("{severity}[{code}]: {}; {}", text("message"), text("hint"));
        (format!("{}:{}", number("line"), number("column")), text)
    };
    NotValid { message, problems: problems.into_iter().flatten().map(read).collect() }.into()
}

/// The gateway did not accept a document, and why.
#[derive(Debug, thiserror::Error)]
#[error("{message}{}", self.lines(|place| format!("{place}: ")))]
pub(crate) struct NotValid {
    message: String,
    /// Line and column in the document, and what is wrong.
    problems: Vec<(String, String)>,
}

impl NotValid {
    /// For a document that the user did not write, so that places mean nothing.
    pub(crate) fn without_places(&self) -> String {
        format!("{}{}", self.message, self.lines(|_| String::new()))
    }

    fn lines(&self, shown: impl Fn(&str) -> String) -> String {
        let line = |(place, text): &(String, String)| format!("\n  {}{text}", shown(place));
        let lines: Vec<String> = self.problems.iter().map(line).collect();
        lines.concat()
    }
}

/// A segment of a path, percent-encoded.
pub(crate) fn part(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let encoded = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths() {
        for (text, expected) in [("a-b", "a-b"), ("a/b?c", "a%2Fb%3Fc"), ("é", "%C3%A9")] {
            assert_eq!(part(text), expected);
        }
    }

    #[test]
    fn refusals_list_all_problems() {
        let answer = serde_json::json!({"error": {"code": "unprocessable", "message": "not valid",
            "problems": [{"line": 2, "column": 3, "code": "TG1", "message": "wrong\u{1b}", "hint": "fix it"}]}});
        let error = refused(http::StatusCode::UNPROCESSABLE_ENTITY, &answer);
        assert_eq!(error.to_string(), "not valid\n  2:3: error[TG1]: wrong\\u{1b}; fix it");
        let error = error.downcast::<NotValid>().unwrap();
        assert_eq!(error.without_places(), "not valid\n  error[TG1]: wrong\\u{1b}; fix it");
        let text = refused(http::StatusCode::BAD_GATEWAY, &Value::Null).to_string();
        assert_eq!(text, "the gateway answered 502 Bad Gateway");
    }
}
