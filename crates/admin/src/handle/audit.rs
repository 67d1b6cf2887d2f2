//! `GET /api/v1/audit`.

use axum::http::header;
use axum::response::IntoResponse as _;
use toolgate_audit::{Decision, Row};
use toolgate_store::Page;

use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::Answer;

/// At most so many rows at a time.
const MOST: usize = 1_000;
const USUAL: usize = 100;

pub(crate) async fn list(ask: Ask) -> Answer {
    let query = &ask.query;
    let limit = query.number("limit")?.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Fault::bad_request(format!("`limit` must be from 1 to {MOST}")));
    }
    let decision = query.text("decision").map(Decision::parse).transpose().map_err(|_| {
        let words: Vec<&str> = Decision::ALL.iter().map(|decision| decision.as_str()).collect();
        Fault::bad_request(format!("`decision` must be one of {}", words.join(", ")))
    })?;
    let mut page = Page {
        after: query.number("after")?.unwrap_or(0),
        limit,
        grant: query.text("grant").map(str::to_owned),
        tool: query.text("tool").map(str::to_owned),
        decision,
    };
    let store = &ask.admin.given.store;
    let rows = store.rows(page.clone()).await?;
    let mut next = None;
    if let Some(last) = rows.last().filter(|_| rows.len() == limit) {
        (page.after, page.limit) = (last.seq, 1);
        next = (!store.rows(page).await?.is_empty()).then_some(last.seq);
    }
    // Rows are answered in their canonical form, as they are hashed.
    let items: Vec<String> = rows.iter().map(Row::to_json).collect();
    let next = next.map_or_else(|| "null".to_owned(), |next| format!("\"{next}\""));
    let body = format!("{{\"items\":[{}],\"next\":{next}}}", items.join(","));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}
