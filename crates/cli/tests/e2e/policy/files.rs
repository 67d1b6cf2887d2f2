//! Files of policies: formatting, import, schema, bad files, and the manual.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{INTERCEPT, UNTIDY, as_json, home, policy, text};
use crate::gate::Home;

#[test]
fn formatting_in_place() {
    let home = home();
    let file = home.path("untidy.yaml");
    let formatted = text(&policy(&home, &["fmt", "untidy.yaml"], None).stdout);
    assert_ne!(formatted, UNTIDY);
    assert_eq!(fs::read_to_string(&file).unwrap(), UNTIDY);

    // Through a link, so that the link must stay one.
    std::os::unix::fs::symlink("untidy.yaml", home.path("link.yaml")).unwrap();
    let output = policy(&home, &["fmt", "--write", "link.yaml"], None);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), ""));
    assert_eq!(fs::read_to_string(&file).unwrap(), formatted);
    assert!(fs::symlink_metadata(home.path("link.yaml")).unwrap().is_symlink());
    assert_eq!(policy(&home, &["fmt", "--check", "untidy.yaml"], None).status.code(), Some(0));
    let left: Vec<_> =
        fs::read_dir(home.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".new")), "{left:?}");

    assert_eq!(policy(&home, &["fmt", "-"], Some(UNTIDY.as_bytes())).stdout, formatted.as_bytes());
    let output = policy(&home, &["fmt", "-", "--write"], Some(b""));
    assert_eq!(output.status.code(), Some(2));
}

/// PolicyLayer's JSON is read as it is, so there is nothing to turn into anything.
#[test]
fn what_is_a_policy_already_is_imported_as_it_is() {
    let home = Home::new();
    let document = r#"{"version":"1","default":"deny","hide":["a"],"all_tools":{"limits":[{"counter":"calls","window":"minute","max":5,"scope":"grant"}]},"tools":{"t":{"deny_if":[{"conditions":[],"on_deny":"Requires human approval."}]}}}"#;
    let output = policy(&home, &["import", "-"], Some(document.as_bytes()));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("this is a policy already"), "{printed}");
    let imported = String::from_utf8(output.stdout).unwrap();
    let checked = policy(&home, &["check", "-"], Some(imported.as_bytes()));
    assert_eq!(checked.status.code(), Some(0), "{imported}");
}

#[test]
fn an_import_is_a_valid_policy() {
    let home = home();
    let output = policy(&home, &["import", "intercept.yaml", "--write", "new.yaml"], None);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), ""));
    assert!(text(&output.stderr).contains("`default: allow` is written out"));
    let (code, found) = as_json(&home, &["check", "-o", "json", "new.yaml"]);
    assert_eq!((code, &found["problems"]), (Some(0), &json!([])));
    assert_eq!(policy(&home, &["fmt", "--check", "new.yaml"], None).status.code(), Some(0));
    let output = policy(&home, &["import", "intercept.yaml", "--write", "no/such/folder"], None);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot write `no/such/folder`"));
}

#[test]
fn the_schema_is_json() {
    let output = policy(&home(), &["schema"], None);
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(schema["properties"]["tools"].is_object());
}

#[test]
fn files_that_cannot_be_policies() {
    let home = home();
    fs::create_dir(home.path("folder")).unwrap();
    fs::write(home.path("latin.yaml"), b"version: \"1\"\ndescription: caf\xe9\n").unwrap();
    fs::write(home.path("utf16.yaml"), b"\xff\xfev\0e\0").unwrap();
    // A character of two bytes crosses every even limit.
    fs::write(home.path("huge.yaml"), format!("x{}", "é".repeat(5 << 20))).unwrap();
    let verbs: [&[&str]; 5] =
        [&["check"], &["test"], &["fmt"], &["import"], &["explain", "--tool", "x", "--policy"]];
    for verb in verbs {
        for (file, code, printed) in [
            ("missing.yaml", 2, "cannot read `missing.yaml`: no such file"),
            ("folder", 2, "cannot read `folder`: it is a directory"),
            ("latin.yaml", 2, "line 2 is not UTF-8"),
            ("utf16.yaml", 2, "UTF-16"),
            ("huge.yaml", 1, "TG0002"),
        ] {
            let words = [verb, &[file]].concat();
            let output = policy(&home, &words, None);
            let reported = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{words:?}: {reported}");
            assert!(reported.contains(printed), "{words:?}: {reported}");
        }
        let words = [verb, &["-"]].concat();
        let output = policy(&home, &words, Some(b"version: 1\n"));
        let reported = text(&output.stdout) + &text(&output.stderr);
        if verb != ["fmt"] {
            assert_eq!(output.status.code(), Some(1), "{words:?}: {reported}");
            assert!(reported.contains("<stdin>:1:"), "{words:?}: {reported}");
        }
    }
}

/// The manual's consoles are run: what it shows is what is printed.
#[test]
fn the_manual_shows_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md");
    let mut manual = fs::read_to_string(&path).unwrap();
    let home = Home::new();
    let example = manual.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    fs::write(home.path("charge.yaml"), example).unwrap();
    fs::write(home.path("typo.yaml"), example.replace("deny_if", "deny_fi")).unwrap();
    fs::write(home.path("intercept.yaml"), INTERCEPT).unwrap();
    let blocks: Vec<String> = manual
        .split("```console\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect();
    assert!(blocks.len() >= 4, "{}", blocks.len());
    for block in blocks {
        let typed = block.lines().next().unwrap();
        let words = words(typed.strip_prefix("$ toolgate policy ").unwrap());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = policy(&home, &words, None);
        let printed = text(&output.stdout) + &text(&output.stderr);
        let real = format!("{typed}\n{printed}");
        if std::env::var_os("UPDATE").is_some() {
            manual = manual.replace(&block, &real);
            fs::write(&path, &manual).unwrap();
        } else {
            assert_eq!(block, real, "docs/policy.md; if this is meant, run again with UPDATE=1");
        }
    }
}

/// Splits a shell line with single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
