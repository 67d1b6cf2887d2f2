//! Bodies: reading requests within their limits, and the kinds of response bodies.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};
use toolgate_gateway::{RelayReader, Truncated};
use toolgate_mcp::Pieces;

use crate::memory_budget::Reservation;

/// How long a body may stall.
const STALL: Duration = Duration::from_secs(30);

/// A response body: complete, relayed while it arrives, or a stream of events.
pub enum ResponseBody {
    /// The complete body.
    Whole(Pieces),
    /// A body whose rest is still arriving. If it is cut off, the connection is closed.
    Relayed(RelayReader),
    /// Server-sent events, encoded.
    Events(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

/// Why a request's body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// It is larger than allowed.
    TooLarge,
    /// The bodies of this grant, or of all grants, use up the memory for bodies.
    OverBudget,
    /// No data arrived for too long.
    Stalled,
    /// It took too long in total.
    TooSlow,
    /// The connection broke.
    Broken,
}

/// Reads a body as [`read`] does, within `patience` in total.
pub(crate) async fn read_within<B>(
    body: B,
    limit: usize,
    patience: Duration,
    reservation: &mut Reservation,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let deadline = Instant::now() + patience;
    read_until(body, limit, Some(deadline), |size| reservation.grow(size)).await
}

/// Reads a body of at most `limit` bytes; never holds more than that, or more than `has_budget`
/// allows.
pub(crate) async fn read<B>(
    body: B,
    limit: usize,
    has_budget: impl FnMut(usize) -> bool,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    read_until(body, limit, None, has_budget).await
}

async fn read_until<B>(
    mut body: B,
    limit: usize,
    deadline: Option<Instant>,
    mut has_budget: impl FnMut(usize) -> bool,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    let mut size = 0;
    loop {
        let now = Instant::now();
        let is_late = |at| deadline.is_some_and(|end| end <= at);
        if is_late(now) {
            return Err(BodyError::TooSlow);
        }
        let stalls = now + STALL;
        let frame = match by(deadline.map_or(stalls, |end| end.min(stalls)), body.frame()).await {
            None if is_late(stalls) => return Err(BodyError::TooSlow),
            None => return Err(BodyError::Stalled),
            Some(None) => break,
            Some(Some(Err(_))) => return Err(BodyError::Broken),
            Some(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        size += data.len();
        if size > limit {
            return Err(BodyError::TooLarge);
        }
        if !has_budget(size) {
            return Err(BodyError::OverBudget);
        }
        // Most bodies are one frame, which needs no copy.
        match first.take() {
            None if rest.is_empty() => first = Some(data),
            None => rest.extend_from_slice(&data),
            Some(held) => {
                rest.reserve(usize::try_from(announced).unwrap_or(0).max(held.len() + data.len()));
                rest.extend_from_slice(&held);
                rest.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| rest.freeze()))
}

/// Waits for `future` until `end`; `None` if it takes longer. hyper often needs a second poll to
/// give a body that has arrived, so the timer is set only after that.
async fn by<F: Future>(end: Instant, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut is_second = false;
    let early = poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if is_second => Poll::Ready(None),
        Poll::Pending => {
            is_second = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    });
    match early.await {
        Some(output) => Some(output),
        None => timeout_at(end, future).await.ok(),
    }
}

// === impl ResponseBody ===

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Truncated;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        match &mut *self {
            Self::Relayed(answer) => {
                answer.poll_next(cx).map(|next| next.map(|piece| piece.map(Frame::data)))
            }
            Self::Whole(body) => Poll::Ready(body.take_first().map(|body| Ok(Frame::data(body)))),
            Self::Events(events) => {
                events.as_mut().poll_next(cx).map(|event| event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_empty(),
            Self::Relayed(answer) => answer.left() == 0,
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => SizeHint::with_exact(body.len() as u64),
            Self::Relayed(answer) => SizeHint::with_exact(answer.left() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use futures_util::stream;
    use http_body_util::{Full, StreamBody};

    use super::*;
    use crate::memory_budget::MemoryBudget;

    const PATIENCE: Duration = Duration::from_mins(1);

    fn reservation(budget: &Arc<MemoryBudget>) -> Reservation {
        budget.reserve_body(&"grant".into(), 1_000_000)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_a_time_in_all_however_it_trickles() {
        let trickle = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x"))), ()))
        });
        let body = StreamBody::new(Box::pin(trickle));
        let budget = Arc::new(MemoryBudget::default());
        let began = tokio::time::Instant::now();
        assert_eq!(
            read_within(body, 1_000_000, PATIENCE, &mut reservation(&budget)).await,
            Err(BodyError::TooSlow)
        );
        assert!(began.elapsed() >= PATIENCE && began.elapsed() < PATIENCE * 2);
    }

    fn frames(parts: &[&'static str]) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let frames: Vec<_> =
            parts.iter().map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes())))).collect();
        StreamBody::new(stream::iter(frames))
    }

    #[tokio::test]
    async fn a_body_is_read_whole_up_to_its_limit() {
        let cases: &[(&[&'static str], usize, Result<&str, BodyError>)] = &[
            (&[], 4, Ok("")),
            (&["ab"], 4, Ok("ab")),
            (&["ab", "c", "d"], 4, Ok("abcd")),
            (&["ab", "cde"], 4, Err(BodyError::TooLarge)),
            (&["abcde"], 4, Err(BodyError::TooLarge)),
        ];
        for (parts, limit, expected) in cases {
            let body = read(frames(parts), *limit, |_| true).await;
            let expected = match expected {
                Ok(text) => Ok(Bytes::from_static(text.as_bytes())),
                Err(_) => Err(BodyError::TooLarge),
            };
            assert_eq!(body, expected, "{parts:?}");
        }
    }

    #[tokio::test]
    async fn an_announced_size_is_refused_unread() {
        let body = Full::new(Bytes::from_static(b"abcde"));
        assert_eq!(read(body, 4, |_| true).await, Err(BodyError::TooLarge));
    }
}
