//! The defaults that the schema tells are the defaults that the reader uses.

use serde_json::{Map, Value};
use toolgate_config::Config;

use crate::support::{config, problems};

#[test]
fn no_file_and_an_empty_file_are_the_same() {
    assert_eq!(config("version: 1"), Config::default());
}

#[test]
fn a_file_that_spells_out_every_default_of_the_schema_changes_nothing() {
    let schema = toolgate_config::schema();
    let mut written = defaults(&schema, &schema);
    let sections = written.len();
    assert!(sections > 5, "the schema has defaults: {written:?}");
    written.insert("version".to_owned(), 1.into());
    assert_eq!(config(&Value::Object(written).to_string()), Config::default());
}

/// A different value in place of any default must be seen, or the test above proves nothing.
#[test]
fn a_value_that_is_not_the_default_changes_the_configuration() {
    for line in [
        "listen: { mcp: off }",
        "local: off",
        "shutdown_grace: 31s",
        "list_wait: 6s",
        "limits: { depth: 65 }",
        "agent_sessions: { idle: 16m }",
        "sessions: { queue: 101 }",
        "audit: { checkpoints: { rows: 1001 } }",
        "agent_sessions: { per_grant: 255 }",
        "limits: { body_read: 61s }",
    ] {
        assert_ne!(config(&format!("version: 1\n{line}")), Config::default(), "{line}");
    }
    assert_eq!(problems("").len(), 1);
}

/// The defaults of a section as a document, through references.
fn defaults(section: &Value, root: &Value) -> Map<String, Value> {
    let mut written = Map::new();
    let Some(properties) = section["properties"].as_object() else { return written };
    for (key, property) in properties {
        if let Some(default) = property.get("default") {
            written.insert(key.clone(), default.clone());
            continue;
        }
        let target = std::iter::once(property)
            .chain(property["anyOf"].as_array().into_iter().flatten())
            .find_map(|schema| schema["$ref"].as_str());
        if let Some(section) =
            target.and_then(|target| root.pointer(target.trim_start_matches('#')))
        {
            let inner = defaults(section, root);
            if !inner.is_empty() {
                written.insert(key.clone(), Value::Object(inner));
            }
        }
    }
    written
}
