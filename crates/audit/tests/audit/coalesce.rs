//! Denials: the first ten a minute are rows, the rest one.

use crate::support::time;
use toolgate_audit::{CallId, Coalesced, Coalescer, Draft, Kind};

fn denial(grant: &str, tool: &str, rule: &str) -> Draft {
    let mut draft = Draft::new(Kind::Denied, time(0));
    draft.grant = Some(grant.into());
    draft.tool = Some(tool.into());
    draft.rule = Some(rule.into());
    draft.call_id = Some(CallId::new(1, [0; 10]));
    draft
}

fn rows(coalescer: &mut Coalescer, draft: &Draft, times: usize) -> usize {
    let taken = (0..times).map(|_| coalescer.denied(draft.clone()));
    taken.filter(|taken| *taken != Coalesced::Counted).count()
}

#[test]
fn ten_rows_then_one_with_the_count() {
    let mut coalescer = Coalescer::default();
    assert!(coalescer.due(time(0)).is_empty());
    let draft = denial("a", "close", "/x");
    assert_eq!(rows(&mut coalescer, &draft, 10), 10);
    assert!(!coalescer.is_waiting());
    assert_eq!(rows(&mut coalescer, &draft, 25), 0);
    assert!(coalescer.is_waiting());
    // Another grant, tool or rule has its own ten.
    for other in [denial("b", "close", "/x"), denial("a", "open", "/x"), denial("a", "close", "/y")]
    {
        assert_eq!(rows(&mut coalescer, &other, 11), 10);
    }
    assert!(coalescer.due(time(59)).is_empty());
    let due = coalescer.due(time(60));
    let counts: Vec<_> = due.iter().map(|row| row.count).collect();
    assert_eq!(counts, [Some(25), Some(1), Some(1), Some(1)]);
    assert!(due.iter().all(|row| row.call_id.is_none() && row.time == time(60)));
    // A new minute, and a clock that steps back does not begin one.
    assert_eq!(rows(&mut coalescer, &draft, 12), 10);
    assert!(coalescer.due(time(30)).is_empty());
    assert_eq!(rows(&mut coalescer, &draft, 1), 0);
    assert_eq!(coalescer.flush(time(61)).len(), 1);
    assert!(!coalescer.is_waiting());
}

#[test]
fn made_up_tool_names_do_not_swell_the_audit() {
    let mut coalescer = Coalescer::default();
    let mut written = 0;
    for n in 0..20_000 {
        written += rows(&mut coalescer, &denial("a", &format!("t{n}"), "(hidden)"), 1);
    }
    assert_eq!(written, 1_010);
    assert_eq!(rows(&mut coalescer, &denial("b", "t", "(hidden)"), 3), 3);
    let due = coalescer.due(time(60));
    assert_eq!(due.len(), 1);
    assert_eq!(due.first().and_then(|row| row.count), Some(18_990));
}
