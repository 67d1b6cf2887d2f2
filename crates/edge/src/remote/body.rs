//! Reading response bodies within limits.
//!
//! Invariant: never holds more than the limit plus one frame.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::{Instant, timeout_at};
use toolgate_gateway::channel::Inbox;
use toolgate_gateway::{LastPiece, RelayWriter};

use super::buffer_pool::BufferPool;

/// Buffers start no larger than this, whatever length the server announces.
const FIRST_BUFFER: usize = 16 * 1024 * 1024;

/// The least announced size of an answer that is relayed while it arrives. A smaller one is
/// complete before its beginning would be sent.
const PASSED_ON: usize = 1024 * 1024;

/// Why a body was not read to its end.
#[derive(Debug)]
pub(super) enum ReadError {
    TooLarge,
    /// The relayed bytes are not a JSON-RPC message.
    NotAMessage,
    Broken(hyper::Error),
}

/// The complete body; a body of one piece is not copied. A large one is relayed if `inbox` provides
/// a writer; then its outline and last piece are returned.
pub(super) async fn collect(
    mut body: Incoming,
    limit: usize,
    buffers: &Arc<BufferPool>,
    inbox: &dyn Inbox,
) -> Result<(Bytes, Option<LastPiece>), ReadError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(ReadError::TooLarge);
    }
    let size = body.size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let Some(first) = next(&mut body).await? else { return Ok((Bytes::new(), None)) };
    if first.len() > limit {
        return Err(ReadError::TooLarge);
    }
    let large = size.filter(|size| *size >= PASSED_ON);
    if let Some(relay_writer) = large.and_then(|size| inbox.begins(&first, size)) {
        return pass_on(body, relay_writer).await;
    }
    let Some(second) = next(&mut body).await? else { return Ok((first, None)) };
    let rest = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
    let wanted = (first.len() + second.len()).saturating_add(rest);
    let mut whole = buffers.take(wanted.min(FIRST_BUFFER).max(first.len()));
    whole.extend_from_slice(&first);
    let mut piece = Some(second);
    while let Some(data) = piece {
        if data.len() > limit - whole.len() {
            return Err(ReadError::TooLarge);
        }
        whole.extend_from_slice(&data);
        piece = next(&mut body).await?;
    }
    Ok((buffers.lend(whole), None))
}

/// The rest of a body whose size was announced.
async fn pass_on(
    mut body: Incoming,
    mut relay_writer: RelayWriter,
) -> Result<(Bytes, Option<LastPiece>), ReadError> {
    while let Some(piece) = next(&mut body).await? {
        relay_writer.push(piece);
    }
    let (outline, held) = relay_writer.finish().ok_or(ReadError::NotAMessage)?;
    Ok((outline, Some(held)))
}

/// As much of the body as fits and arrives in time, for people to read.
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
pub(super) async fn next(body: &mut Incoming) -> Result<Option<Bytes>, ReadError> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(ReadError::Broken)?.into_data()
            && !data.is_empty()
        {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
