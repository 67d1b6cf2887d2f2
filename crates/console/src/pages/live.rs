//! The stream that tells open pages that something happened.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use tokio::time::sleep;
use toolgate_audit::Hash;

use crate::console::Console;
use crate::visit::{Outcome, Visit};

/// How often an idle stream looks whether the person is still signed in.
const EVERY: Duration = Duration::from_millis(500);

/// The events of the API, for the person who is signed in. Pages load themselves again; they do not
/// use what an event holds. The stream ends with the sign-in.
pub(crate) async fn events(visit: Visit) -> Outcome {
    let admin = &visit.console.admin;
    let target = "/api/v1/events";
    let answer = admin.serve_console(visit.token, &Method::GET, target, Bytes::new()).await?;
    let open = (answer.into_body(), Arc::clone(&visit.console), visit.cookie);
    let events = stream::unfold(open, |(mut body, console, cookie)| async move {
        let chunk = next(&mut body, &console, &cookie).await?;
        Some((chunk, (body, console, cookie)))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    Ok((kind, Body::from_stream(events)).into_response())
}

/// The next part of the stream; `None` if it or the sign-in has ended.
async fn next(
    body: &mut Body,
    console: &Console,
    cookie: &Hash,
) -> Option<Result<Bytes, axum::Error>> {
    loop {
        let frame = tokio::select! {
            frame = body.frame() => Some(frame?),
            () = sleep(EVERY) => None,
        };
        let signed_in = console.sign_ins.lock().look(cookie, console.admin.now())?;
        // The token may have been revoked or replaced meanwhile.
        console.admin.person(&signed_in.token)?;
        match frame {
            Some(Ok(frame)) => {
                if let Ok(chunk) = frame.into_data() {
                    return Some(Ok(chunk));
                }
            }
            Some(Err(error)) => return Some(Err(error)),
            None => {}
        }
    }
}
