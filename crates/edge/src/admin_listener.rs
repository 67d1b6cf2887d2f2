//! The admin listener: health, metrics and the admin API.
//!
//! Invariant: no agent endpoint is served here, and none of this on the agents' listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::service::TowerToHyperService;

use toolgate_gateway::channel::BoxFuture;
use toolgate_gateway::{AuthFailureReason, Listener, Peer};

use crate::guard::Guard;

/// The metrics, and who may read them.
#[derive(Clone)]
pub struct Metrics {
    /// Encodes them.
    pub text: Text,
    /// Decides by the request headers whether the client may read them; `None` lets every client
    /// read.
    pub access: Option<MetricsAccess>,
}

/// Encodes the metrics as text.
pub type Text = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// Whether a client with these headers may read the metrics.
pub type MetricsAccess = Arc<dyn Fn(&HeaderMap) -> bool + Send + Sync>;

/// The guard of a listener; it can be replaced while the listener serves.
pub type SharedGuard = Arc<ArcSwap<Guard>>;

/// Receives rejected accesses.
pub type AccessObserver = Arc<dyn Fn(Listener, AuthFailureReason, Option<Peer>) + Send + Sync>;

/// The service of a listener.
pub type Service = TowerToHyperService<Router>;

/// Health, metrics and the admin API; `api` has its own paths and checks roles itself.
pub fn admin_service(
    guard: SharedGuard,
    ready: Arc<AtomicBool>,
    metrics: Metrics,
    api: Router,
    observer: AccessObserver,
) -> Service {
    let health = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(ready);
    let guarded = Guarded { guard, listener: Listener::Admin, observer };
    let metrics = metrics_routes(metrics, &guarded);
    with_guard(guarded, health.merge(metrics).merge(api).fallback(nothing_here))
}

/// Only `/metrics`.
pub fn metrics_service(guard: SharedGuard, metrics: Metrics, observer: AccessObserver) -> Service {
    let guarded = Guarded { guard, listener: Listener::Metrics, observer };
    with_guard(guarded.clone(), metrics_routes(metrics, &guarded).fallback(nothing_here))
}

/// The guard of a listener, and the observer of rejected accesses.
#[derive(Clone)]
struct Guarded {
    guard: SharedGuard,
    listener: Listener,
    observer: AccessObserver,
}

fn metrics_routes(metrics: Metrics, guarded: &Guarded) -> Router {
    let Guarded { listener, observer, .. } = guarded.clone();
    let write = move |request: Request| async move {
        let headers = request.headers();
        if metrics.access.is_some_and(|may_read| !may_read(headers)) {
            let has_one = headers.contains_key(header::AUTHORIZATION);
            let why =
                if has_one { AuthFailureReason::BadToken } else { AuthFailureReason::NoToken };
            observer(listener, why, request.extensions().get().copied());
            let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
            let why = "missing or unknown token; metrics require the token of a person with the role `viewer`\n";
            return (StatusCode::UNAUTHORIZED, challenge, why).into_response();
        }
        let kind =
            HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
        ([(header::CONTENT_TYPE, kind)], (metrics.text)().await).into_response()
    };
    Router::new().route("/metrics", get(write))
}

async fn readyz(State(ready): State<Arc<AtomicBool>>) -> Response {
    if ready.load(Ordering::Relaxed) {
        "ready\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response()
    }
}

async fn nothing_here() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "not found\n")
}

/// Applies the guard to every path of `router`, unknown ones included.
fn with_guard(guarded: Guarded, router: Router) -> Service {
    let router = router.layer(middleware::from_fn_with_state(guarded, check));
    let router = router.layer(middleware::map_response(async |response: Response| fixed(response)));
    TowerToHyperService::new(router)
}

/// Headers of every answer, errors included; a header that is set stays. Whatever a browser is led
/// to here, it runs and shows nothing.
fn fixed(mut response: Response) -> Response {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in headers {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn check(State(guarded): State<Guarded>, request: Request, next: Next) -> Response {
    let checked = guarded.guard.load().check(request.uri(), request.headers());
    match checked {
        Ok(()) => next.run(request).await,
        Err(denied) => {
            if let Some(why) = denied.auth_failure() {
                (guarded.observer)(guarded.listener, why, request.extensions().get().copied());
            }
            (denied.status(), format!("{denied}\n")).into_response()
        }
    }
}
