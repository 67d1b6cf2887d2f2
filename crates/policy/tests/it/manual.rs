//! The manual's examples are documents: each whole one loads without a problem and passes its tests.

use std::path::Path;

use toolgate_policy::{Known, Policy, format};

#[test]
fn the_examples_of_the_manual_are_good_documents() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md");
    let manual = std::fs::read_to_string(path).unwrap();
    let mut whole = 0;
    for block in manual.split("```yaml\n").skip(1) {
        let example = block.split("```").next().unwrap();
        let document = if example.contains("version:") {
            whole += 1;
            example.to_owned()
        } else if example.starts_with("tools:") {
            format!("version: \"1\"\ndefault: allow\n{example}")
        } else {
            let entry: String = example.lines().map(|line| format!("    {line}\n")).collect();
            format!("version: \"1\"\ndefault: allow\ntools:\n  x:\n{entry}")
        };
        let loaded = Policy::load("p", &document, &Known::default());
        assert!(loaded.problems.is_empty(), "{document}\n{:#?}", loaded.problems);
        let report = loaded.policy.unwrap().run_tests();
        assert!(report.passed(), "{report:#?}");
        assert!(format(&document).is_ok());
    }
    assert!(whole >= 1);
}
