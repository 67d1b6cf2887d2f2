//! `GET /api/v1/events`: audit rows as they are written.
//!
//! A stream polls the store, so it includes rows of other processes. Streams are few, so that a
//! forgotten browser page costs little.

use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::IntoResponse as _;
use bytes::Bytes;
use futures_util::stream;
use toolgate_store::RowQuery;

use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::Answer;
use crate::streams::Place;

/// How often the store is polled.
const EVERY: Duration = Duration::from_millis(250);
/// After how many polls without rows a comment is sent, so that a dead reader is noticed.
const SILENT: u32 = 60;

pub(crate) async fn stream(ask: Ask) -> Answer {
    let place = Place::take(&ask.admin.streams, &ask.who.name);
    let place = place.map_err(|why| Fault::unavailable(why.to_string()))?;
    let last = ask.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let from = match last.or(ask.query.number("after")?) {
        Some(seq) => seq,
        None => ask.admin.store().status().await?.head.seq,
    };
    let events = stream::unfold((ask, place, from), |(ask, place, after)| async move {
        let (text, after) = next(&ask, after).await?;
        Some((Ok::<_, std::convert::Infallible>(text), (ask, place, after)))
    });
    // Without a first byte the response head would not be sent.
    let first = stream::iter([Ok(Bytes::from_static(b": connected\n\n"))]);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, events));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// The next rows, or a comment after a long silence; `None` when toolgate stops.
async fn next(ask: &Ask, after: u64) -> Option<(Bytes, u64)> {
    let (store, stop) = (&ask.admin.store(), &ask.admin.given.stop);
    for _ in 0..SILENT {
        let page = RowQuery { after, limit: 1_000, ..RowQuery::default() };
        // A failed read may succeed later.
        let rows = store.rows(page).await.unwrap_or_default();
        // The stream ends with the token that opened it, however many rows there are.
        ask.check_person().ok()?;
        if let Some(last) = rows.last().map(|row| row.seq) {
            let event = |row: &toolgate_audit::Row| {
                format!("id: {}\nevent: row\ndata: {}\n\n", row.seq, row.to_json())
            };
            return Some((rows.iter().map(event).collect::<String>().into(), last));
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = stop.cancelled() => return None,
        }
    }
    Some((Bytes::from_static(b": keep-alive\n\n"), after))
}
