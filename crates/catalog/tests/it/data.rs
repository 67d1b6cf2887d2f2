//! The labelled tools.

use toolgate_catalog::Class;

/// One row of `labels.tsv`.
pub(crate) struct Labelled {
    pub(crate) tune: bool,
    pub(crate) server: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) description: &'static str,
    pub(crate) weak: Class,
    pub(crate) class: Class,
}

pub(crate) fn labelled() -> Vec<Labelled> {
    let text = include_str!("../data/labels.tsv");
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [half, server, tool, description, weak, class, reason] = cells[..] else {
            panic!("`{line}`: a row has seven cells")
        };
        let parse = |word: &str| Class::parse(&word.to_lowercase()).unwrap();
        let row = Labelled {
            tune: half == "tune",
            server,
            tool,
            description,
            weak: parse(weak),
            class: parse(class),
        };
        assert!(row.weak == row.class || !reason.is_empty(), "{tool}: a reason is missing");
        row
    };
    rows.map(row).collect()
}
