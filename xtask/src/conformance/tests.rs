//! The comparison can fail in each way, and names the check.

use super::checks::{Checks, scenario};
use super::differences::Differences;
use super::leg::LEGS;
use super::{THROUGH, page};

const LIST: &str = r#"{
    "reasons": {"why": "Because."},
    "known": [{"runs": ["here"], "scenario": "s", "checks": ["b"], "reason": "why"}]
}"#;

fn checks(of_s: &str) -> Checks {
    let mut checks = Checks::default();
    let entries: Vec<String> = of_s
        .split_whitespace()
        .map(|entry| entry.split_once(':').unwrap())
        .map(|(id, status)| format!(r#"{{"id": "{id}", "status": "{status}"}}"#))
        .collect();
    checks.add("s", &format!("[{}]", entries.join(","))).unwrap();
    checks
}

/// The complaint about a run with these checks, compared to `direct`.
fn complaint(run: &str, direct: &str, found: &str) -> String {
    let list = Differences::parse(LIST).unwrap();
    let judged = list.judge(run, &checks(direct), &checks(found));
    judged.err().map(|error| format!("{error:#}")).unwrap_or_default()
}

#[test]
fn every_difference_is_named_unless_it_is_known() {
    let same = "a:SUCCESS b:SUCCESS a:SUCCESS x:INFO";
    assert_eq!(complaint("there", same, "b:SUCCESS a:SUCCESS a:SUCCESS"), "");
    let fewer = complaint("there", same, "a:SUCCESS b:SUCCESS");
    assert!(fewer.contains("s / a: direct 2 SUCCESS, here 1 SUCCESS"), "{fewer}");
    let gone = complaint("there", same, "a:SUCCESS a:SUCCESS");
    assert!(gone.contains("s / b: direct 1 SUCCESS, here not there"), "{gone}");
    let known = complaint("here", same, "a:SUCCESS a:SUCCESS b:FAILURE");
    assert_eq!(known, "");
}

#[test]
fn a_known_difference_that_is_gone_is_named() {
    let gone = complaint("here", "b:SUCCESS", "b:SUCCESS");
    assert!(gone.contains("s / b: as it is directly"), "{gone}");
}

#[test]
fn a_difference_that_comes_and_goes_may_do_so() {
    let list = LIST.replace("\"reason\":", "\"sometimes\": true, \"reason\":");
    let list = Differences::parse(&list).unwrap();
    for found in ["b:SUCCESS", "b:FAILURE"] {
        list.judge("here", &checks("b:SUCCESS"), &checks(found)).unwrap();
    }
}

#[test]
fn a_repeated_check_may_only_succeed_more_often() {
    let list = LIST.replace("\"reason\":", "\"repeated\": true, \"reason\":");
    let list = Differences::parse(&list).unwrap();
    let judge = |found: &str| list.judge("here", &checks("b:SUCCESS b:SKIPPED"), &checks(found));
    judge("b:SUCCESS b:SKIPPED b:SUCCESS").unwrap();
    for other in ["b:SUCCESS", "b:SUCCESS b:SKIPPED b:FAILURE", "b:SKIPPED", "b:SUCCESS b:SUCCESS"]
    {
        let error = judge(other).unwrap_err().to_string();
        assert!(error.contains("s / b: direct 1 SKIPPED, 1 SUCCESS"), "{error}");
    }
}

#[test]
fn a_star_matches_any_check() {
    let list = Differences::parse(&LIST.replace("\"b\"", "\"*\"")).unwrap();
    list.judge("here", &checks("a:SUCCESS b:SUCCESS"), &checks("a:SUCCESS")).unwrap();
    list.judge("here", &checks("a:SUCCESS"), &checks("a:SUCCESS")).unwrap_err();
}

#[test]
fn a_list_without_its_reason_is_refused() {
    let error = Differences::parse(&LIST.replace("\"why\":", "\"other\":")).unwrap_err();
    assert!(error.to_string().contains("no reason `why`"), "{error}");
}

#[test]
fn the_page_matches_the_list() {
    let list = Differences::read().unwrap();
    let text = page::page(&list).unwrap();
    let file = crate::root().join("docs/conformance.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(found, text, "docs/conformance.md; if this is meant, run again with UPDATE=1");
}

#[test]
fn every_run_and_reason_of_the_list_exists_and_is_used() {
    let list = Differences::read().unwrap();
    for run in list.known.iter().flat_map(|known| &known.runs) {
        let names = THROUGH.iter().map(|run| run.name).chain(LEGS.iter().map(|leg| leg.name));
        assert!(names.into_iter().any(|name| name == run), "there is no run `{run}`");
    }
    for reason in list.reasons.keys() {
        let used = list.known.iter().any(|known| known.reason == *reason);
        assert!(used, "nothing differs for the reason `{reason}`");
    }
}

#[test]
fn a_folder_of_the_suite_names_its_scenario() {
    for time in ["2026-11-16T10-32-11-537Z", "2026-11-20T20-20-20-020Z"] {
        let named = |name: &str| scenario(&format!("{name}-{time}")).map(str::to_owned);
        assert_eq!(named("server-server-stateless").as_deref(), Some("server-stateless"));
        assert_eq!(named("server-json-schema-2020-12").as_deref(), Some("json-schema-2020-12"));
        assert_eq!(named("tools_call").as_deref(), Some("tools_call"));
    }
    assert_eq!(scenario("anything"), None);
}
