//! Any text as a policy: no panic; problems have a place; what is valid survives formatting with
//! its meaning, and its own tests can be run.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_policy::{Known, Policy, format, import_intercept};

fuzz_target!(|text: &str| {
    let known = Known { servers: vec!["zulip".to_owned()], ..Known::default() };
    let loaded = Policy::load("p", text, &known);
    for problem in &loaded.problems {
        assert!(problem.line >= 1 && problem.column >= 1);
        assert!(problem.render("policy.yaml", text).contains('^'));
    }
    if let Ok(formatted) = format(text) {
        assert_eq!(format(&formatted).as_deref(), Ok(formatted.as_str()), "formatting is stable");
        let again = Policy::load("p", &formatted, &known);
        assert_eq!(
            loaded.policy.as_ref().map(Policy::hash),
            again.policy.as_ref().map(Policy::hash),
            "formatting keeps the meaning"
        );
    }
    if let Some(policy) = &loaded.policy {
        // Each test may make 100,000 calls; a document with many of them would only be slow.
        if text.matches("times").count() == 0 {
            policy.run_tests();
        }
        policy.argument_paths();
    }
    if let Ok(imported) = import_intercept(text) {
        assert!(Policy::load("p", &imported.document, &known).policy.is_some());
    }
});
