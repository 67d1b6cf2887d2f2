//! Edits: what changes, and what stays.

use super::*;

const DOCUMENT: &str = "\
# who may close what
version: \"1\"
default: deny   # strict
tools:
  # the old one
  close: { rate_limit: 30/minute } # careful
  drop:
    action: deny
    reason: never # really

  # a glob
  \"get_*\": {}
tests: []
";

#[track_caller]
fn check(source: &str, path: &[&str], value: Option<&str>, changes: &[(&str, &str)]) {
    let mut expected = source.to_owned();
    for (from, to) in changes {
        assert_eq!(expected.matches(from).count(), 1, "{from}");
        expected = expected.replace(from, to);
    }
    assert_eq!(set_member(source, path, value).unwrap(), expected);
}

#[test]
fn an_item_is_added_or_removed_and_the_rest_stays() {
    let block = "\
tools:
  pay:
    deny_if:
      # the cap
      - conditions: [{ path: args.a, op: gt, value: 1 }] # strict
      - conditions:
          - { path: args.b, op: eq, value: x }
  # next
  close: { deny_if: [{ conditions: [] }] } # flow
";
    let path = ["tools", "pay", "deny_if"];
    let added = add_item(block, &path, "{ conditions: [] }").unwrap();
    let expected = block.replace("value: x }\n", "value: x }\n      - { conditions: [] }\n");
    assert_eq!(added, expected);
    assert_eq!(remove_item(&added, &path, 2).unwrap(), block);
    let without = remove_item(block, &path, 1).unwrap();
    assert!(!without.contains("args.b") && without.contains("# next"), "{without}");
    let without = remove_item(block, &path, 0).unwrap();
    assert!(without.contains("# the cap\n      - conditions:\n          - {"), "{without}");
    let flow = ["tools", "close", "deny_if"];
    let added = add_item(block, &flow, "{ x: 1 }").unwrap();
    assert_eq!(added, block.replace("[] }] }", "[] }, { x: 1 }] }"));
    assert_eq!(remove_item(&added, &flow, 1).unwrap(), block);
    let gone = remove_item(block, &flow, 0).unwrap();
    assert!(gone.contains("close: {") && !gone.contains("deny_if: [{"), "{gone}");
    let made = add_item(block, &["tools", "close", "require"], "{ x: 1 }").unwrap();
    assert!(made.contains("require: [{ x: 1 }] } # flow"), "{made}");
    assert!(remove_item(block, &path, 7).is_err());
}

#[test]
fn a_member_of_an_item_is_replaced() {
    let source = "\
tools:
  pay:
    deny_if:
      # the cap
      - conditions: [{ path: args.a, op: gt, value: 1 }] # strict
      - conditions:
          - { path: args.b, op: eq, value: x }
";
    let path = ["tools", "pay", "deny_if", "0", "conditions", "0", "value"];
    check(source, &path, Some("20"), &[("value: 1 ", "value: 20 ")]);
    let path = ["tools", "pay", "deny_if", "1", "conditions", "0", "op"];
    check(source, &path, Some("neq"), &[("op: eq", "op: neq")]);
    let path = ["tools", "pay", "deny_if", "2", "conditions"];
    assert!(set_member(source, &path, Some("[]")).is_err(), "there is no such item");
    assert!(set_member(source, &["tools", "pay", "deny_if", "0"], None).is_err());
}

#[test]
fn a_member_is_replaced_and_comments_stay() {
    let limit = ("{ rate_limit: 30/minute }", "{ action: deny }");
    check(DOCUMENT, &["tools", "close"], Some("{ action: deny }"), &[limit]);
    let block =
        ("drop:\n    action: deny\n    reason: never # really", "drop: { approve: {} } # really");
    check(DOCUMENT, &["tools", "drop"], Some("{ approve: {} }"), &[block]);
    check(
        DOCUMENT,
        &["tools", "drop", "action"],
        Some("hide"),
        &[("action: deny", "action: hide")],
    );
    check(DOCUMENT, &["default"], Some("allow"), &[("default: deny   #", "default: allow   #")]);
}

#[test]
fn a_member_is_added_where_its_neighbours_are() {
    let add = ("\"get_*\": {}\n", "\"get_*\": {}\n  files/move: { action: deny }\n");
    check(DOCUMENT, &["tools", "files/move"], Some("{ action: deny }"), &[add]);
    let flow = ("{ rate_limit: 30/minute }", "{ rate_limit: 30/minute, approve: {} }");
    check(DOCUMENT, &["tools", "close", "approve"], Some("{}"), &[flow]);
    let end = ("tests: []\n", "tests: []\nclasses:\n  read: { action: allow }\n");
    check(DOCUMENT, &["classes", "read"], Some("{ action: allow }"), &[end]);
    let empty = ("\"get_*\": {}", "\"get_*\": { action: deny }");
    check(DOCUMENT, &["tools", "get_*", "action"], Some("deny"), &[empty]);
}

#[test]
fn a_mapping_that_becomes_empty_keeps_the_comments_in_it() {
    let source = "tools:\n  pay: # ours\n    # the cap\n    deny_if: [] # strict\n  get: {}\n";
    let expected = "tools:\n  pay: {} # ours\n    # the cap\n # strict\n  get: {}\n";
    assert_eq!(set_member(source, &["tools", "pay", "deny_if"], None).unwrap(), expected);
}

#[test]
fn a_member_is_removed() {
    let line = ("    reason: never # really\n", "");
    check(DOCUMENT, &["tools", "drop", "reason"], None, &[line]);
    let flow = ("{ rate_limit: 30/minute }", "{ }");
    check(DOCUMENT, &["tools", "close", "rate_limit"], None, &[flow]);
    check(DOCUMENT, &["tools", "nothing"], None, &[]);
    check(DOCUMENT, &["nothing", "at", "all"], None, &[]);
    let only = "version: \"1\"\ndefault: deny\ntools:\n  close:\n    action: deny\n";
    check(only, &["tools", "close", "action"], None, &[("close:\n    action: deny", "close: {}")]);
}

#[test]
fn json_stays_json() {
    let source = "{\"version\":\"1\",\"default\":\"deny\",\"tools\":{\"a\":{}}}";
    let edited = set_member(source, &["tools", "b"], Some("{\"action\":\"deny\"}")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&edited).unwrap();
    assert_eq!(json["tools"]["b"]["action"], "deny");
    let removed = set_member(&edited, &["tools", "b"], None).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&removed).is_ok(), "{removed}");
}

#[test]
fn a_key_is_quoted_where_it_has_to_be() {
    for name in ["a*", "with space", "yes", "a: b", "#", "кириллица", "1", "a\"b"] {
        let edited = set_member(DOCUMENT, &["tools", name], Some("{}")).unwrap();
        assert!(edited.contains(&toolgate_json::quote(name)), "{edited}");
    }
}

#[test]
fn what_cannot_be_edited_is_refused() {
    assert_eq!(set_member("a: [", &["a"], Some("1")), Err(NotEdited::Invalid));
    assert_eq!(set_member(DOCUMENT, &["default", "x"], Some("1")), Err(NotEdited::NotAMapping));
    let hostile = "{}\ndefault: allow";
    assert!(set_member(DOCUMENT, &["tools", "x"], Some(hostile)).is_err());
}
