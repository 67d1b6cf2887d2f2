//! The OpenAPI 3.1 document, generated from the table of routes.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::fault;
use crate::route::{Body, Route};

/// The document that describes these routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = SchemaGenerator::new(settings);
    let error = generator.subschema_for::<fault::Body>();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let operation = operation(route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.as_str().to_owned(), operation);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "toolgate admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every change is audited before it takes effect, and is active when the response arrives.",
        },
        "security": [{ "person": [] }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": { "Error": {
                "description": "Error",
                "content": { "application/json": { "schema": error } },
            } },
            "securitySchemes": { "person": {
                "type": "http",
                "scheme": "bearer",
                "description": "The token of a person; tokens of grants are not accepted",
            } },
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let named = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = named.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let in_query = route.query.iter().map(|(name, about)| {
        json!({ "name": name, "in": "query", "description": about, "schema": { "type": "string" } })
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let content = match route.answer {
        Some(shape) => Some(json!({ "application/json": { "schema": shape(generator) } })),
        None if route.statuses == [200] => {
            Some(json!({ "text/event-stream": { "schema": { "type": "string" } } }))
        }
        None => None,
    };
    let answer = object([("description", Some("Done".into())), ("content", content)]);
    let error = ("default".to_owned(), json!({ "$ref": "#/components/responses/Error" }));
    let successes = route.statuses.iter().map(|status| (status.to_string(), answer.clone()));
    let responses: Map<String, Value> = successes.chain([error]).collect();
    let needs = format!("Requires the role `{}`.", route.role.as_str());
    object([
        ("summary", Some(route.summary.into())),
        ("description", Some(needs.into())),
        ("parameters", (!parameters.is_empty()).then(|| parameters.into())),
        ("requestBody", route.body.as_ref().map(|body| request_body(body, generator))),
        ("responses", Some(responses.into())),
    ])
}

fn request_body(body: &Body, generator: &mut SchemaGenerator) -> Value {
    let content = match body {
        Body::Json(shape) => json!({ "application/json": { "schema": shape(generator) } }),
        Body::Document => json!({
            "application/json": { "schema": { "type": "object" } },
            "application/yaml": { "schema": { "type": "string" } },
        }),
    };
    json!({ "required": true, "content": content })
}

/// An object of the members that are present.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let there = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(there.collect())
}
