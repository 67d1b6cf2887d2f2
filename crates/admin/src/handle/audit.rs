//! `GET /api/v1/audit`.

use std::sync::Arc;

use axum::http::header;
use axum::response::IntoResponse as _;
use jiff::Timestamp;
use toolgate_audit::{Decision, Row, RowKind};
use toolgate_store::RowQuery;

use crate::api::Ask;
use crate::fault::Fault;
use crate::query::Query;
use crate::reply::Answer;

/// The most rows of one page.
const MOST: usize = 1_000;
const USUAL: usize = 100;
/// How many pages of rows are scanned for one answer, at most.
const LOOKS: u32 = 20;

/// Filters beyond those of the store.
#[derive(Default, PartialEq)]
struct Wanted {
    kind: Option<RowKind>,
    person: Option<String>,
    server: Option<String>,
    session: Option<String>,
    code: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Wanted {
    fn read(query: &Query) -> Result<Self, Fault> {
        let text = |name: &str| query.text(name).map(str::to_owned);
        let time = |name: &str| {
            let given = query.text(name).map(str::parse::<Timestamp>).transpose();
            given.map_err(|_| Fault::bad_request(format!("`{name}` must be an RFC 3339 time")))
        };
        let kind = query.text("kind").map(RowKind::parse).transpose().map_err(|_| {
            let words: Vec<&str> = RowKind::ALL.iter().map(|kind| kind.as_str()).collect();
            Fault::bad_request(format!("`kind` must be one of {}", words.join(", ")))
        })?;
        Ok(Self {
            kind,
            person: text("person"),
            server: text("server"),
            session: text("session"),
            code: text("code"),
            since: time("since")?,
            until: time("until")?,
        })
    }

    fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// `since` is included, `until` is not.
    fn has(&self, row: &Row) -> bool {
        let row = &row.draft;
        let same = |wanted: &Option<String>, found: &Option<Arc<str>>| {
            wanted.is_none() || wanted.as_deref() == found.as_deref()
        };
        self.kind.is_none_or(|kind| kind == row.kind)
            && same(&self.person, &row.person)
            && same(&self.server, &row.server)
            && same(&self.session, &row.session_id)
            && same(&self.code, &row.error_code)
            && self.since.is_none_or(|since| since <= row.time)
            && self.until.is_none_or(|until| row.time < until)
    }
}

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
    let wanted = Wanted::read(query)?;
    let mut page = RowQuery {
        after: query.number("after")?.unwrap_or(0),
        limit: if wanted.is_all() { limit } else { MOST },
        grant: query.text("grant").map(str::to_owned),
        tool: query.text("tool").map(str::to_owned),
        decision,
    };
    let store = &ask.admin.store();
    let (mut rows, mut next) = (Vec::new(), None);
    for looked in 1.. {
        let part = store.rows(page.clone()).await?;
        let is_last = part.len() < page.limit;
        page.after = part.last().map_or(page.after, |row| row.seq);
        rows.extend(part.into_iter().filter(|row| wanted.has(row)));
        if rows.len() > limit {
            rows.truncate(limit);
            next = rows.last().map(|row| row.seq);
            break;
        }
        if is_last {
            break;
        }
        if looked == LOOKS {
            // Bounds the time of one request; the client continues from here.
            next = Some(page.after);
            break;
        }
    }
    // Rows are returned in their canonical form, as they are hashed.
    let items: Vec<String> = rows.iter().map(Row::to_json).collect();
    let next = next.map_or_else(|| "null".to_owned(), |next| format!("\"{next}\""));
    let body = format!("{{\"items\":[{}],\"next\":{next}}}", items.join(","));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}
