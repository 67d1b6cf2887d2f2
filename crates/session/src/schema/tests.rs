//! Golden schemas: `UPDATE=1 cargo test -p toolgate-session` rewrites them.

use std::path::Path;

use serde_json::Value;

use super::*;
use crate::tool::read_tool;

fn tool(schema: &str) -> crate::Tool {
    read_tool(&format!(r#"{{"name":"t","input_schema":{schema}}}"#)).unwrap().unwrap()
}

/// Composes the schemas, each published by these sessions, and compares.
#[track_caller]
fn check(name: &str, schemas: &[(&str, &[&str])]) {
    let tools: Vec<(crate::Tool, &[&str])> =
        schemas.iter().map(|(schema, sessions)| (tool(schema), *sessions)).collect();
    let serving =
        |uid| ServingSession { session_id: uid, infobase_name: "Склад", kind: "client" };
    let mut variants: Vec<Variant<'_>> = tools
        .iter()
        .map(|(tool, sessions)| Variant {
            schema: &tool.input_schema,
            sessions: sessions.iter().copied().map(serving).collect(),
        })
        .collect();
    variants.sort_by_key(|variant| variant.schema.hash);
    let mut golden = String::new();
    for (mode, conflict, selectors) in [
        ("merged", SchemaConflict::Merged, Selectors::SessionId),
        ("oneof", SchemaConflict::OneOf, Selectors::SessionId),
        ("merged, selectors: any", SchemaConflict::Merged, Selectors::Any),
    ] {
        let composed = compose(&variants, conflict, selectors);
        let value: Value = serde_json::from_str(&composed).unwrap();
        if conflict == SchemaConflict::Merged {
            for combinator in COMBINATORS {
                assert!(value.get(combinator).is_none(), "{combinator} at the top: {composed}");
            }
        }
        golden.extend([mode, ":\n", &serde_json::to_string_pretty(&value).unwrap(), "\n"]);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/schema/golden/{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &golden).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(golden, expected, "{} differs; UPDATE=1 rewrites it", path.display());
}

const PLAIN: &str = r#"{"type":"object","properties":{"Имя":{"type":"string"},"n":{"type":"integer"}},"required":["Имя"],"additionalProperties":false}"#;
const OTHER: &str = r#"{"type":"object","properties":{"Имя":{"type":"string"},"n":{"type":"string"},"m":{}},"required":["Имя","m"],"additionalProperties":false}"#;

#[test]
fn one_session() {
    check("one_session", &[(PLAIN, &["u1"])]);
}

#[test]
fn two_sessions_with_one_schema() {
    check("two_sessions", &[(PLAIN, &["u1", "u2"])]);
}

#[test]
fn two_schemas() {
    check("two_schemas", &[(PLAIN, &["u1", "u3"]), (OTHER, &["u2"])]);
}

#[test]
fn no_session_serves_it() {
    check("no_session", &[(PLAIN, &[]), (OTHER, &[])]);
}

#[test]
fn more_sessions_than_are_listed() {
    let uids: Vec<String> = (0..21).map(|n| format!("u{n:02}")).collect();
    let uids: Vec<&str> = uids.iter().map(String::as_str).collect();
    check("many_sessions", &[(PLAIN, &uids)]);
}

#[test]
fn long_names_are_cut_in_the_description_alone() {
    let (tool, long) = (tool(PLAIN), "ж".repeat(300));
    let session = ServingSession { session_id: &long, infobase_name: &long, kind: "client" };
    let variants = [Variant { schema: &tool.input_schema, sessions: vec![session] }];
    let composed = compose(&variants, SchemaConflict::Merged, Selectors::SessionId);
    let value: Value = serde_json::from_str(&composed).unwrap();
    let selector = &value["properties"]["session_id"];
    assert_eq!(selector["enum"][0], long);
    let cut = format!("{}…", "ж".repeat(80));
    let description = selector["description"].as_str().unwrap();
    assert!(description.ends_with(&format!(" `{cut}` ({cut}, client).")), "{description}");
}

#[test]
fn a_session_id_of_the_clients_own() {
    let own =
        r#"{"properties":{"session_id":{"type":"integer"},"a":{}},"required":["session_id","a"]}"#;
    check("own_session_id", &[(own, &["u1"])]);
    let checked = tool(own).checked_schema.raw.to_string();
    assert_eq!(checked, r#"{"properties":{"a":{}},"required":["a"]}"#);
}

#[test]
fn arguments_with_the_names_of_selectors() {
    let own = r#"{"properties":{"kind":{"type":"integer"}},"required":["kind"]}"#;
    check("own_kind", &[(own, &["u1"]), (PLAIN, &["u2"])]);
}

#[test]
fn combinators_at_the_top() {
    let combined = r#"{"properties":{"a":{}},"allOf":[{"properties":{"b":{"type":"null"}},"required":["b"]}],"oneOf":[{"properties":{"c":{}},"required":["c"]},{"properties":{"d":{"anyOf":[{}]}}}],"additionalProperties":false}"#;
    check("combinators", &[(combined, &["u1"])]);
    check("combinators_beside", &[(combined, &["u1"]), (PLAIN, &["u2"])]);
}

#[test]
fn definitions_meet() {
    let one = r##"{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"type":"string"}},"$defs":{"x":{"type":"string"},"y":{}}}"##;
    let two = r##"{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"type":"string"}},"$defs":{"x":{"type":"integer"}}}"##;
    let same = r##"{"properties":{"c":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}"##;
    check("definitions_differ", &[(one, &["u1"]), (two, &["u2"])]);
    check("definitions_agree", &[(one, &["u1"]), (same, &["u2"])]);
}

#[test]
fn numbers_and_order_of_properties_stay() {
    let odd = r#"{"type":"object","properties":{"z":{"minimum":1.0},"a":{"maximum":1e2}}}"#;
    let tool = tool(odd);
    let variants = [Variant { schema: &tool.input_schema, sessions: Vec::new() }];
    let composed = compose(&variants, SchemaConflict::Merged, Selectors::SessionId);
    assert!(composed.contains(r#""z":{"minimum":1.0},"a":{"maximum":1e2}"#), "{composed}");
}

#[test]
fn layout_does_not_make_schemas_differ() {
    let same = [r#"{"type":"object","a":1}"#, "{ \"a\": 1,\n\"type\":\"object\" }"];
    let [a, b] = same.map(|schema| tool(schema).input_schema.hash);
    assert_eq!(a, b);
}
