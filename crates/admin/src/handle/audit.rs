//! The audit: `GET /api/v1/audit`, the rows of one call, verification.

use std::sync::Arc;

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_audit::{CallId, Decision, Row, RowKind};
use toolgate_store::RowQuery;

use crate::api::Ask;
use crate::fault::Fault;
use crate::query::Query;
use crate::reply::{Answer, ok};

/// The most rows of one page.
const MOST: usize = 1_000;
const USUAL: usize = 100;

/// The query that the parameters of a request describe.
fn row_query(query: &Query) -> Result<RowQuery, Fault> {
    let limit = query.number("limit")?.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Fault::bad_request(format!("`limit` must be from 1 to {MOST}")));
    }
    let text = |name: &str| query.text(name).map(str::to_owned);
    let time = |name: &str| {
        let given = query.text(name).map(str::parse::<Timestamp>).transpose();
        given.map_err(|_| Fault::bad_request(format!("`{name}` must be an RFC 3339 time")))
    };
    let kind = query.text("kind").map(RowKind::parse).transpose().map_err(|_| {
        let words: Vec<&str> = RowKind::ALL.iter().map(|kind| kind.as_str()).collect();
        Fault::bad_request(format!("`kind` must be one of {}", words.join(", ")))
    })?;
    let decision = query.text("decision").map(Decision::parse).transpose().map_err(|_| {
        let words: Vec<&str> = Decision::ALL.iter().map(|decision| decision.as_str()).collect();
        Fault::bad_request(format!("`decision` must be one of {}", words.join(", ")))
    })?;
    let newest_first = match query.text("order") {
        None => false,
        Some("newest") => true,
        Some(_) => return Err(Fault::bad_request("`order` must be `newest`")),
    };
    Ok(RowQuery {
        after: query.number("after")?.unwrap_or(0),
        before: query.number("before")?,
        newest_first,
        limit,
        grant: text("grant"),
        tool: text("tool"),
        decision,
        kind,
        person: text("person"),
        server: text("server"),
        session: text("session"),
        code: text("code"),
        since: time("since")?,
        until: time("until")?,
    })
}

pub(crate) async fn list(ask: Ask) -> Answer {
    let mut page = row_query(&ask.query)?;
    let store = &ask.admin.store();
    let rows = store.rows(page.clone()).await?;
    let mut next = None;
    if let Some(last) = rows.last().filter(|_| rows.len() == page.limit) {
        if page.newest_first {
            page.before = Some(last.seq);
        } else {
            page.after = last.seq;
        }
        page.limit = 1;
        next = (!store.rows(page).await?.is_empty()).then_some(last.seq);
    }
    Ok(rows_page(&rows, next))
}

/// The rows of one call.
pub(crate) async fn of_call(ask: Ask) -> Answer {
    let id = ask.param("call_id");
    let unknown = || Fault::not_found(format!("there is no call `{id}`"));
    let call = CallId::parse(id).map_err(|_| unknown())?;
    let rows = ask.admin.store().call_rows(call).await?;
    if rows.is_empty() {
        return Err(unknown());
    }
    Ok(rows_page(&rows, None))
}

/// The result of a verification.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AuditVerification")]
pub(crate) struct Verified {
    /// Whether every row is as it was recorded.
    ok: bool,
    /// The number of rows read.
    rows: u64,
    /// The first bad row; null if there is none.
    first_bad: Option<u64>,
    /// The last row that a signed checkpoint covers; later rows could be rewritten without the key.
    signed: u64,
    /// The hash of the last good row.
    head: String,
}

/// Verifies the whole audit, as `toolgate audit verify` does.
pub(crate) async fn verify(ask: Ask) -> Answer {
    let Ok(_turn) = ask.admin.verifying.try_lock() else {
        return Err(Fault::conflict("the audit is being verified; try again when that has ended"));
    };
    let verify = Arc::clone(&ask.admin.given.verify);
    let report = tokio::task::spawn_blocking(move || verify()).await;
    let report = report.map_err(|_| Fault::unavailable("the verification broke off"))?;
    let report =
        report.map_err(|why| Fault::unavailable(format!("cannot read the audit: {why}")))?;
    ok(&Verified {
        ok: report.first_bad.is_none(),
        rows: report.rows,
        first_bad: report.first_bad.map(|bad| bad.seq),
        signed: report.signed,
        head: report.head.hash.to_string(),
    })
}

/// Rows are returned in their canonical form, as they are hashed.
fn rows_page(rows: &[Row], next: Option<u64>) -> Response {
    let items: Vec<String> = rows.iter().map(Row::to_json).collect();
    let next = next.map_or_else(|| "null".to_owned(), |next| format!("\"{next}\""));
    let body = format!("{{\"items\":[{}],\"next\":{next}}}", items.join(","));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
