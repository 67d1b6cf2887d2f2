//! A bare HTTP reverse proxy: the baseline for the cost of a hop.
//!
//! It streams both bodies through hyper with a pooled client and inspects nothing.
//!
//! Invariant: never reads a body and never changes a header other than `Host`.

use std::convert::Infallible;
use std::io;

use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Request, Response, StatusCode};
use http_body_util::{Either, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

type Pool = Client<HttpConnector, Incoming>;
type Body = Either<Incoming, Empty<Bytes>>;

/// A proxy with a bound port.
#[derive(Debug)]
pub struct BareProxy {
    listener: TcpListener,
    upstream: Authority,
    pool: Pool,
}

impl BareProxy {
    /// Binds a free loopback port for the server at `upstream` (`http://host:port`).
    pub async fn bind(upstream: &Uri) -> io::Result<Self> {
        let Some(upstream) = upstream.authority().cloned() else {
            return Err(io::Error::other("the upstream URL needs a host and a port"));
        };
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let pool = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { listener: TcpListener::bind(("127.0.0.1", 0)).await?, upstream, pool })
    }

    /// Its origin, without a path: paths are those of the upstream.
    pub fn origin(&self) -> io::Result<String> {
        Ok(format!("http://{}", self.listener.local_addr()?))
    }

    /// Serves until it is dropped.
    pub async fn run(self) {
        loop {
            // An accept error affects one connection (aborted, out of files): continue.
            if let Ok((stream, _)) = self.listener.accept().await {
                tokio::spawn(connection(stream, self.pool.clone(), self.upstream.clone()));
            }
        }
    }
}

async fn connection(stream: TcpStream, pool: Pool, upstream: Authority) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(|request| {
        let exchange = forward(request, &pool, &upstream);
        async { Ok::<_, Infallible>(exchange.await.unwrap_or_else(|()| bad_gateway())) }
    });
    // A broken connection is expected here.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

async fn forward(
    mut request: Request<Incoming>,
    pool: &Pool,
    upstream: &Authority,
) -> Result<Response<Body>, ()> {
    let path = request.uri().path_and_query().cloned();
    let uri = Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(upstream.clone())
        .path_and_query(path.unwrap_or(PathAndQuery::from_static("/")))
        .build();
    *request.uri_mut() = uri.map_err(drop)?;
    request.headers_mut().remove(HOST);
    let response = pool.request(request).await.map_err(drop)?;
    Ok(response.map(Either::Left))
}

fn bad_gateway() -> Response<Body> {
    let mut response = Response::new(Either::Right(Empty::new()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
