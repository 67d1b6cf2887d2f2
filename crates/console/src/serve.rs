//! From a request to a page: sign-in, CSRF token, language, handler, headers.
//!
//! Invariant: a handler of [`Handle::SignedIn`] or [`Handle::Page`] runs only for a valid sign-in, and
//! one that changes something only if the request carries the CSRF token of that sign-in.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use toolgate_audit::Hash;

use crate::arrival::{Arrival, language_of, theme_of};
use crate::console::Console;
use crate::cookies;
use crate::fields::Fields;
use crate::pages::failure;
use crate::problem::Problem;
use crate::security_headers::secured;
use crate::texts::Language;
use crate::visit::{Outcome, Visit, see_other};

/// The header that scripts send instead of the form's field.
const CSRF: &str = "x-csrf-token";

/// Serves one request.
pub(crate) async fn serve(
    console: Arc<Console>,
    handle: &'static Handle,
    params: &RawPathParams,
    request: Request,
) -> Response {
    let https = console.is_https(request.headers());
    let (language, theme) = (language_of(&request), theme_of(request.headers()));
    let asked = Fields::read(request.uri().query().unwrap_or_default().as_bytes());
    let chosen = Language::of_tag(asked.text("lang"));
    let here = request.uri().path_and_query().map_or("/", |it| it.as_str()).to_owned();
    let is_outside = matches!(handle, Handle::Outside(_));
    let look = (language, theme);
    let answered = match Arrival::read(console, params, request, is_outside, look).await {
        Ok(arrival) => answer(arrival, handle).await,
        Err(problem) => Err(problem),
    };
    let mut response =
        answered.unwrap_or_else(|problem| failure::page(&problem, language, theme, &here));
    if let Some(cookie) = chosen.and_then(|it| cookies::set_language(it.tag(), https)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    secured(response)
}

async fn answer(arrival: Arrival, handle: &'static Handle) -> Outcome {
    let changes = !arrival.method.is_safe();
    if changes && is_cross_site(&arrival.headers) {
        return Err(Problem::Forged);
    }
    match handle {
        Handle::Outside(handle) => handle(arrival).await,
        Handle::SignedIn(handle) => match arrival.visit() {
            Some(visit) if changes && !visit.has_csrf_token() => Err(Problem::Forged),
            Some(visit) => handle(visit).await,
            None => Err(Problem::SignedOut),
        },
        Handle::Page(handle) => {
            let to_sign_in = to_sign_in(&arrival);
            match arrival.visit() {
                Some(visit) => handle(visit).await,
                None => Ok(to_sign_in),
            }
        }
    }
}

/// The way to the sign-in page. A link on another site sends no cookie at first, so its target
/// loads itself once more.
fn to_sign_in(arrival: &Arrival) -> Response {
    let here = arrival.here.as_str();
    if fetch_site(&arrival.headers) == Some("cross-site") {
        return failure::again(here, arrival.language, arrival.theme);
    }
    let next: String = url::form_urlencoded::byte_serialize(here.as_bytes()).collect();
    see_other(&if here == "/" { "/login".to_owned() } else { format!("/login?next={next}") })
}

/// How a path is handled.
pub(crate) enum Handle {
    /// Without a sign-in.
    Outside(fn(Arrival) -> Running),
    /// For a person who is signed in; others are refused.
    SignedIn(fn(Visit) -> Running),
    /// The same; others are led to the sign-in page.
    Page(fn(Visit) -> Running),
}

type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

impl Visit {
    fn has_csrf_token(&self) -> bool {
        let header = self.headers.get(CSRF).and_then(|value| value.to_str().ok());
        let given = header.unwrap_or_else(|| self.form.raw("csrf"));
        // Hashes are compared, so that the time says nothing about the token.
        !self.csrf.is_empty() && Hash::of(given.as_bytes()) == Hash::of(self.csrf.as_bytes())
    }
}

/// What a browser says about the page that the request comes from.
fn fetch_site(headers: &HeaderMap) -> Option<&str> {
    headers.get("sec-fetch-site").and_then(|site| site.to_str().ok())
}

fn is_cross_site(headers: &HeaderMap) -> bool {
    fetch_site(headers).is_some_and(|site| !matches!(site, "same-origin" | "none"))
}
