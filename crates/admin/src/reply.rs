//! Response shapes that all routes share.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::fault::Fault;
use crate::query::Query;

/// The result of a handler.
pub(crate) type Answer = Result<Response, Fault>;

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct List<T> {
    /// The items.
    pub(crate) items: Vec<T>,
    /// Pass it as `after` to continue; null at the end.
    pub(crate) next: Option<String>,
}

/// An item of a list, and whether a freeze stops it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Listed{T}")]
pub(crate) struct Listed<T> {
    /// The item.
    #[serde(flatten)]
    pub(crate) item: T,
    /// Whether it is frozen, by itself or with everything.
    pub(crate) frozen: bool,
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

/// A page of a list that is in memory, by `after` and `limit`. The cursor is the index of the last
/// item; a list that changes between two pages may skip or repeat items.
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
