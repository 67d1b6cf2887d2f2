//! Reading response bodies within limits.
//!
//! Invariant: never holds more than the limit plus one frame.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::{Instant, timeout_at};

use super::spare::Spare;

/// Buffers start no larger than this, whatever length the server announces; growing means copying.
const FIRST_BUFFER: usize = 16 * 1024 * 1024;

/// Why a body was not read to its end.
#[derive(Debug)]
pub(super) enum Unread {
    TooLarge,
    Broken(hyper::Error),
}

/// The whole body; what came in one piece is not copied.
pub(super) async fn collect(
    mut body: Incoming,
    limit: usize,
    spare: &Arc<Spare>,
) -> Result<Bytes, Unread> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Unread::TooLarge);
    }
    let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(Unread::TooLarge);
    }
    let Some(second) = next(&mut body).await? else { return Ok(first) };
    let rest = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
    let wanted = (first.len() + second.len()).saturating_add(rest);
    let mut whole = spare.take(wanted.min(FIRST_BUFFER).max(first.len()));
    whole.extend_from_slice(&first);
    let mut piece = Some(second);
    while let Some(data) = piece {
        if data.len() > limit - whole.len() {
            return Err(Unread::TooLarge);
        }
        whole.extend_from_slice(&data);
        piece = next(&mut body).await?;
    }
    Ok(spare.lend(whole))
}

/// As much of the body as fits and comes in time, for people to read.
pub(super) async fn beginning(mut body: Incoming, limit: usize, within: Duration) -> Bytes {
    let deadline = Instant::now() + within;
    let mut start = BytesMut::new();
    while let Ok(Ok(Some(data))) = timeout_at(deadline, next(&mut body)).await {
        let room = limit - start.len();
        start.extend_from_slice(data.get(..room).unwrap_or(&data));
        if start.len() == limit {
            break;
        }
    }
    start.freeze()
}

/// The next piece of data that is not empty.
pub(super) async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Unread> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(Unread::Broken)?.into_data()
            && !data.is_empty()
        {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
