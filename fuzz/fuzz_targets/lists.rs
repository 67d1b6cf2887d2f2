//! Any list of a server: no reading of what the hide filter lets through has a hidden name, and
//! nothing else is lost; entries on `/mcp` change in their names alone, and pages lose none.
//!
//! The first byte of the input chooses the kind and the size of pages, each line is a result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_gateway::fuzz::{
    KINDS, Listed, member, name_there_and_back, uri_there_and_back, without_hidden,
};

#[path = "../../crates/mcp/tests/reference/json.rs"]
#[allow(dead_code, reason = "shared with `envelope`")]
mod reference;

const KEYS: [&str; KINDS] = ["name", "name", "uri", "uriTemplate"];

fuzz_target!(|input: &[u8]| {
    let Some((choice, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let kind = usize::from(*choice) % KINDS;
    for result in text.lines() {
        check_hidden(kind, result);
    }
    // Pages are parts of messages that were accepted.
    let pages: Vec<&str> = text.lines().filter(|page| reference::parse(page).is_some()).collect();
    if let Some(listed) = Listed::read(kind, "files", pages.iter().copied()) {
        check_entries(kind, &pages, &listed);
        check_pages(&listed, usize::from(*choice));
    }
});

fn is_hidden(name: &str) -> bool {
    name.contains("secret")
}

fn check_hidden(kind: usize, result: &str) {
    let Ok(filtered) = without_hidden(kind, result, is_hidden) else { return };
    let shown = filtered.as_deref().unwrap_or(result);
    let tree = reference::parse(shown).expect("JSON");
    // Every member that any reader may take for the list, every member that it may take for a name.
    for list in members(&tree, member(kind)) {
        let reference::Json::Array(entries) = list else { panic!("no list: {shown}") };
        for entry in entries {
            let names: Vec<_> = members(entry, KEYS[kind]).collect();
            assert_eq!(names.len(), 1, "{shown}");
            let reference::Json::String(Some(name)) = names[0] else { panic!("{shown}") };
            assert!(!is_hidden(name), "{shown}");
        }
    }
    let (Ok(mut before), Ok(mut after)) =
        (serde_json::from_str::<Value>(result), serde_json::from_str::<Value>(shown))
    else {
        return;
    };
    let (all, kept) = (before[member(kind)].take(), after[member(kind)].take());
    assert_eq!(before, after, "what stands beside the list");
    let named = |entry: &&Value| entry[KEYS[kind]].as_str().is_some_and(|name| !is_hidden(name));
    let expected: Vec<&Value> = all.as_array().unwrap().iter().filter(named).collect();
    assert_eq!(kept.as_array().unwrap().iter().collect::<Vec<_>>(), expected);
}

/// The values of all members whose key a reader that ignores case takes for `key`.
fn members<'j>(json: &'j reference::Json, key: &str) -> impl Iterator<Item = &'j reference::Json> {
    let members = match json {
        reference::Json::Object(members) => &members[..],
        _ => &[],
    };
    let key = key.to_owned();
    let is_it = move |name: &str| name.trim().to_lowercase() == key.to_lowercase();
    members.iter().filter(move |(name, _)| name.as_deref().is_some_and(&is_it)).map(|(_, it)| it)
}

/// An entry is the server's own but for its name and the URI of its widget.
fn check_entries(kind: usize, pages: &[&str], listed: &Listed) {
    let there = if kind < 2 { name_there_and_back } else { uri_there_and_back };
    // Numbers out of range and deep nesting are read by no `Value`.
    let pages = pages.iter().map(|page| serde_json::from_str::<Value>(page).ok());
    let Some(pages) = pages.collect::<Option<Vec<Value>>>() else { return };
    let own = |name: &str| {
        let all = pages.iter().filter_map(|page| page[member(kind)].as_array()).flatten();
        all.into_iter().find(|entry| entry[KEYS[kind]] == name).cloned()
    };
    let mut seen = std::collections::HashSet::new();
    for (name, shown) in listed.entries() {
        assert!(listed.has(name) && seen.insert(name), "{name}");
        let (Ok(mut shown), Some(mut own)) = (serde_json::from_str::<Value>(shown), own(name))
        else {
            continue;
        };
        let (expected, _, back) = there("files", name);
        assert_eq!(back.as_deref(), Some(name));
        assert_eq!(shown[KEYS[kind]].take(), expected);
        own[KEYS[kind]].take();
        let widget = |entry: &mut Value| {
            let widget = entry.pointer_mut("/_meta/ui/resourceUri").filter(|uri| uri.is_string());
            widget.map(Value::take)
        };
        match (widget(&mut shown), widget(&mut own)) {
            (Some(shown), Some(own)) => {
                assert_eq!(shown, uri_there_and_back("files", own.as_str().unwrap()).0);
            }
            (shown, own) => assert_eq!(shown, own),
        }
        assert_eq!(shown, own, "{name}");
    }
}

/// The pages together are the list, whatever fits into one.
fn check_pages(listed: &Listed, room: usize) {
    let all: Vec<&str> = listed.entries().into_iter().map(|(_, shown)| shown).collect();
    let (mut from, mut pages) = (Some(0), Vec::new());
    while let Some(place) = from {
        let (page, next) = listed.page(place, room);
        assert!(next.is_none_or(|next| next > place));
        pages.push(String::from_utf8(page.to_vec()).unwrap());
        from = next;
    }
    assert_eq!(pages.join(","), all.join(","));
    let (page, next) = listed.page_of(0, usize::MAX, |own| !is_hidden(own));
    let visible = listed.entries().into_iter().filter(|(own, _)| !is_hidden(own));
    let visible: Vec<&str> = visible.map(|(_, shown)| shown).collect();
    assert_eq!((&page[..], next), (visible.join(",").as_bytes(), None));
}
