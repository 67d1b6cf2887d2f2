//! What the showcase stores, and what does not fit.

use super::*;

const TOOL: &str = r#"{"name":"a","input_schema":{}}"#;

fn card(config_id: &str) -> SessionInfo {
    SessionInfo {
        kind: "client".to_owned(),
        version: "1".to_owned(),
        infobase_name: "trade".to_owned(),
        ib_session_number: 1,
        config_id: config_id.to_owned(),
        config_id_sent: true,
        host_id: "unknown".to_owned(),
        pid: None,
        cluster_server: None,
    }
}

fn entry(config_id: &str, tools: &[&str]) -> ShowcaseEntry {
    let key = EntryKey {
        kind: "client".to_owned(),
        config_id: config_id.to_owned(),
        infobase_name: None,
    };
    ShowcaseEntry::restore(key, tools.iter().copied(), Millis(1), [])
}

/// Publishes, and returns the result.
fn publish(
    showcase: &mut Showcase,
    config_id: &str,
    tools: &[&str],
    room: ShowcaseLimits,
) -> Vec<String> {
    let tools = entry(config_id, tools).tools;
    let (uid, card) = (Arc::from("u1"), card(config_id));
    let publication = Publication { uid: &uid, card: &card, tools: &tools, registered: true };
    let lines =
        showcase.publish(publication, room, Millis(2)).into_iter().map(|output| match output {
            Output::Keep(entry) => format!("keep {}", entry.key.config_id),
            Output::Forget(key) => format!("forget {}", key.config_id),
            Output::Event(event) => format!("{}: {}", event.what.as_str(), event.text),
            other => panic!("{other:?}"),
        });
    let lines = lines.collect();
    let weights: usize = showcase.all().map(|entry| entry.weight()).sum();
    assert_eq!(showcase.bytes, weights, "what is counted is what is there");
    lines
}

#[test]
fn a_full_showcase_refuses_new_entries_and_keeps_old_ones() {
    let room = ShowcaseLimits { entries: 2, ..ShowcaseLimits::default() };
    let mut showcase = Showcase::default();
    for (config_id, lines) in [("a", "keep a"), ("b", "keep b")] {
        assert_eq!(publish(&mut showcase, config_id, &[TOOL], room), [lines]);
    }
    let refused = publish(&mut showcase, "c", &[TOOL], room);
    assert!(
        refused[0].starts_with(
            "showcase_full: the tools of client/c are not kept: the showcase has 2 entries of "
        ),
        "{refused:?}"
    );
    assert_eq!(publish(&mut showcase, "a", &[], room), ["keep a"], "what is kept is kept fresh");
    let kept: Vec<&str> = showcase.all().map(|entry| entry.key.config_id.as_str()).collect();
    assert_eq!(kept, ["a", "b"]);
    showcase.reset(Some("b"), &Reach::default());
    assert_eq!(publish(&mut showcase, "c", &[TOOL], room), ["keep c"], "there is room again");
}

#[test]
fn large_definitions_are_refused_too() {
    let large =
        format!(r#"{{"name":"b","description":"{}","input_schema":{{}}}}"#, "x".repeat(500));
    let room = ShowcaseLimits { bytes: 400, ..ShowcaseLimits::default() };
    let mut showcase = Showcase::default();
    assert_eq!(publish(&mut showcase, "a", &[TOOL], room), ["keep a"]);
    for config_id in ["a", "b"] {
        let refused = publish(&mut showcase, config_id, &[TOOL, &large], room);
        assert!(refused[0].starts_with("showcase_full"), "{refused:?}");
    }
    assert_eq!(showcase.all().next().map(|entry| entry.tools.len()), Some(1), "it is as it was");
    // An entry stored under larger limits may shrink but not grow.
    let mut showcase = Showcase::new([entry("a", &[&large]), entry("b", &[&large])]);
    assert_eq!(publish(&mut showcase, "a", &[TOOL], room), ["forget a", "keep a"]);
    assert!(publish(&mut showcase, "c", &[TOOL], room)[0].starts_with("showcase_full"));
}

#[test]
fn import_takes_new_entries_that_fit() {
    let known = [entry("a", &[TOOL])];
    let file = [entry("a", &[]), entry("b", &[TOOL]), entry("c", &[TOOL]), entry("d", &[TOOL])];
    let (new, left_out) =
        new_to(&known, &file, ShowcaseLimits { entries: 3, ..ShowcaseLimits::default() });
    let new: Vec<&str> = new.iter().map(|entry| entry.key.config_id.as_str()).collect();
    assert_eq!((new, left_out), (vec!["b", "c"], 1));
}
