//! Whether arguments fit the schema of a session's tool.
//!
//! Schemas come from programs that dial in: nothing that they refer to elsewhere is ever fetched,
//! and a pattern that runs wild is cut short. A schema that nobody can read checks nothing, and
//! that is said once; the program itself still has the last word on its arguments.
//!
//! Invariant: what is said of arguments has no value of theirs.

use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use parking_lot::Mutex;
use serde_json::Value;
use toolgate_session::{CheckArguments, Schema};

/// How many compiled schemas are kept.
const KEPT: usize = 4_096;
/// How far one pattern may wander before it is given up.
const BACKTRACKING: usize = 10_000;
/// How many complaints one refusal has.
const COMPLAINTS: usize = 5;

/// Compiled schemas, by their hash. None stands for a schema that cannot be read.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<HashMap<[u8; 32], Option<Arc<Validator>>>>);

impl Schemas {
    fn compiled(&self, schema: &Schema) -> Option<Arc<Validator>> {
        if let Some(known) = self.0.lock().get(&schema.hash) {
            return known.clone();
        }
        let compiled = compile(schema.raw.get());
        let compiled = compiled
            .inspect_err(|why| tracing::warn!(%why, "a session's schema cannot be read, so arguments are not checked against it"))
            .ok()
            .map(Arc::new);
        let mut kept = self.0.lock();
        if kept.len() >= KEPT {
            // Programs with ever new schemas are rare; those in use come back at once.
            kept.clear();
        }
        kept.insert(schema.hash, compiled.clone());
        compiled
    }
}

impl CheckArguments for Schemas {
    fn check(&self, schema: &Schema, arguments: &str) -> Result<(), String> {
        let Some(validator) = self.compiled(schema) else { return Ok(()) };
        let arguments: Value =
            serde_json::from_str(arguments).map_err(|error| error.to_string())?;
        let mut complaints: Vec<String> = Vec::new();
        for error in validator.iter_errors(&arguments).take(COMPLAINTS) {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "the arguments".to_owned() } else { place };
            complaints.push(format!("{place}: {}", error.masked()));
        }
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
    }
}

fn compile(schema: &str) -> Result<Validator, String> {
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    jsonschema::options()
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKING))
        .build(&schema)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use toolgate_session::{Entry, Key, Millis};

    use super::*;

    /// A schema as a session would publish it.
    fn schema(raw: &str) -> Schema {
        let tool = format!(r#"{{"name":"t","input_schema":{raw}}}"#);
        let key = Key { kind: String::new(), config_id: String::new(), infobase_name: None };
        let entry = Entry::restore(key, [tool.as_str()], Millis(0), []);
        entry.tools.get("t").unwrap().checked_schema.clone()
    }

    #[test]
    fn arguments_are_held_to_their_schema_and_values_are_not_said() {
        let schemas = Schemas::default();
        let strict = schema(
            r#"{"type":"object","properties":{"Сумма":{"type":"number","maximum":5}},"required":["Сумма"],"additionalProperties":false}"#,
        );
        assert_eq!(schemas.check(&strict, r#"{"Сумма":1.5}"#), Ok(()));
        for (arguments, words) in [
            ("{}", "Сумма"),
            (r#"{"Сумма":"SECRET"}"#, "/Сумма"),
            (r#"{"Сумма":7654321}"#, "/Сумма"),
            (r#"{"Сумма":1,"лишнее":"SECRET"}"#, "лишнее"),
        ] {
            let complaint = schemas.check(&strict, arguments).unwrap_err();
            assert!(complaint.contains(words), "{arguments}: {complaint}");
            assert!(!complaint.contains("SECRET") && !complaint.contains("7654321"), "{complaint}");
        }
    }

    #[test]
    fn hostile_schemas_do_no_harm() {
        let schemas = Schemas::default();
        for raw in [
            r##"{"$ref":"#"}"##,
            r##"{"type":"object","allOf":[{"$ref":"#"}]}"##,
            r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
            r##"{"$dynamicRef":"#x","$dynamicAnchor":"x"}"##,
            r#"{"$ref":"https://example.com/schema.json"}"#,
            r#"{"$ref":"file:///etc/passwd"}"#,
            r#"{"type":"Строка"}"#,
            r#"{"properties":{"a":{"pattern":"^(a+)+$"}}}"#,
            r#"{"properties":{"a":{"pattern":"("}}}"#,
        ] {
            let arguments = format!(r#"{{"a":"{}!"}}"#, "a".repeat(60));
            // Whatever comes of it, it comes, and the next call is checked as ever.
            drop(schemas.check(&schema(raw), &arguments));
            assert!(schemas.check(&schema(r#"{"required":["b"]}"#), &arguments).is_err());
        }
    }
}
