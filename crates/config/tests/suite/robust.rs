//! Whatever bytes come, the reader answers: never a panic, always a place that exists.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use toolgate_config::Problem;
use toolgate_policy::Severity;

use crate::support::{config, parse};

const EVERYTHING: &str = include_str!("../valid/everything.yaml");

/// Problems point into the text, and there is an error if and only if there is no configuration.
fn check(text: &str) -> Result<(), TestCaseError> {
    let lines: Vec<_> = text.split('\n').collect();
    let (failed, problems) = match parse(text) {
        Ok(loaded) => (false, loaded.warnings),
        Err(problems) => (true, problems),
    };
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    prop_assert_eq!(failed, errors > 0, "{}", text);
    for Problem { line, column, message, snippet, .. } in &problems {
        prop_assert!(*line <= lines.len(), "line {line} of {}: {message}", lines.len());
        prop_assert!(*column >= 1 || *line == 0, "{message}");
        if let Some(snippet) = snippet {
            prop_assert!(snippet.caret <= snippet.line.chars().count(), "{message}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_is_answered(
        cuts in prop::collection::vec((0..EVERYTHING.chars().count(), 0_usize..6, "[ \t\n:#*&!|>'\"{}\\[\\],a-zйё0-9$-]{0,4}"), 1..5),
    ) {
        let mut text: Vec<char> = EVERYTHING.chars().collect();
        for (at, length, inserted) in cuts {
            let at = at.min(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        check(&text.into_iter().collect::<String>())?;
    }

    #[test]
    fn any_text_is_answered(text in "(version: 1\n)?[ -~\n\tйё]{0,80}") {
        check(&text)?;
    }
}

#[test]
fn line_ends_of_windows_change_nothing_but_inline_text() {
    let (mut unix, mut windows) = (config(EVERYTHING), config(&EVERYTHING.replace('\n', "\r\n")));
    unix.policies.clear();
    windows.policies.clear();
    assert_eq!(unix, windows);
}

#[test]
fn every_file_of_the_tests_is_answered_line_by_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in fs::read_dir(folder.join("invalid")).unwrap() {
        let Ok(text) = fs::read_to_string(entry.unwrap().path()) else { continue };
        for end in text.char_indices().filter(|(_, c)| *c == '\n').map(|(at, _)| at) {
            check(text.get(..end).unwrap()).unwrap();
        }
    }
}
