//! The people's listener: health, metrics, and the admin API that is given to it.
//!
//! Invariant: no agent's endpoint is served here, and nothing of this on the agents' listener.

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

use toolgate_gateway::{Listener, Peer, Stranger};

use crate::guard::Guard;

/// The metrics, and who may read them.
#[derive(Clone)]
pub struct Metrics {
    /// Writes them.
    pub text: Text,
    /// Whether who sends these headers may read them; everybody, if nobody is asked.
    pub access: Option<MetricsAccess>,
}

/// Writes the metrics as text.
pub type Text = Arc<dyn Fn() -> String + Send + Sync>;

/// Whether who sends these headers may look.
pub type MetricsAccess = Arc<dyn Fn(&HeaderMap) -> bool + Send + Sync>;

/// Who may reach a listener; another may be put in its place while it serves.
pub type SharedGuard = Arc<ArcSwap<Guard>>;

/// Who is told of those who were not let in.
pub type AccessObserver = Arc<dyn Fn(Listener, Stranger, Option<Peer>) + Send + Sync>;

/// What a listener runs.
pub type Service = TowerToHyperService<Router>;

/// Everything people may ask; `api` has its own paths and knows who may use them.
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

/// Nothing but `/metrics`.
pub fn metrics_service(guard: SharedGuard, metrics: Metrics, observer: AccessObserver) -> Service {
    let guarded = Guarded { guard, listener: Listener::Metrics, observer };
    with_guard(guarded.clone(), metrics_routes(metrics, &guarded).fallback(nothing_here))
}

/// Who may come in, and who is told of the others.
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
            let why = if has_one { Stranger::BadToken } else { Stranger::NoToken };
            observer(listener, why, request.extensions().get().copied());
            let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
            let why = "metrics need the token of a person here, with the role `viewer`\n";
            return (StatusCode::UNAUTHORIZED, challenge, why).into_response();
        }
        let kind =
            HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
        ([(header::CONTENT_TYPE, kind)], (metrics.text)()).into_response()
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
    (StatusCode::NOT_FOUND, "there is nothing at this path\n")
}

/// Puts the guard before everything in `router`, unknown paths too.
fn with_guard(guarded: Guarded, router: Router) -> Service {
    let router = router.layer(middleware::from_fn_with_state(guarded, check));
    TowerToHyperService::new(router)
}

async fn check(State(guarded): State<Guarded>, request: Request, next: Next) -> Response {
    let checked = guarded.guard.load().check(request.uri(), request.headers());
    match checked {
        Ok(()) => next.run(request).await,
        Err(denied) => {
            (guarded.observer)(
                guarded.listener,
                denied.stranger(),
                request.extensions().get().copied(),
            );
            (StatusCode::FORBIDDEN, format!("{denied}\n")).into_response()
        }
    }
}
