//! One MCP client on one keep-alive HTTP connection.
//!
//! Invariant: received bytes are parsed only by [`Received::message`], so that parsing is not
//! measured.

use std::borrow::Cow;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use super::request::excerpt;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// An initialized client.
#[derive(Debug)]
pub(super) struct Client {
    sender: SendRequest<Full<Bytes>>,
    path: Uri,
    headers: HeaderMap,
}

/// A complete but unparsed HTTP answer.
#[derive(Debug)]
pub(super) struct Received {
    status: StatusCode,
    headers: HeaderMap,
    chunks: Vec<Bytes>,
}

// === impl Client ===

impl Client {
    pub(super) async fn connect(url: &Uri, token: Option<&str>) -> Result<Self> {
        let authority = url.authority().context("the URL needs a host and a port")?;
        let stream = TcpStream::connect(authority.as_str()).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // A lost connection is an error of the next request.
        tokio::spawn(connection);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(authority.as_str())?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}"))?);
        }
        let path = url.path_and_query().map_or("/", |path| path.as_str()).parse()?;
        let mut client = Self { sender, path, headers };
        client.shake_hands().await.context("the handshake")?;
        Ok(client)
    }

    async fn shake_hands(&mut self) -> Result<()> {
        let received = self.post(Bytes::from_static(INITIALIZE)).await?;
        let text = received.message(0)?;
        ensure!(text.contains(r#""result""#), "refused: `{}`", excerpt(&text));
        if let Some(session) = received.headers.get(SESSION) {
            self.headers.insert(SESSION, session.clone());
        }
        self.headers.insert(VERSION, HeaderValue::from_static("2025-11-25"));
        self.ready().await?;
        let received = self.post(Bytes::from_static(INITIALIZED)).await?;
        let status = received.status;
        ensure!(status == StatusCode::ACCEPTED, "the notification got status {status}");
        self.ready().await
    }

    /// Waits until the connection can take a request.
    pub(super) async fn ready(&mut self) -> Result<()> {
        Ok(self.sender.ready().await?)
    }

    /// Sends one message and waits for the last byte of the answer.
    pub(super) async fn post(&mut self, body: Bytes) -> Result<Received> {
        self.exchange(Method::POST, body).await
    }

    /// Ends the session.
    pub(super) async fn close(mut self) -> Result<()> {
        if !self.headers.contains_key(SESSION) {
            return Ok(());
        }
        self.ready().await?;
        let status = self.exchange(Method::DELETE, Bytes::new()).await?.status;
        ensure!(status.is_success(), "DELETE of the session got status {status}");
        Ok(())
    }

    async fn exchange(&mut self, method: Method, body: Bytes) -> Result<Received> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        request.headers_mut().clone_from(&self.headers);
        let (head, mut body) = self.sender.send_request(request).await?.into_parts();
        let mut chunks = Vec::new();
        while let Some(frame) = body.frame().await {
            if let Ok(chunk) = frame?.into_data() {
                chunks.push(chunk);
            }
        }
        Ok(Received { status: head.status, headers: head.headers, chunks })
    }
}

// === impl Received ===

impl Received {
    #[cfg(test)]
    pub(super) fn json_for_test(body: &str) -> Self {
        let chunks = vec![Bytes::copy_from_slice(body.as_bytes())];
        Self { status: StatusCode::OK, headers: HeaderMap::new(), chunks }
    }

    /// The JSON-RPC message with this id (any message of a JSON body).
    pub(super) fn message(&self, id: u64) -> Result<String> {
        let body = self.body()?;
        let kind = self.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if self.status != StatusCode::OK {
            bail!("status {}: `{}`", self.status, excerpt(&body));
        }
        if kind.starts_with(b"text/event-stream") {
            let found = events(&body).find(|event| has_id(event, id));
            return Ok(found.with_context(|| format!("no event has id {id}"))?.into_owned());
        }
        Ok(body)
    }

    fn body(&self) -> Result<String> {
        let mut whole = BytesMut::with_capacity(self.chunks.iter().map(Bytes::len).sum());
        self.chunks.iter().for_each(|chunk| whole.extend_from_slice(chunk));
        String::from_utf8(whole.into()).context("the answer is not UTF-8")
    }
}

fn has_id(event: &str, wanted: u64) -> bool {
    #[derive(Deserialize)]
    struct WithId {
        id: u64,
        #[serde(default)]
        method: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_str::<WithId>(event).is_ok_and(|m| m.id == wanted && m.method.is_none())
}

/// The data of each SSE event that has any.
fn events(body: &str) -> impl Iterator<Item = Cow<'_, str>> {
    body.split("\n\n").filter_map(|event| {
        let mut lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        let first = lines.next().map(|line| line.strip_prefix(' ').unwrap_or(line))?;
        let mut data = Cow::Borrowed(first);
        for line in lines {
            data.to_mut().push('\n');
            data.to_mut().push_str(line.strip_prefix(' ').unwrap_or(line));
        }
        (!data.is_empty()).then_some(data)
    })
}

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1.0.0"}}}"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
