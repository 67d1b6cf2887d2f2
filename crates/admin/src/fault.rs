//! Errors: one shape for every response that is not a success.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_control::{Finding, NotAccepted, NotChanged};
use toolgate_store::{ChangeError, NotAudited, NotReadable};

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    status: StatusCode,
    code: &'static str,
    message: String,
    problems: Vec<Flaw>,
}

/// One problem of a document, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Flaw {
    /// The file, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// A stable code.
    pub code: String,
    /// `warning` if it does not prevent the use of the document; absent for errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<&'static str>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// The body of every error.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct Body {
    error: Inner,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ErrorDetail")]
struct Inner {
    /// A stable name.
    code: &'static str,
    /// For people.
    message: String,
    /// All problems of a document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Flaw>,
}

impl Fault {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), problems: Vec::new() }
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The error, for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// All problems of a document.
    pub fn problems(&self) -> &[Flaw] {
        &self.problems
    }

    /// 400: the request is invalid.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// 401: the token is missing or unknown.
    pub fn unauthorized() -> Self {
        let message = "send `Authorization: Bearer <token of a person>`; the token of the person \
                       `admin` is in the file `admin.token` of the data folder";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// 403: the person lacks the role.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404: it does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 405: the path exists for other methods.
    pub(crate) fn not_allowed() -> Self {
        let message = "this path does not support this method; see /api/v1/openapi.json";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    /// 409: its state does not allow this.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 413: the body is too large.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    /// 422: the document is invalid, with all its problems.
    pub fn unprocessable(message: impl Into<String>, problems: Vec<Flaw>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self { problems, ..Self::new(status, "unprocessable", message) }
    }

    /// 408: the body did not arrive in time.
    pub fn too_slow() -> Self {
        let message = "the body did not arrive in time; it was not processed";
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
    }

    /// 503: it cannot be done now and was not done.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }
}

impl From<NotReadable> for Fault {
    fn from(error: NotReadable) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<NotAudited> for Fault {
    fn from(error: NotAudited) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<NotChanged> for Fault {
    fn from(error: NotChanged) -> Self {
        match error {
            NotChanged::Store(error) => error.into(),
            NotChanged::NotActive(_) => Self::unavailable(error.to_string()),
        }
    }
}

impl From<NotAccepted> for Fault {
    fn from(error: NotAccepted) -> Self {
        let rejected = match error {
            NotAccepted::Rejected(rejected) => rejected,
            NotAccepted::Aborted => return Self::unavailable(error.to_string()),
        };
        let message = if rejected.fails_tests {
            "the document fails its own tests"
        } else {
            "the document is not valid"
        };
        Self::unprocessable(message, rejected.findings.iter().map(Flaw::of).collect())
    }
}

impl Flaw {
    /// A finding, as programs read it.
    pub(crate) fn of(finding: &Finding) -> Self {
        Self {
            file: None,
            line: finding.line,
            column: finding.column,
            code: finding.code.clone().into_owned(),
            severity: (!finding.is_error()).then_some("warning"),
            message: finding.message.clone(),
            hint: finding.hint.clone(),
        }
    }
}

impl From<ChangeError> for Fault {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::NameTaken(_)
            | ChangeError::AlreadyFrozen(_)
            | ChangeError::NotPending(_)
            | ChangeError::AlreadyAnswered(_) => Self::conflict(error.to_string()),
            ChangeError::Unknown(_) => Self::not_found(error.to_string()),
            ChangeError::NotAudited(error) => error.into(),
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let Self { status, code, message, problems } = self;
        let body = Body { error: Inner { code, message, problems } };
        let mut response = (status, axum::Json(body)).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}
