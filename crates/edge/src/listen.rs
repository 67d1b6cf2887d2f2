//! Listeners: the accept loop of every HTTP port.
//!
//! Invariant: a connection costs nothing before its head is read: handshakes and heads have a time
//! limit, heads a size limit, and connections are limited in number. A connection over that number
//! is answered 503 and closed; one from an address that is not allowed is answered 403 and closed.
//! Invariant: one address that is not on loopback holds at most half of the connections.
//! Invariant: `/healthz` is answered by a thread of its own ([`Front`]), whatever the others do,
//! with TLS too.
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
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use toolgate_gateway::Peer;

use crate::linger::Lingering;
use crate::repoll::Repoll;
use crate::tls::{DetachedStream, Stream, Tls};

mod front;
mod slots;

pub use self::front::Front;
use self::front::is_health_request;
pub(crate) use self::slots::PeerShare;
use self::slots::{ConnectionSlots, NoSlot, Slot};

/// The options of a listener.
#[derive(Clone, Default)]
pub struct ListenerOptions {
    /// The certificate, if the listener uses TLS.
    pub tls: Option<Tls>,
    /// The addresses that may connect; all if unset.
    pub only_from: Option<Peers>,
    /// The thread that accepts connections; the caller's if unset.
    pub front: Option<Front>,
}

/// Whether an address may connect.
pub type Peers = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// The limits of one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Concurrent connections.
    pub connections: usize,
    /// How long the head of a request may take.
    pub header_read: Duration,
    /// How large the head of a request may be.
    pub header_bytes: usize,
}

/// How many header fields a request may have.
const MAX_HEADERS: usize = 100;

/// Sent to a connection over the limit.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: text/plain\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 29\r\n\r\n\
    too many connections, sorry.\n";

/// Sent to a connection of an address that has reached its share.
const SHARE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: text/plain\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 47\r\n\r\n\
    too many connections from your address, sorry.\n";

/// Sent to a connection from an address that is not allowed.
const FROM_ELSEWHERE: &[u8] = b"HTTP/1.1 403 Forbidden\r\n\
    Content-Type: text/plain\r\nConnection: close\r\nContent-Length: 74\r\n\r\n\
    connections from your address are not taken here (`behind_proxy`), sorry.\n";

/// Accepts connections until `stop`, and returns when the last one is closed.
pub async fn serve<S, B>(
    listener: TcpListener,
    options: ListenerOptions,
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
    let serving = Serving { http, service, limits, tls: options.tls.clone(), stop };
    let (hand_on, mut handed) = mpsc::unbounded_channel();
    match &options.front {
        Some(front) => match listener.into_std() {
            Ok(listener) => {
                front.spawn(accept_on_front(listener, options.clone(), serving.clone(), hand_on));
            }
            Err(error) => tracing::error!(%error, "listener failed"),
        },
        None => drop(tokio::spawn(accept(listener, options, serving.clone(), hand_on))),
    }
    let connections = TaskTracker::new();
    while let Some(Accepted { stream, slot }) = handed.recv().await {
        match stream.attach() {
            Ok(stream) => {
                connections.spawn(Repoll::new(serving.clone().connection(stream, slot)));
            }
            Err(error) => tracing::debug!(%error, "connection closed before its first request"),
        }
    }
    connections.close();
    connections.wait().await;
}

/// An accepted connection, on its way to the runtime that serves it. The channel needs no bound:
/// every connection in it has a slot.
struct Accepted {
    stream: DetachedStream,
    slot: Slot,
}

/// How connections of one listener are served.
#[derive(Clone)]
struct Serving<S> {
    http: http1::Builder,
    service: S,
    limits: ConnectionLimits,
    tls: Option<Tls>,
    stop: CancellationToken,
}

async fn accept_on_front<S, B>(
    listener: std::net::TcpListener,
    options: ListenerOptions,
    serving: Serving<S>,
    hand_on: mpsc::UnboundedSender<Accepted>,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match TcpListener::from_std(listener) {
        Ok(listener) => accept(listener, options, serving, hand_on).await,
        Err(error) => tracing::error!(%error, "listener failed"),
    }
}

async fn accept<S, B>(
    listener: TcpListener,
    options: ListenerOptions,
    serving: Serving<S>,
    hand_on: mpsc::UnboundedSender<Accepted>,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let slots = ConnectionSlots::new(serving.limits.connections);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = serving.stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Usually no descriptors are left: wait for connections to close.
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if options.only_from.as_ref().is_some_and(|may_come| !may_come(peer.ip())) {
            tracing::debug!(%peer, "connection rejected: address not allowed");
            refuse(&stream, &options, FROM_ELSEWHERE);
            continue;
        }
        let slot = match slots.take(peer.ip()) {
            Ok(slot) => slot,
            Err(NoSlot::Full) => {
                refuse(&stream, &options, FULL);
                continue;
            }
            Err(NoSlot::PeerShare) => {
                tracing::debug!(%peer, "connection rejected: too many from this address");
                refuse(&stream, &options, SHARE);
                continue;
            }
        };
        // Responses are small and awaited: send them without delay.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "connection closed before its first request");
            continue;
        }
        tokio::spawn(serving.clone().look_at(stream, slot, hand_on.clone()));
    }
}

/// Passes a connection on; the receiver may be gone.
fn hand(stream: Stream, slot: Slot, hand_on: &mpsc::UnboundedSender<Accepted>) {
    match stream.detach() {
        Ok(stream) => drop(hand_on.send(Accepted { stream, slot })),
        Err(error) => tracing::debug!(%error, "connection closed before its first request"),
    }
}

impl<S, B> Serving<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Makes the handshake, answers `/healthz` on this thread, once, and passes on anything else.
    async fn look_at(
        mut self,
        stream: TcpStream,
        slot: Slot,
        hand_on: mpsc::UnboundedSender<Accepted>,
    ) {
        let patience = self.limits.header_read;
        let looking = async {
            let mut stream = handshake(stream, self.tls.take(), patience).await?;
            let health = is_health_request(&mut stream, patience).await;
            if health.is_none() {
                tracing::debug!("request head timed out");
            }
            Some((stream, health?))
        };
        let looked = tokio::select! {
            looked = looking => looked,
            () = self.stop.cancelled() => None,
        };
        let Some((stream, is_health)) = looked else { return };
        if !is_health {
            return hand(stream, slot, &hand_on);
        }
        drop(hand_on);
        self.http.keep_alive(false);
        self.connection(stream, slot).await;
    }

    /// Serves one connection to its end.
    async fn connection(self, stream: Stream, slot: Slot) {
        let Self { http, service, limits, stop, .. } = self;
        let stream = TokioIo::new(Lingering::new(stream, stop.clone()));
        let header_bytes = limits.header_bytes;
        let (share, peer) = (slot.share.clone(), Peer(slot.peer));
        let service = Bounded { service, header_bytes, share, peer };
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
            tracing::debug!(%error, "connection closed early");
        }
        drop(slot);
    }
}

/// Sends the reason; with TLS nothing can be sent before the handshake.
fn refuse(stream: &TcpStream, options: &ListenerOptions, why: &[u8]) {
    if options.tls.is_none()
        && let Err(error) = stream.try_write(why)
    {
        tracing::debug!(%error, "rejected connection closed before its response");
    }
}

/// The connection, with TLS if configured; `None` if the handshake failed.
async fn handshake(stream: TcpStream, tls: Option<Tls>, patience: Duration) -> Option<Stream> {
    let Some(tls) = tls else { return Some(Stream::Plain(stream)) };
    match timeout(patience, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!("TLS handshake timed out");
            None
        }
    }
}

/// Enforces the size limit of heads. hyper limits only its buffer, which its last read can almost
/// double.
#[derive(Clone)]
struct Bounded<S> {
    service: S,
    header_bytes: usize,
    /// For the connection after an upgrade.
    share: PeerShare,
    /// The address of the client, attached to its requests.
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
            if request.headers().contains_key(http::header::UPGRADE) {
                request.extensions_mut().insert(self.share.clone());
            }
            let whole: fn(_) -> _ = |response: Response<B>| response.map(EitherBody::Left);
            return Either::Left(self.service.call(request).map_ok(whole));
        }
        let why = "the header block is too large (`limits.headers` in toolgate.yaml)\n";
        let mut response = Response::new(EitherBody::Right(Full::from(why)));
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Either::Right(future::ok(response))
    }
}

/// The size of the head, as far as it is still known.
fn head_bytes(request: &Request<Incoming>) -> usize {
    // `name: value` and a line break each.
    let fields = request.headers().iter();
    let fields: usize = fields.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    fields + target
}
