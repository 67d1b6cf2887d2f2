//! Laws every document obeys, tried on the same random worlds.

use toolgate_dice::Dice;

use super::{
    CALLS, Engine, compile,
    world::{self, Cond, Doc, Ent, J, Pred, RCall, Shade},
    write,
};
use crate::{Effect, Known, Policy, Verdict};

const WORLDS: u64 = 3_000;

fn never() -> Pred {
    Pred::All(vec![Cond { path: "args.missing", op: "exists", value: J::Bool(true) }])
}

/// The verdicts of a document over a row of calls, admitting what it allows.
fn verdicts(doc: &Doc, calls: &[RCall]) -> Vec<Verdict> {
    let text = write::document(doc, false);
    run(&text, calls)
}

fn run(text: &str, calls: &[RCall]) -> Vec<Verdict> {
    let loaded = Policy::load("p", text, &Known::default());
    let policy = loaded.policy.unwrap_or_else(|| panic!("{text}\n{:#?}", loaded.problems));
    let mut engine = Engine::new(policy);
    calls
        .iter()
        .map(|call| {
            let (verdict, _) = engine.decide(call, &call.args.write());
            if verdict.effect == Effect::Allow {
                engine.admit(&verdict, call.at);
            }
            verdict
        })
        .collect()
}

fn each_world(mut check: impl FnMut(&mut Dice, Doc, Vec<RCall>)) {
    for seed in 0..WORLDS {
        let mut rng = Dice::new(seed ^ 0xabcd);
        let mut doc = world::document(&mut rng);
        compile(&mut doc);
        let calls = world::calls(&mut rng, CALLS);
        check(&mut rng, doc, calls);
    }
}

#[test]
fn the_order_of_keys_has_no_meaning() {
    each_world(|_, doc, calls| {
        let (forward, backward) = (write::document(&doc, false), write::document(&doc, true));
        assert_eq!(run(&forward, &calls), run(&backward, &calls), "{forward}");
        let known = Known::default();
        let hash = |text: &str| Policy::load("p", text, &known).policy.unwrap().hash().to_owned();
        assert_eq!(hash(&forward), hash(&backward));
    });
}

#[test]
fn the_same_input_gives_the_same_verdict() {
    each_world(|_, doc, calls| {
        let first: Vec<String> = verdicts(&doc, &calls).iter().map(|v| format!("{v:?}")).collect();
        let second: Vec<String> = verdicts(&doc, &calls).iter().map(|v| format!("{v:?}")).collect();
        assert_eq!(first, second);
    });
}

/// The first call only: later ones depend on what was counted before.
fn first_effect(doc: &Doc, calls: &[RCall]) -> Effect {
    verdicts(doc, &calls[..1])[0].effect
}

#[test]
fn adding_a_deny_a_require_or_a_hide_never_allows_more() {
    each_world(|rng, mut doc, calls| {
        let before = first_effect(&doc, &calls);
        let key = rng.pick(&world::TOOLS);
        let entry = doc.tools.entry(key).or_insert_with(|| Ent {
            // A new key would name the tool; only what it adds is of interest.
            action: Some("deny"),
            ..Ent::default()
        });
        match rng.below(3) {
            0 => entry.deny_if.push(Pred::All(vec![])),
            1 => entry.require.push(never()),
            _ => entry.action = Some("hide"),
        }
        let after = first_effect(&doc, &calls);
        assert!(after >= before || before == Effect::Hide, "{before:?} became {after:?}");
    });
}

#[test]
fn adding_an_entry_in_shadow_never_allows_more() {
    each_world(|rng, mut doc, calls| {
        let before = verdicts(&doc, &calls[..1]).remove(0);
        let key = "get_?";
        doc.tools.entry(key).or_insert_with(|| Ent {
            action: Some(rng.pick(&["allow", "deny", "hide", "require_approval"])),
            deny_if: vec![Pred::All(vec![])],
            shadow: Shade::Always,
            ..Ent::default()
        });
        let after = verdicts(&doc, &calls[..1]).remove(0);
        assert_eq!((before.effect, &before.rule), (after.effect, &after.rule));
        assert_eq!(before.reservations, after.reservations);
    });
}

#[test]
fn a_deny_overrides_everything_but_hiding() {
    each_world(|_, mut doc, calls| {
        doc.shadow = Shade::No;
        let all = doc.all_tools.get_or_insert_with(Ent::default);
        all.shadow = Shade::No;
        all.deny_if.push(Pred::All(vec![]));
        for verdict in verdicts(&doc, &calls) {
            assert!(verdict.effect >= Effect::Deny, "{verdict:?}");
            assert!(verdict.reservations.is_empty());
        }
    });
}

#[test]
fn under_default_deny_only_what_is_named_passes() {
    each_world(|_, mut doc, calls| {
        doc.default_allow = false;
        doc.shadow = Shade::No;
        doc.tools.retain(|key, _| key.chars().all(|c| "*?/".contains(c)));
        doc.classes.values_mut().for_each(|entry| {
            if entry.action == Some("allow") {
                entry.action = None;
            }
        });
        for verdict in verdicts(&doc, &calls) {
            assert!(verdict.effect >= Effect::Deny, "{verdict:?}");
        }
    });
}

#[test]
fn a_refused_call_takes_nothing_and_states_why() {
    each_world(|_, doc, calls| {
        for verdict in verdicts(&doc, &calls) {
            let refused = verdict.effect >= Effect::Deny;
            assert!(!refused || verdict.reservations.is_empty());
            assert_eq!(verdict.effect == Effect::Allow, verdict.rule.is_none());
            assert_eq!(refused, verdict.refusal.is_some());
            assert_eq!(verdict.effect == Effect::Allow, verdict.message.is_empty());
            assert_eq!(verdict.effect == Effect::Hold, verdict.hold.is_some());
        }
    });
}
