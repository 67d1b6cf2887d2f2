//! Which entries apply to a call: names and globs, tried in every way.

use super::super::world::{Doc, Ent, RCall, Shade};

/// One name against one glob: try everything.
fn glob(pattern: &[char], text: &[char]) -> bool {
    match pattern.first() {
        None => text.is_empty(),
        Some('*') => (0..=text.len()).any(|n| glob(&pattern[1..], &text[n..])),
        Some('?') => !text.is_empty() && glob(&pattern[1..], &text[1..]),
        Some('[') => {
            let end = pattern.iter().position(|c| *c == ']').unwrap();
            !text.is_empty()
                && pattern[1..end].contains(&text[0])
                && glob(&pattern[end + 1..], &text[1..])
        }
        Some(c) => text.first() == Some(c) && glob(&pattern[1..], &text[1..]),
    }
}

fn globs(pattern: &str, text: &str) -> bool {
    glob(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
}

pub(super) fn key_matches(key: &str, call: &RCall) -> bool {
    match key.split_once('/') {
        Some((server, tool)) => {
            (globs(server, call.server) && globs(tool, call.tool)) || globs(key, call.tool)
        }
        None => globs(key, call.tool),
    }
}

pub(super) fn literals(key: &str) -> usize {
    let mut inside = false;
    key.chars()
        .filter(|c| {
            match c {
                '[' => inside = true,
                ']' => inside = false,
                _ => {}
            }
            !inside && !"*?[]/".contains(*c)
        })
        .count()
}

pub(super) fn in_shadow(shadow: Shade, now: i64) -> bool {
    match shadow {
        Shade::No => false,
        Shade::Always => true,
        Shade::Until(end) => now < end,
    }
}

/// The entries that apply, with their pointers, in the order reasons are named.
pub(super) fn entries<'d>(doc: &'d Doc, call: &RCall) -> Vec<(String, &'d Ent)> {
    let mut keys: Vec<&&str> = doc.tools.keys().filter(|k| key_matches(k, call)).collect();
    let exact = |k: &str| !k.contains(['*', '?', '[']);
    keys.sort_by_key(|k| (!exact(k), !k.contains('/'), usize::MAX - literals(k), (**k).to_owned()));
    let mut out: Vec<(String, &Ent)> = keys
        .iter()
        .map(|k| (format!("/tools/{}", k.replace('/', "~1")), &doc.tools[**k]))
        .collect();
    if let Some(entry) = doc.classes.get(call.class) {
        out.push((format!("/classes/{}", call.class), entry));
    }
    if let Some(entry) = &doc.all_tools {
        out.push(("/all_tools".into(), entry));
    }
    out
}
