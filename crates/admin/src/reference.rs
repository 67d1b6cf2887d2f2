//! `docs/reference/admin-api.md` is generated from the table of routes.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::openapi::document;
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
    let openapi = document(ROUTES);
    for route in ROUTES {
        page.push_str(&section(route, &openapi));
    }
    page
}

fn section(route: &Route, openapi: &Value) -> String {
    let method = route.method.as_str().to_uppercase();
    let mut text = format!("\n## `{method} {}`\n\n{}.\n\n", route.path, route.summary);
    let operation = &openapi["paths"][route.path][route.method.as_str()];
    let statuses: Vec<String> = route.statuses.iter().map(u16::to_string).collect();
    let success = statuses.join(" or ");
    write!(text, "Role: `{}`. Success: {success}", route.role.as_str()).unwrap();
    let answer = &operation["responses"][&statuses[0]]["content"];
    writeln!(text, "{}", answered(answer, openapi)).unwrap();
    match &route.body {
        None => {}
        Some(Body::Document) => text.push_str("\nBody: a policy document, JSON or YAML.\n"),
        Some(Body::Json(_)) => {
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            text.push_str(&body_members(resolved(body, openapi)));
        }
    }
    if !route.query.is_empty() {
        text.push_str("\n| parameter | meaning |\n|---|---|\n");
    }
    for (name, meaning) in route.query {
        writeln!(text, "| `{name}` | {meaning} |").unwrap();
    }
    text
}

/// The rest of the sentence about the body of a success.
fn answered(content: &Value, openapi: &Value) -> String {
    if content.get("text/event-stream").is_some() {
        return ", a stream of events.".to_owned();
    }
    let schema = resolved(&content["application/json"]["schema"], openapi);
    let items = schema["properties"]["items"].get("items").filter(|_| is_list(schema));
    match (items, names(schema)) {
        (Some(item), _) => match names(resolved(item, openapi)) {
            names if names.is_empty() => ", a list.".to_owned(),
            names => format!(", a list of items with {}.", names.join(", ")),
        },
        (None, names) if names.is_empty() => ".".to_owned(),
        (None, names) => format!(", with {}.", names.join(", ")),
    }
}

/// Whether this is one page of a list.
fn is_list(schema: &Value) -> bool {
    names(schema) == ["`items`", "`next`"]
}

fn names(schema: &Value) -> Vec<String> {
    let members = schema["properties"].as_object();
    members.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect()
}

/// A table of the members of a body.
fn body_members(schema: &Value) -> String {
    let Some(members) = schema["properties"].as_object() else {
        return "\nBody: a JSON object.\n".to_owned();
    };
    let is_required = |name: &String| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
    };
    let mut text = String::from("\n| member of the body | meaning |\n|---|---|\n");
    for (name, member) in members {
        let needed = if is_required(name) { "Required. " } else { "" };
        let about = member["description"].as_str().unwrap_or_default().replace('\n', " ");
        writeln!(text, "| `{name}` | {needed}{about} |").unwrap();
    }
    text
}

/// The schema that a reference leads to.
fn resolved<'d>(schema: &'d Value, openapi: &'d Value) -> &'d Value {
    let name = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#"));
    name.and_then(|pointer| openapi.pointer(pointer)).unwrap_or(schema)
}
