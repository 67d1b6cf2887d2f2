use super::format;

#[track_caller]
fn check(source: &str, expected: &str) {
    let once = format(source).unwrap();
    assert_eq!(once, expected, "\n{once}");
    assert_eq!(format(&once).unwrap(), once, "formatting twice differs");
}

#[test]
fn comments_stay_with_their_items() {
    check(
        r#"# a policy
version:    "1"   # required
default: deny


# what nobody may see
hide: [ a,b ]
tools:
    # closing
    close:      # with care
        limits:
        -   {counter: c,window: minute , max: 30}   # per grant
        # the day, too
        -   counter: d
            window: day   # local midnight
            max: 300
    open: {}
# the end
"#,
        r#"# a policy
version: "1"  # required
default: deny

# what nobody may see
hide: [a, b]
tools:
  # closing
  close:  # with care
    limits:
      - { counter: c, window: minute, max: 30 }  # per grant
      # the day, too
      - counter: d
        window: day  # local midnight
        max: 300
  open: {}
# the end
"#,
    );
}

#[test]
fn flow_that_does_not_fit_becomes_block() {
    let long = "x".repeat(60);
    let source = format!(
        "version: \"1\"\ndefault: allow\ntools: {{ x: {{ action: deny, reason: {long} }}, y: {{}} }}\n"
    );
    let expected = format!(
        "version: \"1\"\ndefault: allow\ntools:\n  x: {{ action: deny, reason: {long} }}\n  y: {{}}\n"
    );
    check(&source, &expected);
}

#[test]
fn texts_of_several_lines_stay_texts() {
    check(
        "version: \"1\"\ndescription: >\n   folded\n   line\ndefault: allow\nnote: |-\n    a\n\n     b\n",
        "version: \"1\"\ndescription: |\n  folded line\ndefault: allow\nnote: |-\n  a\n\n   b\n",
    );
}

#[test]
fn json_stays_json() {
    check(
        r#"{"version":"1","default":"allow","tools":{"close":{"limits":[{"counter":"c","window":"minute","max":1e2}]},"x":{}}}"#,
        r#"{
  "version": "1",
  "default": "allow",
  "tools": {
    "close": { "limits": [{ "counter": "c", "window": "minute", "max": 1e2 }] },
    "x": {}
  }
}
"#,
    );
}

#[test]
fn odd_layouts_settle() {
    for source in ["-\r #--", "- \n#a\n", "a:\n", "? a\n: b\n", "a: |\n\n  x\n", "[a, #b\n c]\n"] {
        let once = format(source).unwrap();
        assert_eq!(format(&once).unwrap(), once, "{source:?}");
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    assert!(format("version: [").is_err());
    assert!(format("a: 1\na: 2\n").is_err());
}

#[test]
fn every_document_of_the_tests_survives() {
    for source in [crate::RECOMMENDED, include_str!("../../tests/codes/TG0104.yaml")] {
        let once = format(source).unwrap();
        assert_eq!(format(&once).unwrap(), once);
    }
}
