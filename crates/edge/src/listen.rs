//! Listeners: the accept loop of every HTTP port.
//!
//! Invariant: a connection costs nothing before its head is read: handshakes and heads have a time
//! limit, heads a size limit, connections a number. Over that number a connection is told 503 and
//! closed, and one from where none may come is told 403 and closed.
//! Invariant: a stop closes idle connections at once and lets the others finish their response.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryFutureExt;
use futures_util::future::{self, Either, MapOk, Ready};
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{Either as EitherBody, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use toolgate_gateway::Peer;

use crate::linger::Lingering;
use crate::repoll::Repoll;
use crate::tls::{Stream, Tls};

/// How connections come in.
#[derive(Clone, Default)]
pub struct Entrance {
    /// Under TLS, and with which certificate.
    pub tls: Option<Tls>,
    /// From where alone.
    pub only_from: Option<Peers>,
}

/// Says whether connections may come from an address.
pub type Peers = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// What one listener may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at once.
    pub connections: usize,
    /// How long the head of a request may take.
    pub header_read: Duration,
    /// How large the head of a request may be.
    pub header_bytes: usize,
}

/// How many header fields a request may have.
const MAX_HEADERS: usize = 100;

/// Said to a connection that is one too many.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: text/plain\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 29\r\n\r\n\
    too many connections, sorry.\n";

/// Said to a connection from where none may come.
const FROM_ELSEWHERE: &[u8] = b"HTTP/1.1 403 Forbidden\r\n\
    Content-Type: text/plain\r\nConnection: close\r\nContent-Length: 74\r\n\r\n\
    connections from your address are not taken here (`behind_proxy`), sorry.\n";

/// Accepts connections until `stop`, and returns when the last one is closed.
pub async fn serve<S, B>(
    listener: TcpListener,
    entrance: Entrance,
    service: S,
    limits: ConnectionLimits,
    stop: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_read)
        .max_headers(MAX_HEADERS)
        .max_buf_size(limits.header_bytes.max(8 * 1024));
    let free = Arc::new(Semaphore::new(limits.connections));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: closing connections is what helps, so wait for that.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if entrance.only_from.as_ref().is_some_and(|may_come| !may_come(peer.ip())) {
            tracing::debug!(%peer, "a connection from where none may come");
            refuse(&stream, &entrance, FROM_ELSEWHERE);
            continue;
        }
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else {
            refuse(&stream, &entrance, FULL);
            continue;
        };
        // Answers are small and awaited: they must not wait for more to send.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection ended before it began");
            continue;
        }
        let (tls, http) = (entrance.tls.clone(), http.clone());
        let service = Bounded {
            service: service.clone(),
            header_bytes: limits.header_bytes,
            peer: Peer(peer.ip()),
        };
        let (stop, patience) = (stop.clone(), limits.header_read);
        connections.spawn(Repoll::new(async move {
            let shaken = tokio::select! {
                shaken = shake_hands(stream, tls, patience) => shaken,
                () = stop.cancelled() => None,
            };
            let Some(stream) = shaken else { return };
            let stream = TokioIo::new(Lingering::new(stream, stop.clone()));
            let connection = http.serve_connection(stream, service).with_upgrades();
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
        }));
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// Says why, where that can be understood: under TLS nothing is said before the handshake.
fn refuse(stream: &TcpStream, entrance: &Entrance, why: &[u8]) {
    if entrance.tls.is_none()
        && let Err(error) = stream.try_write(why)
    {
        tracing::debug!(%error, "a connection was refused, and went before it could be told");
    }
}

/// The connection, under TLS if it has to be; none if that failed.
async fn shake_hands(stream: TcpStream, tls: Option<Tls>, patience: Duration) -> Option<Stream> {
    let Some(tls) = tls else { return Some(Stream::Plain(stream)) };
    match timeout(patience, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection without a TLS handshake");
            None
        }
        Err(_) => {
            tracing::debug!("a TLS handshake took too long");
            None
        }
    }
}

/// Holds heads to their limit. hyper's own limit is that of a buffer, which may take in almost as
/// much again with its last read.
#[derive(Clone)]
struct Bounded<S> {
    service: S,
    header_bytes: usize,
    /// Where the connection comes from; its requests carry it.
    peer: Peer,
}

type BoundedReply<B> = Response<EitherBody<B, Full<Bytes>>>;

impl<S, B> Service<Request<Incoming>> for Bounded<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
{
    type Response = BoundedReply<B>;
    type Error = Infallible;
    type Future = Either<
        MapOk<S::Future, fn(Response<B>) -> BoundedReply<B>>,
        Ready<Result<BoundedReply<B>, Infallible>>,
    >;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        if head_bytes(&request) <= self.header_bytes {
            let whole: fn(_) -> _ = |response: Response<B>| response.map(EitherBody::Left);
            return Either::Left(self.service.call(request).map_ok(whole));
        }
        let why = "the header block is too large (`limits.headers` in toolgate.yaml)\n";
        let mut response = Response::new(EitherBody::Right(Full::from(why)));
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Either::Right(future::ok(response))
    }
}

/// How long the head was, as far as it can still be seen.
fn head_bytes(request: &Request<Incoming>) -> usize {
    // `name: value` and a line break each.
    let fields = request.headers().iter();
    let fields: usize = fields.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    fields + target
}
