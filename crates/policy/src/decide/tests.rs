//! The engine against the naive interpreter, on random documents and calls.

mod history;
mod properties;
mod reference;
mod truth;
mod world;
mod write;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    Approval, Call, Class, Effect, Identity, Known, Ledger, Policy, Receipt, SessionFacts, Take,
    Verdict, Window, Yielded, decide, is_hidden,
};
use history::History;
use reference::Answer;
use toolgate_dice::Dice;
use world::{Doc, RCall};

const CALLS: usize = 8;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The engine's side of a world.
struct Engine {
    policy: Policy,
    ledger: Ledger,
    running: Vec<Receipt>,
}

impl Engine {
    fn new(policy: Policy) -> Self {
        let mut ledger = Ledger::default();
        for server in ["s1", "s2", "sessions"] {
            for value in ["\"a\"", "\"b\"", "1"] {
                let yielded = Yielded {
                    server: server.into(),
                    kind: "job".into(),
                    value: value.into(),
                    keep: Window::seconds(30 * 86_400).unwrap(),
                    shared: false,
                    by_identity: false,
                };
                ledger.own(&yielded, "g1", None, at(world::START));
            }
        }
        Self { policy, ledger, running: Vec::new() }
    }

    fn decide(&mut self, call: &RCall, args: &str) -> (Verdict, bool) {
        let approval = [Approval::None, Approval::Pending, Approval::Approved]
            [usize::try_from(call.approval).unwrap()];
        let class = Class::parse(call.class).unwrap();
        let asked = Call {
            grant: call.grant,
            identity: call.identity.map(|name| Identity { name, groups: &call.groups }),
            session: call
                .kind
                .map(|kind| SessionFacts { kind: Some(kind), ..SessionFacts::default() }),
            agent_session: Some(call.agent_session),
            target: call.target,
            approval,
            ..Call::new(call.server, call.tool, class, args)
        };
        if call.settle {
            for receipt in self.running.drain(..) {
                self.ledger.settle(receipt);
            }
        }
        let verdict = decide(&self.policy, &asked, &self.ledger, at(call.at));
        let hidden = is_hidden(&self.policy, call.server, call.tool, class, at(call.at));
        (verdict, hidden)
    }

    fn admit(&mut self, verdict: &Verdict, now: i64) {
        let receipt = self.ledger.admit(&verdict.reservations, at(now)).unwrap();
        self.running.push(receipt);
    }
}

/// The document, compiled; without its `hide` if that contradicts its limits.
fn compile(doc: &mut Doc) -> Policy {
    let known = Known::default();
    let loaded = Policy::load("p", &write::document(doc, false), &known);
    if let Some(policy) = loaded.policy {
        return policy;
    }
    doc.hide.clear();
    let text = write::document(doc, false);
    let loaded = Policy::load("p", &text, &known);
    loaded.policy.unwrap_or_else(|| panic!("{text}\n{:#?}", loaded.problems))
}

fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
        Effect::Hide => "hide",
        Effect::Hold => "hold",
    }
}

/// Where the two differ, if they do.
fn compare(verdict: &Verdict, hidden: bool, answer: &Answer) -> Result<(), String> {
    let got = (
        word(verdict.effect),
        verdict.refusal.map_or("", crate::Refusal::as_str),
        verdict.rule.as_deref().unwrap_or_default(),
        verdict.retry_after.map(|s| i64::try_from(s).unwrap()),
        verdict.shadow.as_ref().map(|s| (word(s.effect), s.rule.to_string())),
    );
    let wanted =
        (answer.effect, answer.code, answer.rule.as_str(), answer.retry, answer.shadow.clone());
    if got != wanted {
        return Err(format!("engine {got:?}\nreference {wanted:?}"));
    }
    if hidden != (answer.effect == "hide") {
        return Err(format!("list says hidden: {hidden}"));
    }
    let mut rules: Vec<(String, &str)> =
        verdict.rules.iter().map(|c| (c.rule.to_string(), word(c.effect))).collect();
    rules.sort();
    if rules != answer.rules {
        return Err(format!("engine's rules {rules:?}\nreference's rules {:?}", answer.rules));
    }
    let counted = verdict
        .reservations
        .iter()
        .filter(|r| matches!(r.take, Take::Calendar { .. } | Take::Sliding { .. }))
        .count();
    let flights =
        verdict.reservations.iter().filter(|r| matches!(r.take, Take::InFlight { .. })).count();
    let marks = verdict.reservations.iter().any(|r| matches!(r.take, Take::Seen { .. }));
    let got = (counted, flights, marks);
    let wanted = (answer.takes.len(), answer.flights.len(), answer.marks);
    if got == wanted { Ok(()) } else { Err(format!("engine takes {got:?}, reference {wanted:?}")) }
}

/// One random world, played through. The error tells how to play it again.
fn play(seed: u64, stats: &mut BTreeMap<String, u64>) -> Result<(), String> {
    let mut rng = Dice::new(seed);
    let mut doc = world::document(&mut rng);
    let mut engine = Engine::new(compile(&mut doc));
    let mut history = History::default();
    for (index, call) in world::calls(&mut rng, CALLS).iter().enumerate() {
        if call.settle {
            history.settle();
        }
        let args = call.args.write();
        let answer = reference::answer(&doc, call, &mut history);
        let (verdict, hidden) = engine.decide(call, &args);
        compare(&verdict, hidden, &answer).map_err(|why| {
            let text = write::document(&doc, false);
            format!("seed {seed}, call {index}: {why}\n{text}\n{call:?}\n{args}")
        })?;
        *stats.entry(format!("effect {}", answer.effect)).or_default() += 1;
        *stats.entry(format!("step {}", step(&answer))).or_default() += 1;
        if answer.effect == "allow" {
            history.admit(call, &answer);
            engine.admit(&verdict, call.at);
        }
    }
    for (name, count) in history.reached {
        *stats.entry(format!("reached {name}")).or_default() += count;
    }
    Ok(())
}

/// The step of a decision that a rule belongs to.
fn step(answer: &Answer) -> &'static str {
    let rule = &answer.rule;
    let has = |part: &str| rule.contains(part);
    match answer.effect {
        "hide" => "2 hidden",
        "allow" => "11 allow",
        "hold" => "9 hold",
        _ if rule == "(default deny)" => "3 default deny",
        _ if rule.ends_with("/action") => "4 action",
        _ if has("/require/") => "5 require",
        _ if has("/deny_if/") => "6 deny_if",
        _ if has("/rules/") && answer.code == "policy_denied" => "7 rules",
        _ if has("/unless_seen_within") => "8 repeats",
        _ if rule == "/loop" => "8 loop",
        _ if has("/approve_if/") => "9 error",
        _ => "10 limits",
    }
}

/// A number from outside: how many worlds in soak, or which one to play again.
fn asked(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "soak and replay are asked for from outside")]
    let wanted = std::env::var(name);
    wanted.ok()?.parse().ok()
}

#[test]
fn the_engine_agrees_with_the_naive_interpreter() {
    let mut stats = BTreeMap::new();
    if let Some(seed) = asked("TOOLGATE_POLICY_SEED") {
        play(seed, &mut stats).unwrap();
        return;
    }
    let count = asked("TOOLGATE_POLICY_WORLDS").unwrap_or(20_000);
    for seed in 0..count {
        if let Err(why) = play(seed, &mut stats) {
            panic!(
                "{why}\nagain: TOOLGATE_POLICY_SEED={seed} cargo test -p toolgate-policy agrees"
            );
        }
    }
    let decisions = count * CALLS as u64;
    assert!(decisions >= 100_000);
    let few: Vec<String> = required(decisions)
        .into_iter()
        .filter_map(|(name, least)| {
            let got = stats.get(&name).copied().unwrap_or_default();
            (got < least).then(|| format!("{name}: {got} of {least}"))
        })
        .collect();
    assert!(few.is_empty(), "the generator reaches too little: {few:?}\n{stats:#?}");
}

/// What the generator must reach: each effect a tenth, everything else a thousand times.
fn required(decisions: u64) -> Vec<(String, u64)> {
    let effects = ["allow", "deny", "hide", "hold"];
    let steps = [
        "2 hidden",
        "3 default deny",
        "4 action",
        "5 require",
        "6 deny_if",
        "7 rules",
        "8 repeats",
        "8 loop",
        "9 hold",
        "9 error",
        "10 limits",
        "11 allow",
    ];
    let effects = effects.iter().map(|e| (format!("effect {e}"), decisions / 10));
    let steps = steps.iter().map(|s| (format!("step {s}"), 1_000));
    let parts = world::OPS.iter().chain(&world::SCOPES).map(|n| (format!("reached {n}"), 1_000));
    effects.chain(steps).chain(parts).collect()
}
