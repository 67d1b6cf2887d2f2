//! `docs/reference/admin-api.md` is generated from the table of routes.

use std::fmt::Write as _;
use std::path::Path;

use crate::route::{Body, Route};
use crate::routes::ROUTES;

#[test]
fn the_page_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/admin-api.md");
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap();
    assert_eq!(found, page, "regenerate it with UPDATE=1 cargo test -p toolgate-admin");
}

fn page() -> String {
    let mut page = String::from(
        "# Admin API\n\n\
         <!-- Generated from crates/admin/src/routes.rs; regenerate with \
         `UPDATE=1 cargo test -p toolgate-admin`. -->\n\n\
         JSON over HTTP on the admin listener (`http://127.0.0.1:4002` by default). \
         `GET /api/v1/openapi.json` is the OpenAPI 3.1 description with all shapes.\n\n\
         * Send `Authorization: Bearer <token of a person>`. The person `admin` has the token in the \
         file `admin.token` of the data folder. Tokens of grants are not accepted.\n\
         * Roles: `viewer` reads; `approver` also answers approvals; `policy_manager` reads, changes \
         policies and attaches them to grants; `admin` may do everything.\n\
         * Lists are `{\"items\": […], \"next\": cursor or null}`. Times are RFC 3339 in UTC.\n\
         * Errors are `{\"error\": {\"code\", \"message\", \"problems\"?}}` with status 400, 401, 403, \
         404, 409, 413, 422 or 503.\n\
         * Every change is audited with the person before it takes effect, and is active when the \
         response arrives.\n",
    );
    for route in ROUTES {
        page.push_str(&section(route));
    }
    page
}

fn section(route: &Route) -> String {
    let method = route.method.as_str().to_uppercase();
    let mut text = format!("\n## `{method} {}`\n\n{}.\n\n", route.path, route.summary);
    let role = route.role.as_str();
    let body = match &route.body {
        None => String::new(),
        Some(Body::Json(_)) => "Body: JSON. ".to_owned(),
        Some(Body::Document) => "Body: a policy document, JSON or YAML. ".to_owned(),
    };
    writeln!(text, "Role: `{role}`. {body}Success: {}.", route.answer.0).unwrap();
    if !route.query.is_empty() {
        text.push_str("\n| parameter | meaning |\n|---|---|\n");
    }
    for (name, meaning) in route.query {
        writeln!(text, "| `{name}` | {meaning} |").unwrap();
    }
    text
}
