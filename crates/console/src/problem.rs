//! Why a page cannot be shown.

use axum::http::StatusCode;
use toolgate_admin::{Fault, Unanswered};

/// Why a request has no page.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The sign-in has ended.
    SignedOut,
    /// The form has no valid CSRF token, or comes from another site.
    Forged,
    /// The body is too large.
    TooLarge,
    /// The path does not exist.
    NotFound,
    /// The API refused it.
    Refused(Fault),
    /// A template or an answer of the API is broken: a mistake in toolgate.
    Internal(&'static str),
}

impl Problem {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::SignedOut => StatusCode::UNAUTHORIZED,
            Self::Forged => StatusCode::FORBIDDEN,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Refused(fault) => fault.status(),
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The key of its text, and what the API said.
    pub(crate) fn text(&self) -> (&'static str, String) {
        match self {
            Self::SignedOut => ("problem-signed-out", String::new()),
            Self::Forged => ("problem-forged", String::new()),
            Self::TooLarge => ("problem-too-large", String::new()),
            Self::NotFound => ("problem-not-found", String::new()),
            Self::Refused(fault) => ("problem-refused", said(fault)),
            Self::Internal(what) => ("problem-internal", (*what).to_owned()),
        }
    }
}

/// The message of a fault, with every problem of a document.
pub(crate) fn said(fault: &Fault) -> String {
    let mut text = fault.message().to_owned();
    for flaw in fault.problems() {
        let place =
            if flaw.line > 0 { format!("{}:{} ", flaw.line, flaw.column) } else { String::new() };
        let kind = flaw.severity.map(|severity| format!("{severity}: ")).unwrap_or_default();
        text = format!("{text}\n{place}{kind}{}", flaw.message);
    }
    text
}

impl From<Unanswered> for Problem {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::SignedOut => Self::SignedOut,
            Unanswered::Refused(fault) => Self::Refused(fault),
        }
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl From<askama::Error> for Problem {
    fn from(_: askama::Error) -> Self {
        Self::Internal("a page cannot be rendered")
    }
}
