//! Pages about what cannot be shown.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use crate::assets;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::texts::Language;
use crate::visit::with_status;

#[derive(Template)]
#[template(path = "failure.html")]
struct Failure {
    s: Shell,
    assets: &'static str,
    title: String,
    said: String,
    is_signed_out: bool,
}

#[derive(Template)]
#[template(path = "again.html")]
struct Again {
    s: Shell,
    assets: &'static str,
}

/// The page about a problem.
pub(crate) fn page(
    problem: &Problem,
    language: Language,
    theme: &'static str,
    here: &str,
) -> Response {
    let (key, said) = problem.text();
    let s = Shell::outside(language, theme, here.to_owned());
    let title = s.tr(key);
    let is_signed_out = matches!(problem, Problem::SignedOut);
    let page = Failure { s, assets: &assets::VERSION, title, said, is_signed_out };
    with_status(problem.status(), &page)
        .unwrap_or_else(|_| (problem.status(), "the page cannot be rendered\n").into_response())
}

/// A page that loads its own address: the browser then sends the cookie.
pub(crate) fn again(here: &str, language: Language, theme: &'static str) -> Response {
    let s = Shell::outside(language, theme, here.to_owned());
    let page = Again { s, assets: &assets::VERSION };
    with_status(StatusCode::OK, &page)
        .unwrap_or_else(|_| (StatusCode::OK, "load this page again\n").into_response())
}
