//! Which tools a list shows, and that the decision agrees with it.

use jiff::Timestamp;
use toolgate_policy::{
    Call, Class, Effect, Known, Policy, RECOMMENDED, UNUSED, decide, explain, is_listed,
};

fn policy(text: &str) -> Policy {
    let text = format!("version: \"1\"\n{text}\n");
    let loaded = Policy::load("p", &text, &Known::default());
    loaded.policy.unwrap_or_else(|| panic!("{text}: {:?}", loaded.problems))
}

#[test]
fn lists_leave_out_what_is_hidden_and_what_nothing_names() {
    let cases = [
        ("default: deny", false),
        ("default: deny\nlist: allowed", false),
        ("default: deny\nlist: all", true),
        ("default: deny\nlist: all\nhide: [get_user]", false),
        ("default: deny\nmode: shadow", true),
        ("default: deny\nmode: shadow\nhide: [get_user]", true),
        ("default: allow", true),
        ("default: allow\nhide: [get_user]", false),
        ("default: allow\ntools: { get_user: { action: hide } }", false),
        ("default: deny\ntools: { get_user: {} }", true),
        ("default: deny\ntools: { get_user: { action: deny } }", true),
        ("default: deny\ntools: { get_user: { action: hide } }", false),
        ("default: deny\ntools: { \"get_*\": {} }", true),
        ("default: deny\ntools: { \"*\": {} }", false),
        ("default: deny\ntools: { get_user: { mode: shadow } }", false),
        ("default: deny\nclasses: { read: { action: allow } }", true),
        ("default: deny\nclasses: { read: { rate_limit: 3/minute } }", false),
        ("default: deny\nall_tools: { rate_limit: 3/minute }", false),
        ("default: deny\ntools: { alias: {} }", true),
    ];
    let aliases = ["alias".into()];
    let call = Call {
        server: "files",
        tool: "get_user",
        class: Class::Read,
        aliases: &aliases,
        ..Call::default()
    };
    for (text, expected) in cases {
        let policy = policy(text);
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(is_listed(&policy, &call, now), expected, "{text}");
        assert!(expected || policy.may_hide(), "{text}");
        let verdict = decide(&policy, &call, &UNUSED, now);
        assert!(expected || verdict.effect >= Effect::Deny, "{text}: {verdict:?}");
    }
}

#[test]
fn lists_are_filtered_only_if_something_may_be_left_out() {
    let open = "resources: { default: allow }\nprompts: { default: allow }";
    assert!(!policy(&format!("default: allow\n{open}")).may_hide());
    assert!(!policy("default: deny\nmode: shadow\nhide: [x]").may_hide());
    assert!(policy(&format!("default: deny\n{open}")).may_hide());
    let loaded = Policy::load("p", RECOMMENDED, &Known::default());
    assert!(!loaded.policy.unwrap().may_hide(), "every class is allowed");
    let without = RECOMMENDED.replace("  financial: { action: allow, approve: {} }\n", "");
    assert_ne!(without, RECOMMENDED);
    assert!(Policy::load("p", &without, &Known::default()).policy.unwrap().may_hide());
}

#[test]
fn an_explanation_has_one_line_for_each_rule() {
    let cases = [
        ("tools: { x: { action: deny } }", Effect::Deny, "/tools/x/action"),
        ("tools: { x: { action: require_approval } }", Effect::Hold, "/tools/x/action"),
    ];
    for (text, effect, rule) in cases {
        let policy = policy(&format!("default: deny\n{text}"));
        let call = Call::new("s", "x", Class::Other, "{}");
        let explained = explain(&policy, &call, &UNUSED, Timestamp::UNIX_EPOCH);
        assert_eq!((explained.effect, &*explained.rule), (effect, rule), "{text}");
        let rules: Vec<_> = explained.rules.iter().map(|r| (&*r.rule, r.effect)).collect();
        assert_eq!(rules, [(rule, effect)], "{text}");
    }
}
