//! The router: authenticates the person, checks the role and calls the handler.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, on};
use bytes::Bytes;
use tokio::time::timeout;
use toolgate_gateway::{AuthFailureReason, Listener};

use crate::api::{Admin, Ask, token_of};
use crate::fault::Fault;
use crate::query::Query;
use crate::reply::Answer;
use crate::route::Route;
use crate::routes::ROUTES;

/// The largest body: that of a policy.
pub(crate) const MAX_BODY: usize = toolgate_policy::MAX_BYTES;

/// How long a body may take to arrive, in total.
const BODY_READ: Duration = Duration::from_mins(1);

/// All routes of the API, and an answer to all other paths below `/api`.
pub fn router(admin: Arc<Admin>) -> Router {
    let mut router = Router::new().route("/api/{*rest}", any(nothing_here));
    for route in ROUTES {
        let handle = move |State(admin): State<Arc<Admin>>,
                           params: RawPathParams,
                           request: Request| async move {
            serve(admin, route, &params, request).await
        };
        router = router.route(route.path, on(route.method.filter(), handle));
    }
    router.method_not_allowed_fallback(|| async { Fault::not_allowed() }).with_state(admin)
}

async fn nothing_here() -> Fault {
    Fault::not_found("not found; see /api/v1/openapi.json")
}

async fn serve(
    admin: Arc<Admin>,
    route: &'static Route,
    params: &RawPathParams,
    request: Request,
) -> Response {
    let answered = answer(admin, route, params, request).await;
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(no_store);
    response
}

async fn answer(
    admin: Arc<Admin>,
    route: &'static Route,
    params: &RawPathParams,
    request: Request,
) -> Answer {
    let token = token_of(request.headers());
    let found = token.and_then(|token| Some((token, admin.person(&token)?)));
    let Some((token, who)) = found else {
        let has_one = request.headers().contains_key(header::AUTHORIZATION);
        let why = if has_one { AuthFailureReason::BadToken } else { AuthFailureReason::NoToken };
        let auth_failures = admin.gateway().admission().auth_failures();
        auth_failures.refused(Listener::Admin, why, request.extensions().get().copied());
        return Err(Fault::unauthorized());
    };
    if !who.may(route.role) {
        let auth_failures = admin.gateway().admission().auth_failures();
        auth_failures.refused(
            Listener::Admin,
            AuthFailureReason::Role,
            request.extensions().get().copied(),
        );
        let needed = route.role.as_str();
        return Err(Fault::forbidden(format!("this needs the role `{needed}`")));
    }
    let words: Vec<&str> = route.query.iter().map(|(name, _)| *name).collect();
    let query = Query::read(request.uri().query(), &words)?;
    let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (parts, body) = request.into_parts();
    let body = match &route.body {
        Some(_) => read(body).await?,
        None => Bytes::new(),
    };
    let headers = parts.headers;
    let ask = Ask { admin, who, token, via: None, params, query, body, headers };
    if let Err(fault) = ask.check_person() {
        let auth_failures = ask.admin.gateway().admission().auth_failures();
        auth_failures.refused(
            Listener::Admin,
            AuthFailureReason::BadToken,
            parts.extensions.get().copied(),
        );
        return Err(fault);
    }
    (route.handle)(ask).await
}

/// Reads the body within [`BODY_READ`].
async fn read(body: Body) -> Result<Bytes, Fault> {
    match timeout(BODY_READ, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Fault::too_large(MAX_BODY)),
        Err(_) => Err(Fault::too_slow()),
    }
}
