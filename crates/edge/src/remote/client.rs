//! The HTTP client that all remote servers share: one pool of connections.
//!
//! Invariant: nothing of TLS is built before a server is asked for by `https`: reading the
//! machine's certificates takes longer than the rest of the start.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::ResponseFuture;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::OnceCell;
use tower::Service;

use super::checked::Checked;
use super::pinned::Pinned;
use super::spare::Spare;
use crate::body::{NotRead, read};

/// How long a connection may take, with name lookup and TLS.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Servers on uvicorn and Node hang up after 5 s of silence. A request written just then has an
/// unknown outcome, so our side lets go first.
const POOL_IDLE: Duration = Duration::from_secs(4);
const POOL_IDLE_PER_HOST: usize = 1024;
/// A stream may be silent for hours; only the kernel can tell that from a host that has vanished.
/// It is given up after a minute.
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
    /// The only certificate that is believed, if not those of the machine.
    pinned: Option<[u8; 32]>,
    plain: Pool<HttpConnector>,
    secure: OnceCell<Pool<HttpsConnector<HttpConnector>>>,
    spare: Arc<Spare>,
}

impl Client {
    /// A client that gives up connecting after 5 seconds.
    pub fn new() -> Self {
        Self::with_connect_timeout(CONNECT_TIMEOUT)
    }

    /// A client that gives up connecting after `connect_timeout`.
    pub fn with_connect_timeout(connect_timeout: Duration) -> Self {
        Self::made(connect_timeout, None)
    }

    /// A client that believes the certificate of this SHA-256, under any name, and no other.
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
            spare: Arc::default(),
        }))
    }

    /// Sends one request and reads the whole answer, up to so many bytes.
    pub async fn ask(
        &self,
        request: Request<Bytes>,
        limit: usize,
    ) -> Result<Response<Bytes>, String> {
        let secure = request.uri().scheme_str() == Some("https");
        let way = self.way(secure).await?;
        let answered = way
            .request(request.map(|body| Checked::new(body, None)))
            .await
            .map_err(|error| said(&error))?;
        let (parts, body) = answered.into_parts();
        let body = match read(body, limit, |_| true).await {
            Ok(body) => body,
            Err(NotRead::TooLarge) => {
                return Err(format!("the answer is larger than {limit} bytes"));
            }
            Err(_) => return Err("the answer broke off".to_owned()),
        };
        Ok(Response::from_parts(parts, body))
    }

    /// Where large bodies are put.
    pub(super) fn spare(&self) -> &Arc<Spare> {
        &self.0.spare
    }

    /// The way to servers of one scheme.
    pub(super) async fn way(&self, secure: bool) -> Result<Way, String> {
        if !secure {
            return Ok(Way::Plain(self.0.plain.clone()));
        }
        let pools = &self.0;
        let made = || secure_pool(pools.connect_timeout, pools.pinned);
        let pool = pools.secure.get_or_try_init(made).await?;
        Ok(Way::Secure(pool.clone()))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// A pool of connections of one scheme.
#[derive(Debug, Clone)]
pub(super) enum Way {
    Plain(Pool<HttpConnector>),
    Secure(Pool<HttpsConnector<HttpConnector>>),
}

impl Way {
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
    // It tries again by itself only what a closed connection gave back unwritten.
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
) -> Result<Pool<HttpsConnector<HttpConnector>>, String> {
    let config = tokio::task::spawn_blocking(move || tls(pinned))
        .await
        .map_err(|error| error.to_string())
        .and_then(|config| config.map_err(|error| error.to_string()))
        .map_err(|error| format!("cannot read this machine's trusted certificates: {error}"))?;
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

/// An error with what lies behind it.
fn said(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", said(source)),
        None => error.to_string(),
    }
}

/// A connector with a limit on the whole of connecting: hyper's own covers TCP alone.
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
                Err(_) => Err(TooSlow(limit).into()),
            }
        })
    }
}

/// No connection in time.
#[derive(Debug)]
pub(super) struct TooSlow(Duration);

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "within {:?}", self.0)
    }
}

impl Error for TooSlow {}
