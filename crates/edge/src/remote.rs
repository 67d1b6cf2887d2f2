//! Remote servers: MCP over streamable HTTP, or over HTTP+SSE of 2024-11-05.
//!
//! [`RemoteConnector`] makes channels over one shared [`Client`]. A channel keeps the headers that
//! all requests have in common ([`headers`]); each message is an [`exchange`] of its own;
//! [`listen`] reads the server's own stream. [`legacy`] is HTTP+SSE, and [`transport`] detects
//! which of the two a server speaks. [`failure`] decides whether a server can have seen a message.
//!
//! Invariant: only the message itself, of all that an agent sent, reaches a server.
//! Invariant: redirects are not followed: the configured address is the approved one.
//!
//! Tested against scripted servers in `tests/upstream/remote.rs`, `stream.rs` and `legacy.rs`.

mod body;
mod buffer_pool;
mod checked;
mod client;
mod endpoint;
mod events;
mod exchange;
mod failure;
mod headers;
mod legacy;
mod listen;
mod pinned;
mod transport;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use hyper_util::client::legacy::ResponseFuture;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::channel::{BoxFuture, Channel, Connector, Inbox, Outbound, SendError};

use buffer_pool::BufferPool;
use checked::Checked;
use client::ConnectionPool;
pub use client::{Client, ClientError};
use headers::Headers;
pub use transport::HttpTransport;
use transport::TransportChoice;

/// How long ending the session of a server may take.
const END_SESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// The address and the headers of a remote server.
#[derive(Debug, Clone)]
pub struct RemoteSpec {
    /// The server's name, for logs and messages.
    pub server: String,
    /// Its endpoint; the query string is kept.
    pub url: Uri,
    /// Its transport.
    pub transport: HttpTransport,
    /// Headers of every request, such as an API key. They never appear in logs.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The largest answer, or event of a stream.
    pub max_body: usize,
}

impl RemoteSpec {
    /// A spec with the default limit and no headers; the transport is detected.
    pub fn new(server: impl Into<String>, url: Uri) -> Self {
        Self {
            server: server.into(),
            url,
            transport: HttpTransport::Detect,
            headers: Vec::new(),
            max_body: 64 * 1024 * 1024,
        }
    }
}

/// Makes channels to one endpoint.
#[derive(Debug)]
pub struct RemoteConnector {
    client: Client,
    spec: RemoteSpec,
    transport: Arc<TransportChoice>,
}

impl RemoteConnector {
    /// All connectors of a gateway share one client.
    pub fn new(client: Client, spec: RemoteSpec) -> Self {
        let transport = Arc::new(TransportChoice::new(spec.transport));
        Self { client, spec, transport }
    }

    async fn prepare(&self, inbox: Arc<dyn Inbox>) -> Result<Arc<dyn Channel>, SendError> {
        let RemoteSpec { server, url, headers, max_body, .. } = &self.spec;
        let (secure, host) = check(url).map_err(|why| not_sent(&why))?;
        let pool = self.client.pool_for(secure).await.map_err(|why| not_sent(&why))?;
        let channel = RemoteChannel {
            server: server.clone(),
            origin: failure::origin(url),
            url: url.clone(),
            pool,
            headers: Headers::new(server, host, headers),
            max_body: *max_body,
            buffers: Arc::clone(self.client.buffers()),
            inbox,
            closing: CancellationToken::new(),
            transport: Arc::clone(&self.transport),
            opening: true.into(),
            endpoint: OnceLock::new(),
        };
        channel.choose().await?;
        Ok(Arc::new(channel))
    }
}

impl Connector for RemoteConnector {
    fn connect(&self, inbox: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>> {
        Box::pin(self.prepare(inbox))
    }
}

/// Why a URL cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum UrlError {
    #[error("the URL must begin with `http://` or `https://`")]
    Scheme,
    #[error(
        "the URL holds a user name or password; put an `Authorization` header into `headers` instead"
    )]
    Credentials,
    #[error("the URL has no host")]
    NoHost,
}

fn not_sent(why: &impl ToString) -> SendError {
    SendError::NotSent(why.to_string())
}

/// Whether the URL uses TLS, and the `Host` header for it.
fn check(url: &Uri) -> Result<(bool, HeaderValue), UrlError> {
    let secure = match url.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(UrlError::Scheme),
    };
    let authority = url.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    let usual = if secure { ":443" } else { ":80" };
    let host = authority.strip_suffix(usual).unwrap_or(authority);
    let host = HeaderValue::from_str(host).ok().filter(|host| !host.is_empty());
    host.map(|host| (secure, host)).ok_or(UrlError::NoHost)
}

/// One endpoint in use, with its session if it has one.
struct RemoteChannel {
    server: String,
    /// Scheme, host and port, for messages.
    origin: String,
    url: Uri,
    pool: ConnectionPool,
    headers: Headers,
    max_body: usize,
    buffers: Arc<BufferPool>,
    inbox: Arc<dyn Inbox>,
    closing: CancellationToken,
    transport: Arc<TransportChoice>,
    /// The next message is the first one.
    opening: AtomicBool,
    /// Where messages go over the legacy transport; unset over streamable HTTP.
    endpoint: OnceLock<Uri>,
}

impl RemoteChannel {
    fn request(&self, method: Method, headers: HeaderMap, body: Bytes) -> ResponseFuture {
        self.request_to(&self.url, method, headers, Checked::new(body, None))
    }

    fn request_to(
        &self,
        url: &Uri,
        method: Method,
        headers: HeaderMap,
        body: Checked,
    ) -> ResponseFuture {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = headers;
        self.pool.request(request)
    }

    /// Sends `message`, unless the channel is closed before it is done.
    async fn carry_until_closed(
        &self,
        message: Outbound,
        inbox: Arc<dyn Inbox>,
    ) -> Result<(), SendError> {
        if self.closing.is_cancelled() {
            let what = format!("the channel to `{}` is closed", self.server);
            return Err(SendError::NotSent(what));
        }
        let carrying = self.carry(message, inbox);
        self.closing.run_until_cancelled(carrying).await.unwrap_or_else(|| {
            let what = format!("the channel to `{}` was closed before the answer", self.server);
            Err(SendError::Lost(what))
        })
    }

    async fn end_session(&self) {
        let Some((headers, session)) = self.headers.delete() else { return };
        self.headers.forget(&session);
        let delete = self.request(Method::DELETE, headers, Bytes::new());
        match tokio::time::timeout(END_SESSION_TIMEOUT, delete).await {
            Ok(Ok(response)) => {
                tracing::debug!(server = self.server, status = %response.status(), "server session closed");
            }
            Ok(Err(error)) => {
                tracing::debug!(server = self.server, %error, "server session not closed");
            }
            Err(_) => tracing::debug!(server = self.server, "server session not closed in time"),
        }
    }
}

impl Channel for RemoteChannel {
    fn send(
        &self,
        message: Outbound,
        exchange: Arc<dyn Inbox>,
    ) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.carry_until_closed(message, exchange))
    }

    fn established(&self, version: &str) {
        // HTTP+SSE has no such header.
        if self.endpoint.get().is_none() {
            self.headers.establish(version);
        }
    }

    fn exchange_per_request(&self) -> bool {
        self.endpoint.get().is_none()
    }

    fn ends_server(&self) -> bool {
        false
    }

    fn listen(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // HTTP+SSE has only one stream, which is open already.
            if self.endpoint.get().is_none() {
                self.closing.run_until_cancelled(self.listen_until_closed()).await;
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closing.cancel();
        Box::pin(self.end_session())
    }
}

impl Drop for RemoteChannel {
    fn drop(&mut self) {
        // Ends the tasks that read streams of this channel.
        self.closing.cancel();
    }
}
