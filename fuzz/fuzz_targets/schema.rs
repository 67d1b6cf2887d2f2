//! Any schema of a session with any arguments: it is checked within the time of one run or not at
//! all, twice with the same result, and a complaint has no value of the arguments.
//!
//! The first line of the input is a schema, every other line the arguments of a call.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_gateway::fuzz::argument_checker;
use toolgate_session::{EntryKey, Millis, Schema, ShowcaseEntry};

const CALLS: usize = 4;

fuzz_target!(|input: &str| {
    let mut lines = input.lines();
    let Some(schema) = schema(lines.next().unwrap_or_default()) else { return };
    let fits = argument_checker();
    for arguments in lines.take(CALLS) {
        check(&schema, arguments, &fits);
    }
});

/// A schema as a session would publish it.
fn schema(raw: &str) -> Option<Schema> {
    let tool = format!(r#"{{"name":"t","input_schema":{raw}}}"#);
    let key = EntryKey { kind: String::new(), config_id: String::new(), infobase_name: None };
    let entry = ShowcaseEntry::restore(key, [tool.as_str()], Millis(0), []);
    entry.tools.get("t").map(|tool| tool.checked_schema.clone())
}

fn check(
    schema: &Schema,
    arguments: &str,
    fits: impl Fn(&Schema, &str, bool) -> Option<String>,
) {
    let read = serde_json::from_str::<Value>(arguments);
    for exact_keys in [true, false] {
        let found = fits(schema, arguments, exact_keys);
        assert_eq!(found, fits(schema, arguments, exact_keys), "{arguments}");
        assert!(found.is_some() || (schema.exceeded.is_none() && read.is_ok()), "{arguments}");
        if let (Some(complaint), Ok(read)) = (&found, &read) {
            check_complaint(complaint, schema, read);
        }
        if found.is_none() && exact_keys {
            assert_eq!(fits(schema, arguments, false), None, "{arguments}");
        }
    }
}

/// Names of properties may be told, and what the schema says itself; values may not.
fn check_complaint(complaint: &str, schema: &Schema, arguments: &Value) {
    let (mut keys, mut values) = (String::new(), Vec::new());
    collect(arguments, &mut keys, &mut values);
    let told = |value: &str| complaint.contains(value);
    let known = |value: &str| schema.raw.get().contains(value) || keys.contains(value);
    for value in values.into_iter().filter(|value| value.starts_with("SECRET")) {
        assert!(!told(value) || known(value), "{complaint}");
    }
}

fn collect<'v>(value: &'v Value, keys: &mut String, values: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => values.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, keys, values)),
        Value::Object(members) => {
            for (key, value) in members {
                keys.push_str(key);
                keys.push('\n');
                collect(value, keys, values);
            }
        }
        _ => {}
    }
}
