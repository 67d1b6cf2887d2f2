//! Denials: the first ten per minute are rows, further ones are counted.

use crate::support::time;
use toolgate_audit::{CallId, Coalesced, Coalescer, Draft, Hash, RowKind};
use toolgate_dice::Dice;

fn denial(grant: &str, tool: &str, rule: &str) -> Draft {
    let mut draft = Draft::new(RowKind::Denied, time(0));
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
    // Another grant, tool or rule has its own ten rows.
    for other in [denial("b", "close", "/x"), denial("a", "open", "/x"), denial("a", "close", "/y")]
    {
        assert_eq!(rows(&mut coalescer, &other, 11), 10);
    }
    assert!(coalescer.due(time(59)).is_empty());
    let due = coalescer.due(time(60));
    let counts: Vec<_> = due.iter().map(|row| row.count).collect();
    assert_eq!(counts, [Some(25), Some(1), Some(1), Some(1)]);
    assert!(due.iter().all(|row| row.call_id.is_none() && row.time == time(60)));
    // A new minute; a backward clock step does not start one.
    assert_eq!(rows(&mut coalescer, &draft, 12), 10);
    assert!(coalescer.due(time(30)).is_empty());
    assert_eq!(rows(&mut coalescer, &draft, 1), 0);
    assert_eq!(coalescer.flush(time(61)).len(), 1);
    assert!(!coalescer.is_waiting());
}

#[test]
fn invented_tool_names_do_not_bloat_the_audit() {
    let mut coalescer = Coalescer::default();
    let mut written = 0;
    for n in 0..20_000 {
        written += rows(&mut coalescer, &denial("a", &format!("t{n}"), "(hidden)"), 1);
    }
    assert_eq!(written, 1_000);
    assert_eq!(rows(&mut coalescer, &denial("b", "t", "(hidden)"), 3), 3);
    let due = coalescer.due(time(60));
    assert_eq!(due.len(), 1);
    assert_eq!(due.first().and_then(|row| row.count), Some(19_000));
    assert_eq!(due.first().and_then(|row| row.tool.as_deref()), None);
}

#[test]
fn rows_and_counts_of_a_grant_sum_up_and_stay_few() {
    let mut dice = Dice::new(7);
    for kinds in [1, 50, 99, 100, 101, 500, 5_000] {
        let mut coalescer = Coalescer::default();
        let mut written = 0;
        for _ in 0..10_000 {
            let (tool, method) = (dice.below(kinds), dice.below(2));
            let mut draft = denial("a", &format!("t{tool}"), "(default deny)");
            draft.method = (method == 0).then(|| "prompts/get".into());
            written += rows(&mut coalescer, &draft, 1);
        }
        let due = coalescer.due(time(60));
        let counted: u64 = due.iter().filter_map(|row| row.count).sum();
        assert_eq!(written as u64 + counted, 10_000, "{kinds}");
        assert!(written + due.len() <= 1_001, "{kinds}: {written} rows and {}", due.len());
    }
}

/// A thousand denials with names of megabytes hold no more memory than their rows.
#[test]
fn a_row_truncates_long_texts() {
    let long = "имя".repeat(1_300_000);
    let mut draft = denial("a", &long, "(default deny)");
    draft.client = Some(long.as_str().into());
    draft.message = Some(format!("the tool `{long}` is not permitted").into());
    let short = draft.truncate();
    let digest = Hash::of(long.as_bytes()).to_string();
    let tool = short.tool.as_deref().unwrap();
    assert!(tool.starts_with("имяимя") && tool.ends_with(&format!("…sha256:{digest}")), "{tool}");
    assert_eq!(tool.split('…').next().unwrap().len(), 512);
    assert_eq!(short.client, short.tool);
    assert!(short.message.as_deref().unwrap().len() < 600);
    let odd = toolgate_audit::truncate(&format!("a{}", "ж".repeat(400))).unwrap();
    assert_eq!(odd.split('…').next().unwrap().len(), 511);
    assert_eq!(toolgate_audit::truncate(&"x".repeat(512)), None);
}
