//! How well the classifier does on the labelled tools: on the half it was tuned on and on the other.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toolgate_catalog::{Class, Definition, classify};

use crate::data::{Labelled, labelled};
use crate::score::{Verdict, print, ratio};

fn judged() -> Vec<(Labelled, Verdict)> {
    let judge = |row: Labelled| {
        let definition = Definition {
            description: Some(Cow::Borrowed(row.description)),
            ..Definition::named(row.tool)
        };
        let found = classify(&definition);
        let verdict = Verdict {
            tool: format!("{}/{}", row.server, row.tool),
            labelled: row.class,
            found: found.class,
            confidence: found.confidence,
        };
        (row, verdict)
    };
    labelled().into_iter().map(judge).collect()
}

/// The verdicts on one half.
fn half(tune: bool) -> Vec<Verdict> {
    let all = judged().into_iter().filter(|(row, _)| row.tune == tune);
    all.map(|(_, verdict)| verdict).collect()
}

#[test]
fn precision_and_recall_of_both_halves() {
    assert_eq!(judged().len(), 486);
    for (name, tune, bar) in [("tune", true, 95), ("held out", false, 90)] {
        let half = half(tune);
        // Mistakes of the other half are not shown, so that nothing is tuned to them.
        let (right, cost) = print(name, &half, tune);
        assert!(right * 100 >= half.len() * bar, "{name}: {right}");
        assert!(cost * 20 <= half.len(), "{name}: {cost}");
        // No destructive or financial tool is called harmless.
        assert!(half.iter().all(|verdict| verdict.cost() < 10), "{name}");
    }
}

#[test]
fn weak_labels_are_mostly_met() {
    let all = judged();
    let known: Vec<_> = all.iter().filter(|(row, _)| row.weak != Class::Other).collect();
    let met = known.iter().filter(|(row, verdict)| verdict.found == row.weak).count();
    println!(
        "weak labels other than Other: {met} of {}, {:.3}",
        known.len(),
        ratio(met, known.len())
    );
    assert!(ratio(met, known.len()) >= 0.90);
}

#[test]
fn accuracy_rises_with_confidence() {
    let mut buckets: BTreeMap<u8, (usize, usize)> = BTreeMap::new();
    for (_, verdict) in judged() {
        let bucket = match verdict.confidence {
            c if c < 0.7 => 0,
            c if c < 0.9 => 1,
            _ => 2,
        };
        let (right, all) = buckets.entry(bucket).or_default();
        *right += usize::from(verdict.is_right());
        *all += 1;
    }
    let names = ["below 0.7", "0.7 to 0.9", "0.9 and above"];
    let mut before = 0.0;
    for (bucket, (right, all)) in buckets {
        let accuracy = ratio(right, all);
        println!(
            "confidence {}: {right} of {all} right, {accuracy:.3}",
            names[usize::from(bucket)]
        );
        assert!(accuracy >= before, "bucket {bucket}: {accuracy:.3} after {before:.3}");
        before = accuracy;
    }
}

/// The classifier knows verbs, not tools.
#[test]
fn no_tool_of_the_data_is_named_in_the_classifier() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut text = String::new();
    read_all(&folder, &mut text);
    // Names that are one plain word of English are verbs or nouns of the lexicon.
    let is_word =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase()) && name.len() < 13;
    let names: Vec<&str> = labelled().iter().map(|row| row.tool).collect();
    let plain: Vec<&&str> = names.iter().filter(|name| is_word(name)).collect();
    assert!(plain.len() < 60, "{plain:?}");
    let mut present = Vec::new();
    for name in names.iter().filter(|name| !is_word(name)) {
        let found = text.match_indices(name).find(|(at, _)| {
            let outside = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            outside(text.get(..*at).unwrap().chars().next_back())
                && outside(text.get(at + name.len()..).unwrap().chars().next())
        });
        if found.is_some() {
            present.push(*name);
        }
    }
    assert!(present.is_empty(), "in the classifier: {present:?}");
}

fn read_all(folder: &std::path::Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, text);
        } else {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}
