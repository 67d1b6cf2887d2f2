//! A request before its sign-in is known: cookies, language, form.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderMap, Method, header};
use bytes::Bytes;
use tokio::time::timeout;
use toolgate_audit::Hash;
use toolgate_gateway::Peer;

use crate::console::Console;
use crate::cookies;
use crate::fields::Fields;
use crate::problem::Problem;
use crate::texts::Language;
use crate::visit::{PART, Visit};

/// The largest body: the form of a policy, in which each byte may take three characters.
const MAX_BODY: usize = 3 * toolgate_policy::MAX_BYTES + 64 * 1024;
/// The largest body of a person who is not signed in: a token, or a choice of language.
const MAX_OUTSIDE: usize = 16 * 1024;
/// The stream that open pages follow.
const EVENTS: &str = "/console/events";
/// How long a body may take to arrive, in total.
const BODY_READ: Duration = Duration::from_mins(1);

/// A request before its sign-in is known.
pub(crate) struct Arrival {
    pub(crate) console: Arc<Console>,
    pub(crate) method: Method,
    pub(crate) language: Language,
    pub(crate) theme: &'static str,
    pub(crate) here: String,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) query: Fields,
    pub(crate) form: Fields,
    pub(crate) headers: HeaderMap,
    pub(crate) address: Option<IpAddr>,
}

impl Arrival {
    pub(crate) async fn read(
        console: Arc<Console>,
        params: &RawPathParams,
        request: Request,
        is_outside: bool,
        (language, theme): (Language, &'static str),
    ) -> Result<Self, Problem> {
        let params: Vec<_> =
            params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let address = request.extensions().get().map(|Peer(address)| *address);
        let (parts, body) = request.into_parts();
        let body = if parts.method.is_safe() {
            Bytes::new()
        } else if is_outside {
            read(body, MAX_OUTSIDE).await?
        } else if is_signed_in(&console, &parts.headers) {
            read(body, MAX_BODY).await?
        } else {
            return Err(Problem::SignedOut);
        };
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_form =
            kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        Ok(Self {
            console,
            language,
            theme,
            here: parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned(),
            query: Fields::read(parts.uri.query().unwrap_or_default().as_bytes()),
            form: if is_form { Fields::read(&body) } else { Fields::default() },
            method: parts.method,
            headers: parts.headers,
            params,
            address,
        })
    }

    /// The visit of the person whose cookie this request carries.
    pub(crate) fn visit(self) -> Option<Visit> {
        let cookie = cookies::sign_in(&self.headers, self.console.is_https(&self.headers))?;
        let cookie = Hash::of(cookie.as_bytes());
        let now = self.console.admin.now();
        // What an open page loads by itself is no sign of a person.
        let is_automatic = self.method.is_safe()
            && (self.headers.contains_key(PART) || self.here.starts_with(EVENTS));
        let signed_in = if is_automatic {
            self.console.sign_ins.lock().look(&cookie, now)?
        } else {
            self.console.sign_ins.lock().touch(&cookie, now)?
        };
        let Some(who) = self.console.admin.person(&signed_in.token) else {
            self.console.sign_ins.lock().end(&cookie);
            return None;
        };
        Some(Visit {
            who,
            token: signed_in.token,
            cookie,
            csrf: signed_in.csrf,
            console: self.console,
            language: self.language,
            theme: self.theme,
            here: self.here,
            params: self.params,
            query: self.query,
            form: self.form,
            headers: self.headers,
        })
    }
}

/// Whether these headers have the cookie of a valid sign-in; asked before a large body is read.
fn is_signed_in(console: &Console, headers: &HeaderMap) -> bool {
    let cookie = cookies::sign_in(headers, console.is_https(headers));
    let cookie = cookie.map(|cookie| Hash::of(cookie.as_bytes()));
    let known = cookie.and_then(|it| console.sign_ins.lock().look(&it, console.admin.now()));
    known.is_some_and(|known| console.admin.person(&known.token).is_some())
}

async fn read(body: Body, most: usize) -> Result<Bytes, Problem> {
    // What is announced as too large is not awaited.
    if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        return Err(Problem::TooLarge);
    }
    match timeout(BODY_READ, to_bytes(body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) | Err(_) => Err(Problem::TooLarge),
    }
}

/// The language: `?lang=`, then the language chosen before, then that of the browser.
pub(crate) fn language_of(request: &Request) -> Language {
    let headers = request.headers();
    let asked = Fields::read(request.uri().query().unwrap_or_default().as_bytes());
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    Language::of_tag(asked.text("lang"))
        .or_else(|| cookies::language(headers).and_then(Language::of_tag))
        .or_else(|| accepted.and_then(Language::accepted))
        .unwrap_or_default()
}

/// The theme that was chosen.
pub(crate) fn theme_of(headers: &HeaderMap) -> &'static str {
    match cookies::theme(headers) {
        Some("dark") => "dark",
        Some("light") => "light",
        _ => "",
    }
}
