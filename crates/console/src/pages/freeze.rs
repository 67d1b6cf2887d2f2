//! Freezing and ending a freeze, from any page.

use axum::http::Method;
use serde_json::{Value, json};

use crate::visit::{Outcome, Visit, part};

/// Freezes what the form names: `grant`, `server`, `session` or everything.
pub(crate) async fn create(visit: Visit) -> Outcome {
    let form = &visit.form;
    let mut what = match (form.some("grant"), form.some("server"), form.some("session")) {
        (Some(grant), _, _) => json!({ "grant": grant }),
        (_, Some(server), _) => json!({ "server": server }),
        (_, _, Some(session)) => json!({ "session": session }),
        _ => json!({ "all": true }),
    };
    if let (Some(reason), Some(what)) = (form.some("reason"), what.as_object_mut()) {
        what.insert("reason".to_owned(), reason.into());
    }
    let sent = visit.send(&Method::POST, "/api/v1/freeze", &what).await;
    visit.ended(sent, &visit.back("/"), visit.tr("done-frozen"))
}

/// Ends a freeze.
pub(crate) async fn end(visit: Visit) -> Outcome {
    let target = format!("/api/v1/freeze/{}", part(visit.param("id")));
    let sent = visit.send(&Method::DELETE, &target, &Value::Null).await;
    visit.ended(sent, &visit.back("/"), visit.tr("done-unfrozen"))
}
