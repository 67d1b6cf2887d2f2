//! The JSON Schema agrees with the reader on form.

use std::path::Path;

use serde_json::Value;
use toolgate_policy::{Code, Known, Policy, RECOMMENDED, json_schema};

/// Problems of form, which a schema sees too.
const FORM: [Code; 6] = [
    Code::UnknownKey,
    Code::MissingKey,
    Code::WrongType,
    Code::Misplaced,
    Code::NoDefault,
    Code::UnknownClass,
];

#[test]
fn every_example_is_judged_alike() {
    let schema = json_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut compared = 0;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codes");
    let files = super::cases::files(&folder);
    let texts = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
    for text in texts.chain([RECOMMENDED.to_owned()]) {
        let Ok(value) = serde_saphyr::from_str::<Value>(&text) else { continue };
        let loaded = Policy::load("p", &text, &Known::default());
        let valid = validator.is_valid(&value);
        if loaded.policy.is_some() {
            let errors: Vec<String> = validator
                .iter_errors(&value)
                .map(|e| format!("{e} at {}", e.instance_path()))
                .collect();
            assert!(valid, "a good document breaks the schema:\n{text}\n{errors:?}");
            compared += 1;
        } else if loaded.problems.iter().any(|p| FORM.contains(&p.code)) {
            assert!(!valid, "a document with a bad form passes the schema:\n{text}");
            compared += 1;
        }
    }
    assert!(compared > 15, "{compared}");
}
