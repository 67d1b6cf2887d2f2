//! Answers of the shapes that every route shares.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::fault::Fault;
use crate::query::Query;

/// What a handler gives back.
pub(crate) type Answer = Result<Response, Fault>;

/// A part of a list, and how to go on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct List<T> {
    /// What there is.
    pub(crate) items: Vec<T>,
    /// Give it as `after` to get more; null at the end.
    pub(crate) next: Option<String>,
}

/// 200 with a body.
pub(crate) fn ok(body: &impl Serialize) -> Answer {
    with(StatusCode::OK, body)
}

/// 201 with a body.
pub(crate) fn created(body: &impl Serialize) -> Answer {
    with(StatusCode::CREATED, body)
}

/// 204.
#[expect(clippy::unnecessary_wraps, reason = "handlers end with it")]
pub(crate) fn done() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A list that is held as a whole: the part that `after` and `limit` ask for. The cursor is the
/// place of the last item; a list that changes between two parts may skip or repeat some.
pub(crate) fn page<T: Serialize>(items: Vec<T>, query: &Query) -> Answer {
    let from = query.number("after")?.unwrap_or(0);
    let limit = query.number("limit")?.unwrap_or(usize::MAX).max(1);
    let rest = items.len().saturating_sub(from);
    let next = (rest > limit).then(|| (from + limit).to_string());
    let items = items.into_iter().skip(from).take(limit).collect();
    ok(&List { items, next })
}

#[expect(clippy::unnecessary_wraps, reason = "handlers end with it")]
fn with(status: StatusCode, body: &impl Serialize) -> Answer {
    Ok((status, axum::Json(body)).into_response())
}
