//! Random calls, outcomes and clock steps: the store must match the model in memory.

use toolgate_audit::{Effect, Outcome};
use toolgate_policy::{Call, Class, Effect as Word, Identity, Ledger, Receipt, decide};

use super::{StoreFixture, TestAgent, assert_whole, at, calls::end, wait};
use crate::{AdmitOutcome, Admitted};

/// SplitMix64: small and deterministic.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words.get(usize::try_from(self.below(words.len() as u64)).unwrap()).unwrap()
    }
}

const TOOLS: [&str; 7] = ["close", "slide", "spend", "run", "both", "once", "soft"];

/// Two thousand random steps; `TOOLGATE_SEED` repeats them.
pub fn random_calls_match_the_model(fixture: &dyn StoreFixture) {
    let given = std::env::var("TOOLGATE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(0x5eed);
    let mut dice = Dice(seed);
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "g0");
    let mut ledger = Ledger::default();
    let mut open: Vec<(Admitted, Receipt)> = Vec::new();
    let mut clock: i64 = 0;
    let mut latest: i64 = 0;
    for step in 0..2_000 {
        clock += i64::try_from(dice.below(8)).unwrap() - i64::from(dice.below(40) == 0) * 90;
        latest = latest.max(clock);
        if dice.below(3) == 0 && !open.is_empty() {
            let fixture = usize::try_from(dice.below(open.len() as u64)).unwrap();
            let (admitted, receipt) = open.swap_remove(fixture);
            let sent = dice.below(2) == 0;
            let effect = if sent { Effect::Done } else { Effect::NotStarted };
            end(admitted, Outcome::Ok, effect, at(clock));
            if sent {
                ledger.settle(receipt);
            } else {
                ledger.give_back(receipt);
            }
            continue;
        }
        let tool = dice.one_of(&TOOLS);
        let grant = dice.one_of(&["g0", "g1"]);
        let arguments = format!(r#"{{"amount":{}.{}}}"#, dice.below(30), dice.below(100));
        let call = Call {
            grant,
            identity: Some(Identity { name: "desk", groups: &[] }),
            ..Call::new("work", tool, Class::Other, &arguments)
        };
        let expected = decide(agent.policy(), &call, &ledger, at(latest));
        let request = agent.with_grant(grant).request(tool, &arguments, at(clock));
        let answer = wait(store.admit(request)).unwrap();
        let context = format!("TOOLGATE_SEED={seed}, step {step}: {tool} {arguments} at {clock}");
        match answer {
            AdmitOutcome::Admitted(admitted) => {
                assert_eq!(*admitted.verdict(), expected, "{context}");
                let receipt = ledger.admit(&expected.reservations, at(latest)).unwrap();
                open.push((admitted, receipt));
            }
            AdmitOutcome::Refused(verdict) => {
                assert_eq!(*verdict, expected, "{context}");
                assert_ne!(expected.effect, Word::Allow, "{context}");
            }
            other => panic!("{context}: {other:?}"),
        }
    }
    drop(open);
    wait(store.record(toolgate_audit::Draft::new(toolgate_audit::RowKind::Drift, at(latest))))
        .unwrap();
    assert_whole(&*store);
}
