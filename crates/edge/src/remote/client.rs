//! The HTTP client that all remote servers share: one pool of connections.
//!
//! Invariant: TLS is set up only when a server uses `https`: reading the machine's certificates
//! takes longer than the rest of the start.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::ResponseFuture;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tower::Service;

use super::buffer_pool::BufferPool;
use super::checked::Checked;
use super::pinned::Pinned;
use crate::body::{BodyError, read};

/// How long a connection may take, with name lookup and TLS.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the body of a response may take of which only the status matters.
const REST_OF_ANSWER: Duration = Duration::from_secs(1);
/// Servers on uvicorn and Node close idle connections after 5 s. A request written just then has an
/// unknown outcome, so our side closes first.
const POOL_IDLE: Duration = Duration::from_secs(4);
const POOL_IDLE_PER_HOST: usize = 1024;
/// A stream may be idle for hours; only the kernel can tell that from a host that is gone. The
/// connection is closed after a minute.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

type Pool<C> = legacy::Client<Timed<C>, Checked>;

/// The shared client. Cloning it is cheap and shares its connections.
#[derive(Debug, Clone)]
pub struct Client(Arc<Pools>);

#[derive(Debug)]
struct Pools {
    connect_timeout: Duration,
    /// The only trusted certificate, if not those of the machine.
    pinned: Option<[u8; 32]>,
    plain: Pool<HttpConnector>,
    secure: OnceCell<Pool<HttpsConnector<HttpConnector>>>,
    buffers: Arc<BufferPool>,
}

impl Client {
    /// A client with a connect timeout of 5 seconds.
    pub fn new() -> Self {
        Self::with_connect_timeout(CONNECT_TIMEOUT)
    }

    /// A client with this connect timeout.
    pub fn with_connect_timeout(connect_timeout: Duration) -> Self {
        Self::made(connect_timeout, None)
    }

    /// A client that trusts only the certificate with this SHA-256, under any name.
    pub fn pinned(fingerprint: [u8; 32]) -> Self {
        Self::made(CONNECT_TIMEOUT, Some(fingerprint))
    }

    fn made(connect_timeout: Duration, pinned: Option<[u8; 32]>) -> Self {
        let plain = pool(tcp(true), connect_timeout);
        Self(Arc::new(Pools {
            connect_timeout,
            pinned,
            plain,
            secure: OnceCell::new(),
            buffers: Arc::default(),
        }))
    }

    /// Sends one request and reads the complete response, up to `limit` bytes.
    pub async fn ask(
        &self,
        request: Request<Bytes>,
        limit: usize,
    ) -> Result<Response<Bytes>, ClientError> {
        let (parts, body) = self.send(request).await?.into_parts();
        let body = match read(body, limit, |_| true).await {
            Ok(body) => body,
            Err(BodyError::TooLarge) => {
                return Err(ClientError::TooLarge(limit));
            }
            Err(_) => return Err(ClientError::Truncated),
        };
        Ok(Response::from_parts(parts, body))
    }

    /// Sends one request and reads the status of the response. Of the body up to `limit` bytes are
    /// read, so that the connection can be used again; whatever becomes of that, the status holds.
    pub async fn status(
        &self,
        request: Request<Bytes>,
        limit: usize,
    ) -> Result<StatusCode, ClientError> {
        let (parts, body) = self.send(request).await?.into_parts();
        drop(timeout(REST_OF_ANSWER, read(body, limit, |_| true)).await);
        Ok(parts.status)
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Incoming>, ClientError> {
        let secure = request.uri().scheme_str() == Some("https");
        let pool = self.pool_for(secure).await?;
        let answered = pool.request(request.map(|body| Checked::new(body, None))).await;
        answered.map_err(|error| ClientError::Request(error_chain(&error)))
    }

    /// The buffers for large bodies.
    pub(super) fn buffers(&self) -> &Arc<BufferPool> {
        &self.0.buffers
    }

    /// The connection pool for one scheme.
    pub(super) async fn pool_for(&self, secure: bool) -> Result<ConnectionPool, ClientError> {
        if !secure {
            return Ok(ConnectionPool::Plain(self.0.plain.clone()));
        }
        let pools = &self.0;
        let made = || secure_pool(pools.connect_timeout, pools.pinned);
        let pool = pools.secure.get_or_try_init(made).await?;
        Ok(ConnectionPool::Secure(pool.clone()))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a request to a server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// TLS cannot be set up.
    #[error("cannot read this machine's trusted certificates: {0}")]
    Certificates(String),
    /// There was no response.
    #[error("{0}")]
    Request(String),
    /// The response is larger than allowed.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The connection ended before the end of the response.
    #[error("the answer was cut off")]
    Truncated,
}

/// A pool of connections of one scheme.
#[derive(Debug, Clone)]
pub(super) enum ConnectionPool {
    Plain(Pool<HttpConnector>),
    Secure(Pool<HttpsConnector<HttpConnector>>),
}

impl ConnectionPool {
    pub(super) fn request(&self, request: Request<Checked>) -> ResponseFuture {
        match self {
            Self::Plain(pool) => pool.request(request),
            Self::Secure(pool) => pool.request(request),
        }
    }
}

fn pool<C>(connector: C, connect_timeout: Duration) -> Pool<C>
where
    Timed<C>: legacy::connect::Connect + Clone,
{
    // hyper retries only requests that a closed connection returned unwritten.
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_IDLE_PER_HOST)
        .build(Timed { connector, limit: connect_timeout })
}

fn tcp(enforce_http: bool) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    connector.enforce_http(enforce_http);
    connector
}

async fn secure_pool(
    connect_timeout: Duration,
    pinned: Option<[u8; 32]>,
) -> Result<Pool<HttpsConnector<HttpConnector>>, ClientError> {
    let config = tokio::task::spawn_blocking(move || tls(pinned))
        .await
        .map_err(|error| error.to_string())
        .and_then(|config| config.map_err(|error| error.to_string()))
        .map_err(ClientError::Certificates)?;
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_http1()
        .wrap_connector(tcp(false));
    Ok(pool(connector, connect_timeout))
}

fn tls(pinned: Option<[u8; 32]>) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let verified = match pinned {
        Some(fingerprint) => {
            let verifier = Arc::new(Pinned { fingerprint, provider });
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
        None => builder.try_with_platform_verifier()?,
    };
    Ok(verified.with_no_client_auth())
}

/// An error with all its causes.
fn error_chain(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", error_chain(source)),
        None => error.to_string(),
    }
}

/// A connector with a time limit for connecting as a whole: hyper's own covers only TCP.
#[derive(Debug, Clone)]
pub(super) struct Timed<C> {
    connector: C,
    limit: Duration,
}

impl<C> Service<Uri> for Timed<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
    C::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = C::Response;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.connector.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.connector.call(uri);
        let limit = self.limit;
        Box::pin(async move {
            match tokio::time::timeout(limit, connecting).await {
                Ok(connected) => connected.map_err(Into::into),
                Err(_) => Err(ConnectTimeout(limit).into()),
            }
        })
    }
}

/// No connection in time.
#[derive(Debug)]
pub(super) struct ConnectTimeout(Duration);

impl fmt::Display for ConnectTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "within {:?}", self.0)
    }
}

impl Error for ConnectTimeout {}
