//! A very fast MCP server over streamable HTTP, for benchmarks and in-process tests.
//!
//! [`start`] binds a loopback port and serves until the [`EchoServer`] is dropped; `answer` creates
//! the answers, [`content`] the large results.
//!
//! Tools: `echo` returns its `arguments` as text, `big` a text of `size` bytes, `structured` about
//! `size` bytes of `structuredContent`. The other tools are filler.
//!
//! Invariant: every request but `initialize` must name an open session, as the specification
//! requires (400 without, 404 if unknown), in protocols with sessions.

mod answer;
mod body;
pub mod content;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use self::answer::{Answer, State};
use self::body::Parts;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Options of the server.
#[derive(Debug, Clone, Default)]
pub struct EchoOptions {
    /// The number of tools in `tools/list`; at least the three that can be called.
    pub tools: usize,
    /// Answer requests as an SSE stream of one event instead of a JSON body.
    pub sse: bool,
    /// Speak protocol 2026-07-28, which has no sessions, instead of the older ones.
    pub newer: bool,
}

/// A running echo server; dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct EchoServer {
    url: String,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

/// Starts an echo server with three tools and JSON answers.
pub async fn start() -> io::Result<EchoServer> {
    start_with(EchoOptions::default()).await
}

/// Starts an echo server on a free loopback port of the current runtime.
pub async fn start_with(options: EchoOptions) -> io::Result<EchoServer> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let state = Arc::new(State::new(&options));
    let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
    Ok(EchoServer { url, state, accepting })
}

// === impl Echo ===

impl EchoServer {
    /// Where it listens, path included.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The number of `tools/call` requests so far.
    pub fn calls(&self) -> u64 {
        self.state.calls.load(Ordering::Relaxed)
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        self.state.sessions.lock().len()
    }

    /// Drops all sessions, like a restarted server.
    pub fn forget_sessions(&self) {
        self.state.sessions.lock().clear();
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        // The connections belong to the accepting task and end with it.
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // An accept error affects one connection (aborted, out of files): continue.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, Arc::clone(&state)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, state: Arc<State>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(respond(request, &state).await) }
    });
    // A broken connection is expected here.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

async fn respond(request: Request<Incoming>, state: &State) -> Response<Parts> {
    if request.uri().path() != "/mcp" {
        return plain(StatusCode::NOT_FOUND, "no such path; use /mcp");
    }
    let session = request.headers().get(SESSION).map(|id| id.as_bytes().to_vec());
    match *request.method() {
        Method::POST => {}
        Method::DELETE => return delete(session.as_deref(), state),
        _ => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "POST or DELETE");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
            return response;
        }
    }
    let Ok(body) = request.into_body().collect().await else {
        return plain(StatusCode::BAD_REQUEST, "the body broke off");
    };
    match state.answer(&body.to_bytes(), session.as_deref()) {
        Answer::Accepted => status(StatusCode::ACCEPTED, Parts::empty()),
        Answer::Refused(code, why) => plain(code, why),
        Answer::Message { parts, opened } => message(parts, opened, state.sse),
    }
}

fn delete(session: Option<&[u8]>, state: &State) -> Response<Parts> {
    let Some(session) = session else {
        return plain(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing");
    };
    if state.sessions.lock().remove(session) {
        status(StatusCode::NO_CONTENT, Parts::empty())
    } else {
        plain(StatusCode::NOT_FOUND, "no such session")
    }
}

fn message(parts: Parts, opened: Option<HeaderValue>, sse: bool) -> Response<Parts> {
    let mut response = status(StatusCode::OK, parts);
    let kind = if sse { "text/event-stream" } else { "application/json" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Some(id) = opened {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

fn plain(code: StatusCode, why: &'static str) -> Response<Parts> {
    let mut response = status(code, Parts::one(Bytes::from_static(why.as_bytes())));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn status(code: StatusCode, parts: Parts) -> Response<Parts> {
    let mut response = Response::new(parts);
    *response.status_mut() = code;
    response
}
