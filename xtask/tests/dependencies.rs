//! What the `toolgate` binary is made of: features and crates that would break its promises.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Command;

/// Crates that must not be in the binary, and why.
const BANNED: &[(&str, &str)] = &[
    ("ring", "one TLS provider is enough, and ours is aws-lc-rs"),
    ("openssl-sys", "the binary needs no library of the machine"),
    ("rmcp", "it drops fields it does not know; it is a peer in tests only"),
    ("serde_yaml", "it is no longer maintained"),
];

/// Features that must be off, and why.
const FEATURES: &[(&str, &str, &str)] = &[
    (
        "serde_json",
        "preserve_order",
        "maps would be ordered by arrival, and canonical JSON would not be",
    ),
    ("serde_json", "arbitrary_precision", "numbers would become maps within borrowed envelopes"),
];

#[test]
fn banned_crates_are_not_in_the_binary() {
    let graph = graph();
    assert!(
        graph.iter().any(|(name, _)| name == "serde_json"),
        "the graph is read wrongly: {graph:?}"
    );
    for (banned, why) in BANNED {
        assert!(
            !graph.iter().any(|(name, _)| name == banned),
            "`{banned}` is in the binary ({why}); `cargo tree -e normal -i {banned}` shows through what"
        );
    }
}

#[test]
fn features_that_change_json_are_off() {
    let graph = graph();
    for (name, feature, why) in FEATURES {
        let all =
            graph.iter().filter(|(found, _)| found == name).flat_map(|(_, features)| features);
        let on: Vec<&String> = all.clone().filter(|found| found == feature).collect();
        assert!(
            on.is_empty(),
            "`{name}/{feature}` is on ({why}); `cargo tree -e features -i {name}` shows through what"
        );
        assert!(all.count() > 0, "`{name}` has no feature at all, so the graph is read wrongly");
    }
}

/// The crates of the binary with their features, as cargo would build it.
fn graph() -> Vec<(String, Vec<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none"])
        .args(["--package", "toolgate", "--format", "{p}|{f}"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (package, features) = line.split_once('|').unwrap();
        let name = package.split(' ').next().unwrap().to_owned();
        (name, features.trim_end_matches(" (*)").split(',').map(str::to_owned).collect())
    };
    text.lines().map(line).collect()
}
