//! Listeners: the accept loop of every HTTP port.
//!
//! Invariant: a connection costs nothing before its head is read: handshakes and heads have a time
//! limit, heads a size limit, connections a number. Over that number a connection is told 503 and
//! closed, and one from where none may come is told 403 and closed.
//! Invariant: one address that is not on loopback holds at most half of the connections.
//! Invariant: `/healthz` is answered by a thread of its own ([`Front`]), whatever the others do,
//! under TLS too.
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

/// How connections come in.
#[derive(Clone, Default)]
pub struct ListenerOptions {
    /// Under TLS, and with which certificate.
    pub tls: Option<Tls>,
    /// From where alone.
    pub only_from: Option<Peers>,
    /// The thread that accepts; that of the caller, if there is none.
    pub front: Option<Front>,
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

/// Said to a connection of an address that has its share.
const SHARE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: text/plain\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 47\r\n\r\n\
    too many connections from your address, sorry.\n";

/// Said to a connection from where none may come.
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
            Err(error) => tracing::error!(%error, "a listener cannot be served"),
        },
        None => drop(tokio::spawn(accept(listener, options, serving.clone(), hand_on))),
    }
    let connections = TaskTracker::new();
    while let Some(Accepted { stream, slot }) = handed.recv().await {
        match stream.attach() {
            Ok(stream) => {
                connections.spawn(Repoll::new(serving.clone().connection(stream, slot)));
            }
            Err(error) => tracing::debug!(%error, "a connection ended before it began"),
        }
    }
    connections.close();
    connections.wait().await;
}

/// A connection on its way to where it is served. The channel needs no bound: who is in it has a
/// slot.
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
        Err(error) => tracing::error!(%error, "a listener cannot be served"),
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
                // Out of descriptors, mostly: closing connections is what helps, so wait for that.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if options.only_from.as_ref().is_some_and(|may_come| !may_come(peer.ip())) {
            tracing::debug!(%peer, "a connection from where none may come");
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
                tracing::debug!(%peer, "an address that has half of the connections already");
                refuse(&stream, &options, SHARE);
                continue;
            }
        };
        // Answers are small and awaited: they must not wait for more to send.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection ended before it began");
            continue;
        }
        tokio::spawn(serving.clone().look_at(stream, slot, hand_on.clone()));
    }
}

/// Hands a connection on; whoever serves it may be gone.
fn hand(stream: Stream, slot: Slot, hand_on: &mpsc::UnboundedSender<Accepted>) {
    match stream.detach() {
        Ok(stream) => drop(hand_on.send(Accepted { stream, slot })),
        Err(error) => tracing::debug!(%error, "a connection ended before it began"),
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
    /// Makes the handshake, answers `/healthz` on this thread, once, and hands on anything else.
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
                tracing::debug!("the head of a request took too long");
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
            tracing::debug!(%error, "a connection ended early");
        }
        drop(slot);
    }
}

/// Says why, where that can be understood: under TLS nothing is said before the handshake.
fn refuse(stream: &TcpStream, options: &ListenerOptions, why: &[u8]) {
    if options.tls.is_none()
        && let Err(error) = stream.try_write(why)
    {
        tracing::debug!(%error, "a connection was refused, and went before it could be told");
    }
}

/// The connection, under TLS if it has to be; none if that failed.
async fn handshake(stream: TcpStream, tls: Option<Tls>, patience: Duration) -> Option<Stream> {
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
    /// For what a connection is upgraded to.
    share: PeerShare,
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

/// How long the head was, as far as it can still be seen.
fn head_bytes(request: &Request<Incoming>) -> usize {
    // `name: value` and a line break each.
    let fields = request.headers().iter();
    let fields: usize = fields.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    fields + target
}
