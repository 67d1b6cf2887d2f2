//! Shadowing: two servers with the same tool name, or with names that people take for the same.

use std::collections::HashMap;

use serde::Serialize;
use toolgate_json::fold;

use crate::hidden::skeleton;

/// Tools of different servers that have the same or confusable names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shadowing {
    /// The tools as (server, name), in the order given.
    pub tools: Vec<(String, String)>,
    /// Whether the names are equal, letter by letter.
    pub is_same: bool,
}

/// The form that confusable names have in common: without case, compatibility forms, invisible
/// characters and differences that people do not see.
pub fn likeness(name: &str) -> String {
    let folded = skeleton(&fold(name)).to_lowercase();
    // People do not tell `send_mail` from `sendMail`.
    folded.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).collect()
}

/// Groups of tools of different servers with the same or confusable names, in the order in which
/// their first tool was given.
pub fn shadowing<'a>(tools: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Shadowing> {
    let mut groups: Vec<Vec<(&str, &str)>> = Vec::new();
    let mut at: HashMap<String, usize> = HashMap::new();
    for (server, name) in tools {
        let index = *at.entry(likeness(name)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(index) {
            group.push((server, name));
        }
    }
    let shadow = |group: Vec<(&str, &str)>| {
        let (server, name) = *group.first()?;
        group.iter().any(|(other, _)| *other != server).then(|| Shadowing {
            is_same: group.iter().all(|(_, other)| *other == name),
            tools: group.iter().map(|(s, n)| ((*s).to_owned(), (*n).to_owned())).collect(),
        })
    };
    groups.into_iter().filter_map(shadow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_confuse_are_alike() {
        for (one, two) in [
            ("send_mail", "sеnd_mail"),
            ("send_mail", "Send-Mail"),
            ("send_mail", "sendMail"),
            ("send_mail", "ｓend_mail"),
            ("send_mail", "send_mai\u{200b}l"),
            ("copy", "сору"),
            ("list_l", "list_1"),
            ("go", "g0"),
        ] {
            assert_eq!(likeness(one), likeness(two), "{one} {two}");
        }
        for (one, two) in [("send_mail", "send_email"), ("get_a", "get_b"), ("Остатки", "Остаток")]
        {
            assert_ne!(likeness(one), likeness(two), "{one} {two}");
        }
    }

    #[test]
    fn shadowing_needs_two_servers() {
        let found =
            shadowing([("a", "x"), ("a", "y"), ("b", "y"), ("b", "z"), ("c", "Z"), ("a", "X")]);
        assert_eq!(found.len(), 2);
        assert!(found[0].is_same && !found[1].is_same);
        assert_eq!(found[1].tools, [("b".into(), "z".into()), ("c".into(), "Z".into())]);
    }
}
