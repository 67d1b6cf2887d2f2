use jiff::Timestamp;
use toolgate_store::PolicyVersion;

use super::*;
use crate::test_config::config;

const ALLOW: &str = "version: '1'\ndefault: allow\n";
const DENY: &str = "version: '1'\ndefault: deny\n";
const BROKEN: &str = "version: '1'\ndefault: alow\n";
const FAILS: &str = "version: '1'\ndefault: allow\ntests:\n  - name: denied\n    \
                     call: { tool: drop }\n    expect: deny\n";

/// A file with inline policies.
fn file(policies: &[(&str, &str)]) -> FileState {
    let mut text = String::from("policies:\n");
    for (name, document) in policies {
        let lines = document.lines().map(|line| format!("    {line}\n"));
        text.extend([format!("  {name}:\n")].into_iter().chain(lines));
    }
    let text = if policies.is_empty() { "" } else { &text };
    let (config, policies) = (config(text), PolicyFiles::default());
    FileState { config, policies, local_policy: None }
}

fn stored(policies: &[(&str, &str)]) -> Snapshot {
    let version = |(name, document): &(&str, &str)| PolicyVersion {
        name: (*name).into(),
        version: 1,
        document: (*document).into(),
        created: Timestamp::UNIX_EPOCH,
    };
    Snapshot { policies: policies.iter().map(version).collect(), ..Snapshot::default() }
}

fn made(
    file: &FileState,
    snapshot: &Snapshot,
    is_local: bool,
    is_start: bool,
) -> Result<Policies, PolicyErrors> {
    let (compiled, checked) = (Compiled::default(), CheckedPolicies::default());
    let before = Before { compiled: &compiled, checked: &checked, is_start };
    policies(file, snapshot, is_local, &Known::default(), &before)
}

fn hash(text: &str) -> String {
    policy_check::check("p", text, &Known::default()).policy.unwrap().hash().to_owned()
}

fn active(made: &Policies, name: &str) -> Option<String> {
    made.by_name.get(name).map(|active| active.policy.hash().to_owned())
}

#[test]
fn the_file_takes_precedence_over_the_store() {
    let made = made(&file(&[("p", DENY)]), &stored(&[("p", ALLOW), ("q", ALLOW)]), false, true);
    let made = made.unwrap();
    assert_eq!(active(&made, "p"), Some(hash(DENY)));
    assert_eq!(active(&made, "q"), Some(hash(ALLOW)));
}

#[test]
fn both_take_precedence_over_the_built_in_policy() {
    let built_in = active(&made(&file(&[]), &stored(&[]), false, true).unwrap(), BUILT_IN);
    assert_eq!(built_in, Some(hash(RECOMMENDED)));
    let made_of = |file: FileState, snapshot| made(&file, &snapshot, false, true).unwrap();
    let of_file = made_of(file(&[(BUILT_IN, DENY)]), stored(&[(BUILT_IN, ALLOW)]));
    assert_eq!(active(&of_file, BUILT_IN), Some(hash(DENY)));
    let of_store = made_of(file(&[]), stored(&[(BUILT_IN, ALLOW)]));
    assert_eq!(active(&of_store, BUILT_IN), Some(hash(ALLOW)));
}

#[test]
fn a_bad_policy_of_the_file_rejects_the_file_with_every_error() {
    let file = file(&[("bad", BROKEN), ("good", ALLOW), ("fails", FAILS)]);
    let errors = made(&file, &stored(&[]), false, false).unwrap_err();
    assert_eq!(errors.0.len(), 2, "{errors}");
    let text = errors.to_string();
    assert!(text.contains("policy bad:") && text.contains("fails: "), "{text}");
}

#[test]
fn a_bad_policy_of_the_store_is_not_active_and_harms_no_other() {
    let snapshot = stored(&[("bad", BROKEN), ("good", ALLOW), ("fails", FAILS)]);
    let at_start = made(&file(&[]), &snapshot, false, true).unwrap();
    assert_eq!(active(&at_start, "bad"), None);
    assert_eq!(active(&at_start, "fails"), None);
    assert_eq!(active(&at_start, "good"), Some(hash(ALLOW)));
    let running = made(&file(&[]), &snapshot, false, false).unwrap();
    assert!(active(&running, "fails").is_some(), "the process that stored it has tested it");
}

#[test]
fn a_file_that_cannot_be_read_rejects_the_file() {
    let mut file = file(&[]);
    file.config = config("policies: { p: { file: missing.yaml } }");
    file.policies = PolicyFiles::read(&file.config, None, &mut Inputs::default());
    let errors = made(&file, &stored(&[]), false, true).unwrap_err();
    assert!(errors.to_string().contains("missing.yaml`: no such file"), "{errors}");
}

#[test]
fn calls_without_a_token_are_decided_by_the_command_line_or_in_shadow() {
    let mut file = file(&[]);
    assert!(made(&file, &stored(&[]), false, true).unwrap().local.is_none());
    let local = made(&file, &stored(&[(BUILT_IN, DENY)]), true, true).unwrap().local.unwrap();
    assert_eq!(local.policy.hash(), hash(&format!("mode: shadow\n{RECOMMENDED}")));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.yaml");
    std::fs::write(&path, DENY).unwrap();
    file.policies = PolicyFiles::read(&file.config, Some(&path), &mut Inputs::default());
    file.local_policy = Some(path);
    let made = made(&file, &stored(&[]), true, true).unwrap();
    assert_eq!(made.local.as_ref().unwrap().policy.name(), "mine");
    assert_eq!(made.meanings(&file).keys().collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn a_text_that_passed_is_neither_loaded_nor_tested_again() {
    let checked = CheckedPolicies::default();
    // It fails its tests, so that a second test would show.
    let policy = Arc::new(policy_check::load("p", FAILS, &Known::default()).policy.unwrap());
    checked.remember("p", FAILS, &[], &policy);
    let compiled = Compiled::default();
    let before = Before { compiled: &compiled, checked: &checked, is_start: true };
    let made = |servers: &[String]| {
        let snapshot = stored(&[("p", FAILS)]);
        let known = Known { servers: servers.to_vec(), ..Known::default() };
        policies(&file(&[]), &snapshot, false, &known, &before).unwrap().by_name.remove("p")
    };
    assert!(Arc::ptr_eq(&made(&[]).unwrap().policy, &policy));
    assert!(made(&["another".to_owned()]).is_none(), "with other servers it is another check");
}
