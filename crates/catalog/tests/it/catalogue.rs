//! The shipped catalogue: complete, in our own words, and comparable with what a server lists.

use std::collections::{BTreeSet, HashMap};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use toolgate_catalog::{BadCatalogue, Catalogue, Class};

const DATA: &str = include_str!("../../data/catalogue.jsonl");
const SUMMARIES: &str = include_str!("../../data/summaries.tsv");
const SERVERS: &str = include_str!("../../data/servers.tsv");

#[test]
fn the_catalogue_is_complete() {
    let catalogue = Catalogue::parse(DATA, SUMMARIES).unwrap();
    let servers = catalogue.servers();
    let tools: usize = servers.iter().map(|server| server.tools.len()).sum();
    println!("{} servers, {tools} tools", servers.len());
    assert!(servers.len() >= 30, "{}", servers.len());
    assert!(tools >= 280, "{tools}");
    assert_eq!(Catalogue::shipped().servers().len(), servers.len());

    let listed: Vec<Vec<&str>> = SERVERS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(listed.len(), servers.len(), "run `cargo xtask catalogue`");
    for (cells, server) in listed.iter().zip(servers) {
        let scanned = [&server.server, &server.registry, &server.package, &server.version];
        assert_eq!(cells[..4], scanned.map(String::as_str), "run `cargo xtask catalogue`");
        assert_eq!(server.date.len(), "2026-11-18".len(), "{}", server.server);
        let mut names = BTreeSet::new();
        for tool in &server.tools {
            let name = format!("{}/{}", server.server, tool.name);
            assert!(names.insert(&tool.name), "{name} is there twice");
            assert_eq!(tool.fingerprint.len(), 64, "{name}");
            assert!(!tool.signals.is_empty() || tool.class == Class::Other, "{name}");
            assert!((0.0..=1.0).contains(&tool.confidence), "{name}");
            assert!(tool.required <= tool.parameters, "{name}");
            assert!(!tool.attacks.is_empty(), "{name}");
            assert!(tool.summary.ends_with('.') && tool.summary.len() > 10, "{name}");
        }
    }
}

/// The classes of the labelled tools stand for the classifier: `golden.rs` checks that they are its own.
#[test]
fn the_catalogue_was_classified_by_the_present_classifier() {
    let classes = Sha256::digest(include_bytes!("../data/classes.tsv"));
    let present = HEXLOWER.encode(&classes);
    for line in DATA.lines().filter(|line| line.starts_with(r#"{"server":"#)) {
        let server: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            server["classifier"], *present,
            "{}: run `cargo xtask catalogue`, which scans the public servers again",
            server["server"]
        );
    }
}

#[test]
fn no_two_texts_about_what_could_go_wrong_are_equal() {
    let mut seen: HashMap<String, String> = HashMap::new();
    for server in Catalogue::shipped().servers() {
        for tool in &server.tools {
            let name = format!("{}/{}", server.server, tool.name);
            let text = tool.what_could_go_wrong(&server.server);
            assert!(text.len() > 30 && text.ends_with('.'), "{name}: {text}");
            if let Some(other) = seen.insert(text.clone(), name.clone()) {
                panic!("{name} and {other}: {text}");
            }
        }
    }
}

#[test]
fn a_server_is_recognised_by_its_definitions() {
    let catalogue = Catalogue::shipped();
    for server in catalogue.servers() {
        let tools = server.tools.iter();
        let pairs: Vec<(&str, &str)> =
            tools.map(|tool| (tool.name.as_str(), tool.fingerprint.as_str())).collect();
        let same = catalogue.compare(&pairs).unwrap();
        assert_eq!((same.equal, same.of), (pairs.len(), pairs.len()), "{}", server.server);
        assert_eq!(same.version, server.version);
    }
    let server = catalogue.server("@modelcontextprotocol/server-memory").unwrap();
    let mut pairs: Vec<(&str, &str)> =
        server.tools.iter().map(|tool| (tool.name.as_str(), tool.fingerprint.as_str())).collect();
    pairs[0].1 = "00";
    pairs.pop();
    pairs.push(("new_tool", "11"));
    let changed = catalogue.compare(&pairs).unwrap();
    let (version, date) = (&server.version, &server.date);
    let (first, last) = (&server.tools[0].name, &server.tools.last().unwrap().name);
    assert_eq!(
        changed.to_string(),
        format!(
            "7 of 9 definitions equal version {version} of server-memory in the catalogue (scanned \
             {date}); different: {first}; added: new_tool; missing: {last}"
        )
    );
    // All definitions changed: the names are enough.
    let other: Vec<(&str, &str)> = pairs.iter().map(|(name, _)| (*name, "22")).collect();
    assert_eq!(catalogue.compare(&other).unwrap().equal, 0);
    assert_eq!(catalogue.compare(&[("read_file", "1"), ("mine", "2")]), None);
    assert_eq!(catalogue.compare(&[]), None);
}

#[test]
fn a_search_needs_every_word() {
    let catalogue = Catalogue::shipped();
    assert_eq!(catalogue.search(&[]).len(), catalogue.servers().len());
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let found = catalogue.search(&words("destructive entities"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].server.server, "server-memory");
    assert_eq!(found[0].tools[0].name, "delete_entities");
    assert!(catalogue.search(&words("entities nonsense")).is_empty());
    assert!(!catalogue.search(&words("BROWSER")).is_empty());
}

#[test]
fn a_damaged_catalogue_is_refused() {
    let server =
        r#"{"server":"a","registry":"npm","package":"a","version":"1","date":"2026-01-01"}"#;
    for (data, summaries, expected) in [
        ("{}", "", "without a server"),
        ("{\"server\":1}", "", "line 1"),
        (server, "", "`a/-` has no summary"),
        (server, "a\t-\tX.\nb\t-\tY.", "`b/-`, which is not"),
    ] {
        let why: BadCatalogue = Catalogue::parse(data, summaries).unwrap_err();
        assert!(why.to_string().contains(expected), "{why}");
    }
}
