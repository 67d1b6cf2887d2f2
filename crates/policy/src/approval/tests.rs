use super::*;
use crate::{Window, argument_digest};

fn binding() -> Binding<'static> {
    Binding {
        grant: "laptop",
        server: "zulip",
        session: None,
        tool: "close",
        fingerprint: Some([1; 32]),
        arguments: argument_digest(r#"{"a":1}"#).unwrap(),
        policy_hash: "aa",
    }
}

#[test]
fn every_member_is_bound() {
    let base = binding();
    let other = argument_digest(r#"{"a":1.0}"#).unwrap();
    let changed = [
        ("grant", Binding { grant: "other", ..base }),
        ("server", Binding { server: "other", ..base }),
        ("session", Binding { session: Some("s"), ..base }),
        ("an empty session", Binding { session: Some(""), ..base }),
        ("tool", Binding { tool: "other", ..base }),
        ("fingerprint", Binding { fingerprint: Some([2; 32]), ..base }),
        ("no fingerprint", Binding { fingerprint: None, ..base }),
        ("arguments", Binding { arguments: other, ..base }),
        ("policy", Binding { policy_hash: "bb", ..base }),
        ("a shifted border", Binding { grant: "laptopzulip", server: "", ..base }),
    ];
    for (what, changed) in &changed {
        assert_ne!(changed.digest(), base.digest(), "{what}");
    }
    for (index, (what, one)) in changed.iter().enumerate() {
        for (other, two) in changed.iter().skip(index + 1) {
            assert_ne!(one.digest(), two.digest(), "{what} and {other}");
        }
    }
    assert_eq!(binding().digest(), base.digest());
}

#[test]
fn states_have_names() {
    for state in ApprovalState::ALL {
        assert_eq!(ApprovalState::parse(state.as_str()), Some(state));
    }
    assert_eq!(ApprovalState::parse("open"), None);
}

#[test]
fn only_those_who_are_asked_may_answer() {
    let question = |approvers: &[&str]| Question {
        approvers: approvers.iter().map(ToString::to_string).collect(),
        people: 1,
        ..Question::default()
    };
    let (ops, no_groups) = (vec!["ops".to_owned()], Vec::new());
    let boss = Answerer { name: "boss", groups: &ops };
    let desk = Answerer { name: "desk", groups: &ops };
    let admin = Answerer { name: "admin", groups: &no_groups };
    let (on, off) = (Some(true), Some(false));
    // approvers, person, setting, people -> allowed
    let cases = [
        (&[][..], admin, None, 1, true),
        (&[], desk, None, 1, true),
        (&[], desk, None, 2, false),
        (&[], desk, off, 2, true),
        (&[], desk, on, 1, false),
        (&[], boss, on, 2, true),
        (&["ops"], boss, None, 2, true),
        (&["ops"], admin, None, 2, false),
        (&["ops"], admin, off, 2, false),
        (&["ops"], desk, None, 1, false),
        (&["ops"], desk, off, 1, true),
        (&["requester"], desk, None, 2, true),
        (&["requester"], desk, on, 2, true),
        (&["requester"], boss, None, 2, false),
        (&["requester", "ops"], boss, None, 2, true),
    ];
    for (approvers, who, four_eyes, people, allowed) in cases {
        let answer = question(approvers).may_answer(who, Some("desk"), four_eyes, people);
        assert_eq!(answer.is_ok(), allowed, "{approvers:?} {} {four_eyes:?} {people}", who.name);
    }
    let no_common_group = Question { no_common_group: true, ..question(&[]) };
    assert_eq!(no_common_group.may_answer(admin, None, off, 1), Err(MayNotAnswer::NoCommonGroup));
}

/// What was asked of those who let similar calls pass, and what a hold of such a call asks.
#[test]
fn an_exception_covers_no_hold_that_asks_for_more() {
    let asks = |approvers: &[&str], people| Hold {
        rule: "/tools/pay/approve".into(),
        wait: None,
        expires: Window::seconds(60).unwrap(),
        approvers: approvers.iter().map(ToString::to_string).collect(),
        no_common_group: false,
        people,
        note: None,
    };
    // approvers and people of before, approvers and people of now -> covered
    let cases = [
        (&[][..], 1, &[][..], 1, true),
        (&[], 1, &[], 2, false),
        (&[], 2, &[], 1, true),
        (&[], 1, &["ops"], 1, false),
        (&["ops"], 1, &[], 1, true),
        (&["ops"], 1, &["ops"], 1, true),
        (&["ops"], 1, &["heads"], 1, false),
        (&["ops"], 1, &["ops", "heads"], 1, true),
        (&["ops", "heads"], 1, &["heads"], 1, false),
        (&["ops"], 1, &["ops"], 2, false),
    ];
    for (before, answered, now, people, covered) in cases {
        let given = Question::of(&asks(before, answered));
        let what = format!("{before:?} {answered}, {now:?} {people}");
        assert_eq!(given.covers(&asks(now, people)), covered, "{what}");
        assert!(!given.covers(&Hold { no_common_group: true, ..asks(now, people) }), "{what}");
    }
}

#[test]
fn drawn_arguments_have_nothing_out_of_sight() {
    let far = format!("{{ \"a\" :1,{}\"b\":\"x \\n\u{202e}y\"}}", " \n".repeat(5_000));
    assert_eq!(drawn_arguments(&far), r#"{"a":1,"b":"x \n\u{202E}y"}"#);
}

#[test]
fn questions_of_earlier_versions_are_read() {
    let stored = r#"{"approvers":["ops"],"nobody":true,"people":2,"note":null}"#;
    let question: Question = serde_json::from_str(stored).unwrap();
    assert!(question.no_common_group && question.people == 2);
}
