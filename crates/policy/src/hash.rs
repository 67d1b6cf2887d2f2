//! The policy hash, over meaning only: without comments, order of keys, `description` and `tests`; two
//! spellings of one value (`60s` and `minute`) are equal.
//!
//! Invariant: the hashed text has only lists and objects of one member, so its order is defined.

use serde_json::{Value, json};

use crate::{
    Digest, Window,
    model::{
        Action, Approve, Document, Entry, Increment, Limit, Operand, Pattern, Predicate, Rule,
        RulePath, Section, Shadow, Test, ToolKey,
    },
    number::Number,
    scalar::Scalar,
};

/// The hash of a document.
pub(crate) fn of(document: &Document) -> Digest {
    let mut parts = vec![
        text(&shadow(document.shadow)),
        text(&json!(document.default_allow)),
        text(&json!(document.zone_name)),
        text(&sorted(document.hide.iter().map(key))),
        text(&json!(document.repeat.map(|l| json!([l.max, l.window.as_seconds()])))),
        text(&json!(document.all_tools.as_ref().map(entry))),
        text(&document.classes.iter().map(|(c, e)| json!([c.as_str(), entry(e)])).collect()),
        tools(&document.tools),
        text(&section(&document.resources)),
        text(&section(&document.prompts)),
        text(&section(&document.methods)),
    ];
    if document.list_all {
        parts.push(text(&json!({ "list": "all" })));
    }
    Digest::of(format!("[{}]", parts.join(",")).as_bytes())
}

/// There may be many tools, so each is written once, and the texts are sorted.
fn tools(tools: &[(ToolKey, Box<Entry>)]) -> String {
    let mut texts: Vec<String> =
        tools.iter().map(|(k, e)| text(&json!([key(k), tool_entry(e)]))).collect();
    texts.sort_unstable();
    format!("[{}]", texts.join(","))
}

fn text(value: &Value) -> String {
    // A value of lists, texts and numbers can always be written.
    serde_json::to_string(value).unwrap_or_default()
}

fn key(key: &ToolKey) -> Value {
    json!([key.text, key.server.is_some()])
}

fn shadow(shadow: Shadow) -> Value {
    match shadow {
        Shadow::No => Value::Null,
        Shadow::Always => json!(true),
        Shadow::Until(end) => json!(end.as_second()),
    }
}

fn section(section: &Section) -> Value {
    let texts = |patterns: &[Pattern]| -> Vec<String> {
        patterns.iter().map(|pattern| pattern.text.clone()).collect()
    };
    let (mut allow, mut hide) = (texts(&section.allow), texts(&section.hide));
    allow.sort_unstable();
    hide.sort_unstable();
    // Refusals name the index of a `deny`, so their order is part of the meaning.
    json!([section.default_allow, allow, hide, texts(&section.deny)])
}

/// A key of `tools` names its tools in any case, so `action: allow` adds nothing.
fn tool_entry(entry: &Entry) -> Value {
    entry_with(entry, entry.action.filter(|action| *action != Action::Allow))
}

fn entry(entry: &Entry) -> Value {
    entry_with(entry, entry.action)
}

fn entry_with(entry: &Entry, action: Option<Action>) -> Value {
    let action = action.map(|action| match action {
        Action::Allow => "allow",
        Action::Deny => "deny",
        Action::Hide => "hide",
        Action::RequireApproval => "require_approval",
    });
    let yields = sorted(
        entry
            .yields
            .iter()
            .map(|y| json!([y.kind, y.path.text, y.shared, y.by_identity, y.keep.as_seconds()])),
    );
    let ends = sorted(entry.ends.iter().map(|e| json!([e.kind, e.path.text])));
    let mut said: Vec<Value> = Vec::new();
    // Most entries have one key; absent ones are not written.
    let mut say = |name: &str, value: Value| {
        if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()) {
            said.push(json!([name, value]));
        }
    };
    say("action", json!(action));
    say("reason", json!(entry.reason));
    say("require", predicates(&entry.require));
    say("deny_if", predicates(&entry.deny_if));
    say("approve", entry.approve.as_ref().map_or(Value::Null, approve));
    say("approve_if", predicates(&entry.approve_if));
    say("limits", sorted(entry.limits.iter().map(limit)));
    let running = entry.concurrency.as_ref().map(|c| json!([c.max, c.scope.as_str()]));
    say("concurrency", json!(running));
    say("repeats", json!(entry.repeats.as_ref().map(|r| r.window.as_seconds())));
    say("yields", yields);
    say("ends", ends);
    say("rules", entry.rules.iter().map(rule).collect());
    say("shadow", shadow(entry.shadow));
    said.into()
}

/// Limits are named, not numbered, so their order has no meaning.
fn sorted(values: impl Iterator<Item = Value>) -> Value {
    let mut values: Vec<Value> = values.collect();
    values.sort_by_cached_key(Value::to_string);
    values.into()
}

fn predicates(predicates: &[Predicate]) -> Value {
    let value = |p: &Predicate| match &p.approve {
        None => json!([test(&p.test), p.on_deny]),
        // As before predicates could ask in their own way, so that hashes stay.
        Some(asks) if p.on_deny == asks.note && is_default(asks) => {
            json!([test(&p.test), p.on_deny])
        }
        Some(asks) => json!([test(&p.test), p.on_deny, approve(asks)]),
    };
    predicates.iter().map(value).collect()
}

/// Whether a predicate of `approve_if` asks as one without keys of its own, but for its note.
fn is_default(asks: &Approve) -> bool {
    let plain = Approve { note: asks.note.clone(), ..crate::lower::default_approve("") };
    approve(&plain) == approve(asks)
}

fn test(one: &Test) -> Value {
    match one {
        Test::All(tests) => json!(["all", tests.iter().map(test).collect::<Vec<_>>()]),
        Test::Any(tests) => json!(["any", tests.iter().map(test).collect::<Vec<_>>()]),
        Test::Not(inner) => json!(["not", test(inner)]),
        Test::Condition(one) => json!([one.path.text, one.op.as_str(), operand(&one.operand)]),
    }
}

fn operand(operand: &Operand) -> Value {
    match operand {
        Operand::Scalar(one) => scalar(one),
        Operand::List(list) => list.iter().map(scalar).collect(),
        Operand::Pattern(_, text) | Operand::Text(text) => json!(text),
        Operand::Flag(flag) => json!(flag),
        Operand::Hosts(hosts) => json!(&**hosts),
    }
}

fn scalar(scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => json!(flag),
        Scalar::Number(text) => {
            json!({ "number": Number::parse(text).map(|n| n.canonical()) })
        }
        Scalar::String(text) => json!(text),
    }
}

fn approve(a: &Approve) -> Value {
    json!([
        a.wait.map_or(0, Window::as_seconds),
        a.expires.as_seconds(),
        a.approvers,
        a.people,
        a.note
    ])
}

fn limit(l: &Limit) -> Value {
    let increment = match &l.increment {
        Increment::Fixed(amount) => json!(amount.to_string()),
        Increment::From(path) => json!([path.text]),
    };
    json!([
        l.counter,
        l.window.as_seconds(),
        l.max.to_string(),
        l.scope.as_str(),
        increment,
        l.sliding,
        l.utc,
        l.on_deny
    ])
}

fn rule(r: &Rule) -> Value {
    let conditions: Vec<Value> = r
        .conditions
        .iter()
        .map(|c| {
            let path = match &c.path {
                RulePath::Args(names) => json!(names),
                RulePath::State { entry, counter, window } => {
                    json!({ "state": [entry, counter, window.as_seconds()] })
                }
            };
            json!([path, c.op.as_str(), operand(&c.operand)])
        })
        .collect();
    json!([
        r.name,
        format!("{:?}", r.kind),
        r.on_deny,
        conditions,
        r.limit.as_ref().map(limit),
        approve(&r.approve)
    ])
}

#[cfg(test)]
mod tests {
    use crate::{Known, Policy, RECOMMENDED};

    #[test]
    fn one_meaning_has_one_hash() {
        let head = "version: '1'\ndefault: deny\n";
        let hash = |text: &str| {
            let text = format!("{head}{text}");
            let loaded = Policy::load("p", &text, &Known::default());
            loaded.policy.unwrap_or_else(|| panic!("{text}: {:?}", loaded.problems)).hash
        };
        let same = [
            ("tools: { x: {} }", "tools: { x: { action: allow } }"),
            ("tools: { x: { approve: {} } }", "tools: { x: { action: allow, approve: {} } }"),
            ("tools: { x: { rate_limit: 3/minute } }", "tools: { x: { rate_limit: 3/60s } }"),
            ("list: allowed", ""),
            ("description: a", "description: b"),
        ];
        for (one, other) in same {
            assert_eq!(hash(one), hash(other), "{one} / {other}");
        }
        let different = [
            ("tools: { x: {} }", "tools: { x: { action: deny } }"),
            ("classes: { read: {} }", "classes: { read: { action: allow } }"),
            ("list: all", ""),
            ("tools: { x: { approve: { wait: 0s } } }", "tools: { x: { approve: { wait: 1s } } }"),
        ];
        for (one, other) in different {
            assert_ne!(hash(one), hash(other), "{one} / {other}");
        }
    }

    /// Approvals and standing exceptions are bound to it: it must not change with the code.
    #[test]
    fn the_hash_of_a_document_stays() {
        let many = "version: \"1\"\ndefault: deny\nhide: [b, a]\nloop: { max: 2, window: minute }\ntools:\n  z: { rate_limit: 3/minute, approve: {} }\n  \"a_*\": { deny_if: [{ conditions: [{ path: args.n, op: gt, value: 1.50 }] }] }\n";
        for (document, expected) in [
            (RECOMMENDED, "c2f915550edf44e26e895dbfea779a9905a5c115e4325e5b294985aeee94e642"),
            (many, "cc7f4156c6d4e5ceb2b8b2d34041202b214a7c87336ece4bf9fdf83cf1a5134e"),
        ] {
            let policy = Policy::load("p", document, &Known::default()).policy.unwrap();
            assert_eq!(policy.hash(), expected, "{document}");
        }
    }
}
