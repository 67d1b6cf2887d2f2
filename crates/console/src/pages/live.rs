//! The stream that tells open pages that something happened.

use axum::http::Method;
use bytes::Bytes;

use crate::visit::{Outcome, Visit};

/// The events of the API, for the person who is signed in. Pages load themselves again; they do not
/// use what an event holds.
pub(crate) async fn events(visit: Visit) -> Outcome {
    let admin = &visit.console.admin;
    let target = "/api/v1/events";
    Ok(admin.serve_console(visit.token, &Method::GET, target, Bytes::new()).await?)
}
