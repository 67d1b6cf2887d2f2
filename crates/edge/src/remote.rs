//! Remote servers: MCP over streamable HTTP, protocols up to 2025-11-25.
//!
//! [`RemoteConnector`] makes channels over one shared [`Client`]. A channel keeps what every
//! request has in common ([`headers`]); each message is an [`exchange`] of its own; the server's
//! own stream is read by [`listen`]. [`failure`] decides whether a message can have been seen.
//!
//! Invariant: nothing of what an agent sent but the message itself reaches a server.
//! Invariant: redirects are not followed: the configured address is the one that people approved.
//!
//! Tested against scripted servers in `tests/upstream/remote.rs` and `stream.rs`.

mod body;
mod client;
mod events;
mod exchange;
mod failure;
mod headers;
mod listen;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use hyper_util::client::legacy::ResponseFuture;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::channel::{BoxFuture, Channel, Connector, Inbox, Outbound, SendError};

pub use client::Client;
use client::Way;
use headers::Headers;

/// How long the farewell to a server may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where a remote server is and what it is told.
#[derive(Debug, Clone)]
pub struct RemoteSpec {
    /// The server's name, for logs and messages.
    pub server: String,
    /// Its endpoint; the query string is kept.
    pub url: Uri,
    /// Headers of every request, such as an API key. They never appear in logs.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The largest answer, or event of a stream.
    pub max_body: usize,
}

impl RemoteSpec {
    /// A spec with the default limit and no headers.
    pub fn new(server: impl Into<String>, url: Uri) -> Self {
        Self { server: server.into(), url, headers: Vec::new(), max_body: 64 * 1024 * 1024 }
    }
}

/// Makes channels to one endpoint.
#[derive(Debug)]
pub struct RemoteConnector {
    client: Client,
    spec: RemoteSpec,
}

impl RemoteConnector {
    /// All connectors of a gateway share one client.
    pub fn new(client: Client, spec: RemoteSpec) -> Self {
        Self { client, spec }
    }

    async fn prepare(&self, inbox: Arc<dyn Inbox>) -> Result<Arc<dyn Channel>, SendError> {
        let RemoteSpec { server, url, headers, max_body } = &self.spec;
        let (secure, host) = check(url).map_err(SendError::NotSent)?;
        let way = self.client.way(secure).await.map_err(SendError::NotSent)?;
        Ok(Arc::new(RemoteChannel {
            server: server.clone(),
            origin: failure::origin(url),
            url: url.clone(),
            way,
            headers: Headers::new(server, host, headers),
            max_body: *max_body,
            inbox,
            closing: CancellationToken::new(),
        }))
    }
}

impl Connector for RemoteConnector {
    fn connect(&self, inbox: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>> {
        Box::pin(self.prepare(inbox))
    }
}

/// Whether the URL asks for TLS, and the value of `Host` for it.
fn check(url: &Uri) -> Result<(bool, HeaderValue), String> {
    let secure = match url.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err("the URL must begin with `http://` or `https://`".to_owned()),
    };
    let authority = url.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return Err("the URL holds a user name or password; put an `Authorization` header into \
                    `headers` instead"
            .to_owned());
    }
    let usual = if secure { ":443" } else { ":80" };
    let host = authority.strip_suffix(usual).unwrap_or(authority);
    let host = HeaderValue::from_str(host).ok().filter(|host| !host.is_empty());
    host.map(|host| (secure, host)).ok_or_else(|| "the URL names no host".to_owned())
}

/// One endpoint in use: its session, if it has opened one.
struct RemoteChannel {
    server: String,
    /// Scheme, host and port, for messages.
    origin: String,
    url: Uri,
    way: Way,
    headers: Headers,
    max_body: usize,
    inbox: Arc<dyn Inbox>,
    closing: CancellationToken,
}

impl RemoteChannel {
    fn request(&self, method: Method, headers: HeaderMap, body: Bytes) -> ResponseFuture {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = headers;
        self.way.request(request)
    }

    async fn farewell(&self) {
        let Some((headers, session)) = self.headers.delete() else { return };
        self.headers.forget(&session);
        let delete = self.request(Method::DELETE, headers, Bytes::new());
        match tokio::time::timeout(FAREWELL, delete).await {
            Ok(Ok(response)) => {
                tracing::debug!(server = self.server, status = %response.status(), "session ended");
            }
            Ok(Err(error)) => {
                tracing::debug!(server = self.server, %error, "session not ended");
            }
            Err(_) => tracing::debug!(server = self.server, "session not ended in time"),
        }
    }
}

impl Channel for RemoteChannel {
    fn send(
        &self,
        message: Outbound,
        exchange: Arc<dyn Inbox>,
    ) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.exchange_until_closed(message, exchange))
    }

    fn established(&self, version: &str) {
        self.headers.establish(version);
    }

    fn listen(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.closing.run_until_cancelled(self.listen_for_good()).await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closing.cancel();
        Box::pin(self.farewell())
    }
}
