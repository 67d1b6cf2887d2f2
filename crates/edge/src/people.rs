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
    pub asks: Option<MayLook>,
}

/// Writes the metrics as text.
pub type Text = Arc<dyn Fn() -> String + Send + Sync>;

/// Whether who sends these headers may look.
pub type MayLook = Arc<dyn Fn(&HeaderMap) -> bool + Send + Sync>;

/// Who may reach a listener; another may be put in its place while it serves.
pub type SharedGuard = Arc<ArcSwap<Guard>>;

/// Who is told of those who were not let in.
pub type Watch = Arc<dyn Fn(Listener, Stranger, Option<Peer>) + Send + Sync>;

/// What a listener runs.
pub type Service = TowerToHyperService<Router>;

/// Everything people may ask; `api` has its own paths and knows who may use them.
pub fn everything(
    guard: SharedGuard,
    ready: Arc<AtomicBool>,
    metrics: Metrics,
    api: Router,
    watch: Watch,
) -> Service {
    let health = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(ready);
    let door = Door { guard, listener: Listener::Admin, watch };
    let metrics = metrics_routes(metrics, &door);
    guarded(door, health.merge(metrics).merge(api).fallback(nothing_here))
}

/// Nothing but `/metrics`.
pub fn metrics_alone(guard: SharedGuard, metrics: Metrics, watch: Watch) -> Service {
    let door = Door { guard, listener: Listener::Metrics, watch };
    guarded(door.clone(), metrics_routes(metrics, &door).fallback(nothing_here))
}

/// Who may come in, and who is told of the others.
#[derive(Clone)]
struct Door {
    guard: SharedGuard,
    listener: Listener,
    watch: Watch,
}

fn metrics_routes(metrics: Metrics, door: &Door) -> Router {
    let Door { listener, watch, .. } = door.clone();
    let write = move |request: Request| async move {
        let headers = request.headers();
        if metrics.asks.is_some_and(|may_look| !may_look(headers)) {
            let has_one = headers.contains_key(header::AUTHORIZATION);
            let why = if has_one { Stranger::BadToken } else { Stranger::NoToken };
            watch(listener, why, request.extensions().get().copied());
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
fn guarded(door: Door, router: Router) -> Service {
    let router = router.layer(middleware::from_fn_with_state(door, check));
    TowerToHyperService::new(router)
}

async fn check(State(door): State<Door>, request: Request, next: Next) -> Response {
    let checked = door.guard.load().check(request.uri(), request.headers());
    match checked {
        Ok(()) => next.run(request).await,
        Err(denied) => {
            if let Some(why) = denied.stranger() {
                (door.watch)(door.listener, why, request.extensions().get().copied());
            }
            (denied.status(), format!("{denied}\n")).into_response()
        }
    }
}
