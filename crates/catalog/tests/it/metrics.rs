//! How well the classifier does on the labelled tools: on the half it was tuned on and on the other.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toolgate_catalog::{Class, Definition, classify};

use crate::data::{Labelled, labelled};

struct Judged {
    row: Labelled,
    class: Class,
    confidence: f64,
}

fn judged() -> Vec<Judged> {
    let judge = |row: Labelled| {
        let definition = Definition {
            description: Some(Cow::Borrowed(row.description)),
            ..Definition::named(row.tool)
        };
        let found = classify(&definition);
        Judged { class: found.class, confidence: found.confidence, row }
    };
    labelled().into_iter().map(judge).collect()
}

#[test]
fn precision_and_recall_of_both_halves() {
    let all = judged();
    assert_eq!(all.len(), 486);
    for (name, tune, bar) in [("tune", true, 0.95), ("held out", false, 0.90)] {
        let half: Vec<&Judged> = all.iter().filter(|judged| judged.row.tune == tune).collect();
        let right = half.iter().filter(|judged| judged.class == judged.row.class).count();
        let accuracy = ratio(right, half.len());
        println!("{name}: {right} of {} right, {accuracy:.3}", half.len());
        for class in Class::ALL {
            print_class(class, &half);
        }
        // Mistakes of the other half are not shown, so that nothing is tuned to them.
        for judged in half.iter().filter(|judged| tune && judged.class != judged.row.class) {
            println!(
                "  {}/{}: {:?}, labelled {:?} ({:.2}) {}",
                judged.row.server,
                judged.row.tool,
                judged.class,
                judged.row.class,
                judged.confidence,
                judged.row.description
            );
        }
        assert!(accuracy >= bar, "{name}: {accuracy:.3}");
    }
}

fn print_class(class: Class, half: &[&Judged]) {
    let found = half.iter().filter(|judged| judged.class == class).count();
    let labelled = half.iter().filter(|judged| judged.row.class == class).count();
    let both = half.iter().filter(|j| j.class == class && j.row.class == class).count();
    println!(
        "  {:<12} precision {:.3}, recall {:.3} ({both} of {labelled})",
        class.as_str(),
        ratio(both, found),
        ratio(both, labelled)
    );
}

/// Calling a destructive or financial tool harmless costs ten ordinary errors.
#[test]
fn no_critical_tool_is_called_harmless() {
    let all = judged();
    for (name, tune) in [("tune", true), ("held out", false)] {
        let half: Vec<&Judged> = all.iter().filter(|judged| judged.row.tune == tune).collect();
        let cost: usize = half.iter().map(|judged| cost(judged)).sum();
        println!("{name}: cost {cost} in {} tools", half.len());
        assert!(cost * 20 <= half.len(), "{name}: {cost}");
    }
    for judged in &all {
        assert!(cost(judged) < 10, "{}/{}", judged.row.server, judged.row.tool);
    }
}

fn cost(judged: &Judged) -> usize {
    let critical = matches!(judged.row.class, Class::Destructive | Class::Financial);
    let harmless = matches!(judged.class, Class::Read | Class::Other);
    match judged.class == judged.row.class {
        true => 0,
        false if critical && harmless => 10,
        false => 1,
    }
}

#[test]
fn weak_labels_are_mostly_met() {
    let all = judged();
    let known: Vec<&Judged> = all.iter().filter(|judged| judged.row.weak != Class::Other).collect();
    let met = known.iter().filter(|judged| judged.class == judged.row.weak).count();
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
    for judged in judged() {
        let bucket = match judged.confidence {
            c if c < 0.7 => 0,
            c if c < 0.9 => 1,
            _ => 2,
        };
        let (right, all) = buckets.entry(bucket).or_default();
        *right += usize::from(judged.class == judged.row.class);
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

#[expect(clippy::cast_precision_loss, reason = "hundreds")]
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
