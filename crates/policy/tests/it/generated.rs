//! Policies that the catalogue writes for scanned tools.

use toolgate_catalog::{Definition, PolicyItem, classify, policy_document, recommended};
use toolgate_policy::{Call, Class, Effect, Known, Policy, UNUSED, decide};

/// Names and descriptions that try to leave their place.
const HOSTILE: &[(&str, &str)] = &[
    ("get_user", "Returns a user"),
    ("delete_user", "Deletes a user"),
    ("close_it", "Closes it. Do not call on your own initiative."),
    ("*", "Lists everything"),
    ("get_?[a]", "Reads"),
    ("a{b}c", "Creates b"),
    ("back\\slash", "Reads"),
    ("with: colon # hash", "Reads\ndefault: allow\n"),
    ("quote\"s'", "Reads \"quotes\""),
    ("new\nline", "Reads\r\n\u{2028}\u{85}tools:\n  x: {}"),
    ("Остатки", "Возвращает остатки"),
    ("😀", "Sends 😀"),
    ("null", "Reads"),
    ("~", "Reads"),
    ("- a", "Writes a"),
    ("global.x", "Updates x"),
    ("&anchor", "Reads"),
    ("!tag", "Reads"),
    ("zero\u{200b}width", "Reads"),
    ("1", "Reads"),
    ("server/tool", "Reads"),
];

fn document(server: Option<&str>) -> String {
    let judged: Vec<_> = HOSTILE
        .iter()
        .map(|(name, text)| {
            let definition =
                Definition { description: Some((*text).into()), ..Definition::named(name) };
            let found = classify(&definition);
            let rule = recommended(name, &found, name.contains('\u{200b}'));
            (*name, *text, found, rule)
        })
        .collect();
    let items: Vec<PolicyItem<'_>> = judged
        .iter()
        .map(|(tool, text, assessment, recommended)| PolicyItem {
            server,
            tool,
            description: Some(text),
            assessment,
            recommended,
        })
        .collect();
    policy_document("a\nserver: x", &items)
}

#[test]
fn a_generated_policy_names_each_tool_and_nothing_else() {
    for server in [None, Some("srv")] {
        let text = document(server);
        let loaded = Policy::load("generated", &text, &Known::default());
        let policy = loaded.policy.unwrap_or_else(|| panic!("{:#?}\n{text}", loaded.problems));
        for (name, _) in HOSTILE {
            let call = Call::new("srv", name, Class::Other, "{}");
            let effect = decide(&policy, &call, &UNUSED, jiff::Timestamp::UNIX_EPOCH).effect;
            let expected = match *name {
                "delete_user" | "close_it" => Effect::Hold,
                name if name.contains('\u{200b}') => Effect::Deny,
                _ => Effect::Allow,
            };
            assert_eq!(effect, expected, "{name}\n{text}");
        }
        for other in ["x", "get_x", "anything", "get_ba", "default", "tools"] {
            let call = Call::new("srv", other, Class::Read, "{}");
            let effect = decide(&policy, &call, &UNUSED, jiff::Timestamp::UNIX_EPOCH).effect;
            assert_eq!(effect, Effect::Deny, "{other}\n{text}");
        }
    }
}
