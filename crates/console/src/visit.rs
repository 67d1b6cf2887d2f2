//! A visit: one request of a person who is signed in, and what a page can do with it.

use std::sync::Arc;

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_audit::Hash;
use toolgate_control::{Person, Role};

use crate::console::Console;
use crate::fields::Fields;
use crate::flash::Flash;
use crate::problem::{Problem, said};
use crate::texts::Language;

/// The header of requests that scripts of an open page send.
pub(crate) const PART: &str = "x-page-part";

/// The result of a page.
pub(crate) type Outcome = Result<Response, Problem>;

/// One request of a person who is signed in.
pub(crate) struct Visit {
    pub(crate) console: Arc<Console>,
    pub(crate) who: Arc<Person>,
    /// The SHA-256 of the person's token.
    pub(crate) token: Hash,
    /// The SHA-256 of the cookie.
    pub(crate) cookie: Hash,
    pub(crate) csrf: String,
    pub(crate) language: Language,
    /// `dark`, `light` or empty.
    pub(crate) theme: &'static str,
    /// The path and query.
    pub(crate) here: String,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) query: Fields,
    pub(crate) form: Fields,
    pub(crate) headers: HeaderMap,
}

/// A list of the API.
#[derive(Deserialize)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    #[serde(default)]
    pub(crate) next: Option<String>,
}

impl Visit {
    /// The path parameter `name`.
    pub(crate) fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// Whether the person has this role.
    pub(crate) fn may(&self, role: Role) -> bool {
        self.who.may(role)
    }

    /// Reads from the API.
    pub(crate) async fn get<T: DeserializeOwned>(&self, target: &str) -> Result<T, Problem> {
        let body = self.call(&Method::GET, target, Bytes::new()).await?;
        self.read(&body)
    }

    /// An answer of the API as a value.
    #[expect(clippy::unused_self, reason = "reads like the other requests")]
    pub(crate) fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, Problem> {
        serde_json::from_slice(body).map_err(|error| {
            tracing::error!(%error, "the console cannot read an answer of the API");
            Problem::Internal("an answer of the API cannot be read")
        })
    }

    /// All items of a list of the API.
    pub(crate) async fn list<T: DeserializeOwned>(&self, target: &str) -> Result<Vec<T>, Problem> {
        Ok(self.get::<List<T>>(target).await?.items)
    }

    /// Changes something through the API; the answer, or null if it has none.
    pub(crate) async fn send(
        &self,
        method: &Method,
        target: &str,
        body: &Value,
    ) -> Result<Value, Problem> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.call(method, target, body.into()).await?;
        Ok(serde_json::from_slice(&answer).unwrap_or_default())
    }

    /// Serves a request by the API.
    pub(crate) async fn call(
        &self,
        method: &Method,
        target: &str,
        body: Bytes,
    ) -> Result<Bytes, Problem> {
        let response = self.console.admin.serve_console(self.token, method, target, body).await?;
        let body = response.into_body().collect().await;
        Ok(body.map_err(|_| Problem::Internal("an answer of the API broke off"))?.to_bytes())
    }

    /// A text.
    pub(crate) fn tr(&self, key: &str) -> String {
        self.language.text(key, &[])
    }

    /// A text about a value.
    pub(crate) fn trv(&self, key: &str, value: &str) -> String {
        self.language.text(key, &[("value", value.to_owned().into())])
    }

    /// The message for this page. A script that loads a part of an open page takes none: the page
    /// that the person opens next shows it.
    pub(crate) fn take_flash(&self) -> Option<Flash> {
        if self.headers.contains_key(PART) {
            return None;
        }
        self.console.sign_ins.lock().take_flash(&self.cookie)
    }

    /// Ends a form: continues at `to` with a message.
    #[expect(clippy::unnecessary_wraps, reason = "handlers end with it")]
    pub(crate) fn done(&self, to: &str, text: String) -> Outcome {
        self.console.sign_ins.lock().set_flash(&self.cookie, Flash::done(text));
        Ok(see_other(to))
    }

    /// Ends a form that the API may have refused: continues at `to` with a message.
    pub(crate) fn ended<T>(&self, result: Result<T, Problem>, to: &str, text: String) -> Outcome {
        match result {
            Ok(_) => self.done(to, text),
            Err(Problem::Refused(fault)) => {
                let flash = Flash::failed(said(&fault));
                self.console.sign_ins.lock().set_flash(&self.cookie, flash);
                Ok(see_other(to))
            }
            Err(other) => Err(other),
        }
    }

    /// The page to return to after a form: its field `back`, if it is a path of the console.
    pub(crate) fn back(&self, otherwise: &str) -> String {
        own_path(self.form.text("back")).unwrap_or(otherwise).to_owned()
    }
}

/// A path of this console; never another site.
pub(crate) fn own_path(path: &str) -> Option<&str> {
    let is_path = path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains(['\\', '\r', '\n'])
        && !path.contains(char::is_control);
    is_path.then_some(path)
}

/// 303.
pub(crate) fn see_other(to: &str) -> Response {
    let to = own_path(to).unwrap_or("/");
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
}

/// A page.
pub(crate) fn page(template: &impl Template) -> Outcome {
    with_status(StatusCode::OK, template)
}

/// A page with another status.
pub(crate) fn with_status(status: StatusCode, template: &impl Template) -> Outcome {
    let html = template.render()?;
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    Ok((status, [(header::CONTENT_TYPE, kind)], html).into_response())
}

/// What is encoded in a segment of a path: all but the unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A segment of a path.
pub(crate) fn part(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_the_console_are_returned_to() {
        for path in ["/", "/audit?tool=a%20b", "/policies/x#y"] {
            assert_eq!(own_path(path), Some(path));
        }
        for path in [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "/a\r\nX: y",
            "javascript:alert(1)",
        ] {
            assert_eq!(own_path(path), None, "{path}");
        }
    }

    #[test]
    fn a_segment_has_no_reserved_characters() {
        assert_eq!(part("a/b c?ж"), "a%2Fb%20c%3F%D0%B6");
        assert_eq!(part("desk-rules_1.0~"), "desk-rules_1.0~");
    }
}
