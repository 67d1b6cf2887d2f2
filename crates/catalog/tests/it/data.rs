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

/// One labelled definition of `fresh.jsonl`.
pub(crate) struct Fresh {
    pub(crate) tune: bool,
    pub(crate) server: String,
    pub(crate) tool: &'static str,
    pub(crate) definition: &'static str,
    pub(crate) class: Class,
}

/// The definitions of servers that no rule was made from, with their labels of `fresh.tsv`.
pub(crate) fn fresh() -> Vec<Fresh> {
    let labels = include_str!("../data/fresh.tsv").lines().filter(|line| !line.starts_with('#'));
    let mut labels = labels.skip(1);
    let mut server = String::new();
    let mut rows = Vec::new();
    for line in include_str!("../data/fresh.jsonl").lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(name) = value.get("server").and_then(|name| name.as_str()) {
            name.clone_into(&mut server);
            continue;
        }
        let label: Vec<&str> = labels.next().unwrap().split('\t').collect();
        let [half, labelled, tool, class, _] = label[..] else { panic!("`{label:?}`: five cells") };
        assert_eq!(
            (labelled, tool),
            (server.as_str(), value.get("name").and_then(|name| name.as_str()).unwrap())
        );
        let class = Class::parse(class).unwrap();
        rows.push(Fresh {
            tune: half == "tune",
            server: server.clone(),
            tool,
            definition: line,
            class,
        });
    }
    assert!(labels.next().is_none(), "a label without a definition");
    rows
}

/// One labelled definition of `tricky.jsonl`.
#[derive(serde::Deserialize)]
pub(crate) struct Tricky {
    half: String,
    pub(crate) server: String,
    pub(crate) class: Class,
    #[serde(default, rename = "reason")]
    _reason: String,
    #[serde(rename = "tool")]
    pub(crate) definition: serde_json::Value,
}

impl Tricky {
    /// Whether the classifier may be changed because of mistakes in it.
    pub(crate) fn is_tuned_to(&self) -> bool {
        self.half == "tune"
    }
}

/// Definitions that were written to be difficult, labelled before the classifier had seen them. The
/// meaning of the classes is that of `labels.tsv`.
pub(crate) fn tricky() -> Vec<Tricky> {
    let lines = include_str!("../data/tricky.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}
