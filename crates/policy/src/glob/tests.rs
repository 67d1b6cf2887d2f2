use proptest::prelude::*;

use super::Glob;

#[test]
fn globs_match_as_written() {
    for (glob, name, expected) in [
        ("*", "", true),
        ("*", "anything/at all", true),
        ("delete_*", "delete_", true),
        ("delete_*", "delete_draft", true),
        ("delete_*", "Delete_draft", false),
        ("delete_*", "undelete_draft", false),
        ("*_delete", "kv_delete", true),
        ("*_delete", "kv_delete_all", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("a?c", "aéc", true),
        ("[abc]x", "bx", true),
        ("[a-c]x", "dx", false),
        ("[!a-c]x", "dx", true),
        ("[!a-c]x", "x", false),
        ("[a-]x", "-x", true),
        ("\\*", "*", true),
        ("\\*", "x", false),
        ("[\\]]", "]", true),
        ("*a*b*c", "xxaxxbxxc", true),
        ("*a*b*c", "xxbxxaxxc", false),
        ("close", "close", true),
        ("close", "closed", false),
    ] {
        assert_eq!(Glob::parse(glob).unwrap().matches(name), expected, "{glob} on {name}");
    }
}

#[test]
fn what_is_no_glob_is_refused() {
    for bad in ["a**", "{a,b}", "a}", "[abc", "[", "[]", "[!]", "x\\", "[z-a]", "[a-", "[a\\"] {
        assert!(Glob::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_glob_is_shown_as_text_that_parses_to_it() {
    for glob in [
        "*",
        "delete_*",
        "a?c",
        "[abc]x",
        "[a-c]x",
        "[!a-c]x",
        "[a-]x",
        "\\*",
        "[\\]]",
        "[\\!a]",
        "торг_*",
    ] {
        let parsed = Glob::parse(glob).unwrap();
        let shown = parsed.to_string();
        assert_eq!(Glob::parse(&shown).unwrap(), parsed, "{glob} as {shown}");
    }
    assert_eq!(Glob::parse("trade_[a-z]?*").unwrap().to_string(), "trade_[a-z]?*");
}

#[test]
fn literals_are_counted() {
    for (glob, literals, exact) in [
        ("*", 0, None),
        ("?*", 0, None),
        ("[a-z]*", 0, None),
        ("a*", 1, None),
        ("\\*", 1, Some("*")),
        ("close", 5, Some("close")),
    ] {
        let parsed = Glob::parse(glob).unwrap();
        assert_eq!((parsed.literals, parsed.exact()), (literals, exact), "{glob}");
    }
}

#[test]
fn a_hostile_glob_stays_cheap() {
    let glob = Glob::parse(&"*a".repeat(500)).unwrap();
    assert!(!glob.matches(&"a".repeat(499)));
    assert!(!glob.matches(&"b".repeat(100_000)));
}

/// The obvious exponential matcher, for short inputs.
fn naive(glob: &[char], text: &[char]) -> bool {
    match (glob.first(), text.first()) {
        (None, None) => true,
        (Some('*'), _) => naive(&glob[1..], text) || (!text.is_empty() && naive(glob, &text[1..])),
        (Some('?'), Some(_)) => naive(&glob[1..], &text[1..]),
        (Some(g), Some(t)) if g == t => naive(&glob[1..], &text[1..]),
        _ => false,
    }
}

proptest! {
    #[test]
    fn agrees_with_the_obvious_matcher(glob in "([ab?]|\\*[ab?]){0,6}\\*?", text in "[abc]{0,10}") {
        let g: Vec<char> = glob.chars().collect();
        let t: Vec<char> = text.chars().collect();
        prop_assert_eq!(Glob::parse(&glob).unwrap().matches(&text), naive(&g, &t));
    }
}

#[test]
fn lenient_globs_match_as_written() {
    let cases = [
        ("*", "", true),
        ("trade_*", "trade_dev", true),
        ("trade_*", "trad", false),
        ("*_dev", "trade_dev", true),
        ("*a*b*", "xaybz", true),
        ("*a*b*", "xbya", false),
        ("?", "я", true),
        ("?", "", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[a-]", "-", true),
        ("\\*", "*", true),
        ("\\*", "x", false),
        ("База*", "База1", true),
        ("База", "база", false),
        ("[", "[", true),
        ("", "", true),
        ("", "x", false),
    ];
    for (pattern, text, expected) in cases {
        assert_eq!(Glob::lenient(pattern).matches(text), expected, "{pattern} {text}");
    }
}
