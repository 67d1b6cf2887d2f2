//! How well the classifier does on definitions that were written to be difficult: negation, lying
//! annotations, empty descriptions, nouns that are verbs elsewhere, English and Russian.

use toolgate_catalog::{Class, Definition, classify};

use crate::data::tricky;
use crate::score::{Verdict, print};

#[test]
fn definitions_that_were_written_to_be_difficult() {
    let rows = tricky();
    assert!(rows.len() >= 250, "{}", rows.len());
    for (name, tune) in [("tricky, tuned to", true), ("tricky, held out", false)] {
        let half = rows.iter().filter(|row| row.is_tuned_to() == tune);
        let verdicts: Vec<Verdict> = half
            .map(|row| {
                let definition = row.definition.to_string();
                let found = classify(&Definition::parse(&definition).unwrap());
                Verdict {
                    tool: format!("{}/{}", row.server, row.definition["name"]),
                    labelled: row.class,
                    found: found.class,
                    confidence: found.confidence,
                }
            })
            .collect();
        // Mistakes of the held half are not shown, so that nothing is tuned to them.
        let (right, _) = print(name, &verdicts, tune);
        // Before any rule was changed because of them: 113 of 139 and 115 of 135.
        assert!(right * 100 >= verdicts.len() * 90, "{name}: {right}");
        assert!(verdicts.iter().all(|verdict| verdict.cost() < 10), "{name}");
        for class in [Class::Destructive, Class::Financial] {
            let labelled = verdicts.iter().filter(|verdict| verdict.labelled == class).count();
            assert!(labelled >= 10, "{name}: {labelled} {}", class.as_str());
        }
    }
}
