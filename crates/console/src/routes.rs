//! The paths of the console.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawPathParams, Request, State};
use axum::routing::{MethodFilter, get, on};

use crate::assets;
use crate::console::Console;
use crate::pages::{
    approval, approvals, audit, catalog, freeze, grants, live, login, overview, people, policies,
    policy, proof, servers, sessions, styles, tool, tools,
};
use crate::serve::{Handle, serve};

macro_rules! paths {
    ($($method:ident $kind:ident $path:literal $handle:path;)+) => {
        const PATHS: &[(MethodFilter, &str, Handle)] = &[$(
            (MethodFilter::$method, $path, Handle::$kind(|request| Box::pin($handle(request)))),
        )+];
    };
}

paths! {
    GET Outside "/login" login::show;
    POST Outside "/login" login::sign_in;
    POST SignedIn "/logout" login::sign_out;
    POST Outside "/preferences" login::prefer;
    GET Page "/" overview::show;
    GET SignedIn "/console/events" live::events;
    POST SignedIn "/freeze" freeze::create;
    POST SignedIn "/freeze/{id}/end" freeze::end;
    GET Page "/servers" servers::show;
    POST SignedIn "/servers" servers::add;
    POST SignedIn "/servers/{name}/test" servers::test;
    POST SignedIn "/servers/{name}/remove" servers::remove;
    GET Page "/tools" tools::show;
    GET Page "/tools/{server}/{tool}" tool::show;
    POST SignedIn "/tools/{server}/{tool}/call" tool::call;
    POST SignedIn "/tools/{server}/{tool}/approve" tool::approve;
    POST SignedIn "/tools/{server}/{tool}/reject" tool::reject;
    GET Page "/grants" grants::show;
    POST SignedIn "/grants" grants::create;
    POST SignedIn "/grants/{id}/rotate" grants::rotate;
    POST SignedIn "/grants/{id}/revoke" grants::revoke;
    POST SignedIn "/grants/{id}/restore" grants::restore;
    POST SignedIn "/grants/{id}/policy" grants::attach;
    GET Page "/people" people::show;
    POST SignedIn "/people" people::create;
    POST SignedIn "/people/{id}/rotate" people::rotate;
    POST SignedIn "/people/{id}/revoke" people::revoke;
    GET Page "/sessions" sessions::show;
    GET Page "/audit" audit::show;
    GET Page "/audit/export" proof::export;
    POST SignedIn "/audit/verify" proof::verify;
    GET Page "/audit/{call_id}" audit::call;
    GET Page "/policies" policies::show;
    POST SignedIn "/policies" policies::create;
    GET Page "/policies/{name}" policy::show;
    POST SignedIn "/policies/{name}" policy::save;
    POST SignedIn "/policies/{name}/draft" policy::draft;
    POST SignedIn "/policies/{name}/rollback" policy::rollback;
    POST SignedIn "/policies/{name}/enforce" policy::enforce;
    POST SignedIn "/policies/{name}/remove" policy::remove;
    GET Page "/approvals" approvals::show;
    POST SignedIn "/approvals/standing/{id}/end" approvals::end_standing;
    GET Page "/approvals/{id}" approval::show;
    POST SignedIn "/approvals/{id}/approve" approvals::approve;
    POST SignedIn "/approvals/{id}/deny" approvals::deny;
    GET Page "/catalog" catalog::show;
    GET Page "/console/styles" styles::show;
}

/// All paths of the console.
pub fn router(console: Arc<Console>) -> Router {
    let mut router = Router::new().route("/assets/{name}", get(assets::serve));
    for (filter, path, handle) in PATHS {
        let on_request = move |State(console): State<Arc<Console>>,
                               params: RawPathParams,
                               request: Request| async move {
            serve(console, handle, &params, request).await
        };
        router = router.route(path, on(*filter, on_request));
    }
    router.with_state(console)
}
