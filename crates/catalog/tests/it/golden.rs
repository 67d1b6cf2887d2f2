//! The class of every labelled tool, as a table that is reviewed like code.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use toolgate_catalog::{Definition, classify};

use crate::data::labelled;

#[test]
fn the_classification_table_is_current() {
    let mut table = String::from("# server\ttool\tclass\tlevel\tconfidence\tlabels\treason\n");
    for row in labelled() {
        let definition = Definition {
            description: Some(Cow::Borrowed(row.description)),
            ..Definition::named(row.tool)
        };
        let found = classify(&definition);
        let labels: Vec<&str> = found.labels.names().collect();
        writeln!(
            table,
            "{}\t{}\t{}\t{}\t{:.2}\t{}\t{}",
            row.server,
            row.tool,
            found.class.as_str(),
            found.level.as_str(),
            found.confidence,
            labels.join(","),
            found.reason()
        )
        .unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/classes.tsv");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &table).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    for (found, expected) in table.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "if this is meant, run again with UPDATE=1");
    }
    assert_eq!(table.lines().count(), expected.lines().count());
}
