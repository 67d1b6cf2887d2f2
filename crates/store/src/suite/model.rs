//! Random calls, outcomes and clock steps: the store must match the model in memory.

use toolgate_audit::{Effect, Outcome};
use toolgate_dice::Dice;
use toolgate_policy::{Call, Class, Effect as Word, Identity, Ledger, Receipt, decide};

use super::{StoreFixture, TestAgent, assert_whole, at, calls::end, wait};
use crate::{AdmitOutcome, Admitted};

const TOOLS: [&str; 7] = ["close", "slide", "spend", "run", "both", "once", "soft"];

/// Two thousand random steps; `TOOLGATE_SEED` repeats them.
pub fn random_calls_match_the_model(fixture: &dyn StoreFixture) {
    let given = std::env::var("TOOLGATE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(0x5eed);
    let mut dice = Dice::new(seed);
    let store = fixture.open(at(0));
    let agent = TestAgent::new(&store, "g0");
    let mut ledger = Ledger::default();
    let mut open: Vec<(Admitted, Receipt)> = Vec::new();
    let mut clock: i64 = 0;
    let mut latest: i64 = 0;
    for step in 0..2_000 {
        clock += dice.below(8) - i64::from(dice.below(40) == 0) * 90;
        latest = latest.max(clock);
        if dice.below(3) == 0 && !open.is_empty() {
            let place = dice.below(open.len());
            let (admitted, receipt) = open.swap_remove(place);
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
        let tool = dice.pick(&TOOLS);
        let grant = dice.pick(&["g0", "g1"]);
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
