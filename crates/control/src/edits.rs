//! The audit rows of an edit of the file. They are recorded before the edit takes effect, also if
//! the file was edited while toolgate was stopped.
//!
//! The store keeps which policies were last recorded, so that a start records only what is new.
//! toolgate does not know who edited the file, so these rows name no person.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{Draft, Hash, RowKind};
use toolgate_config::Config;
use toolgate_store::{Change, Document};

use crate::policies::Meanings;

/// The space of the store with the last recorded meaning of each policy.
pub(crate) const SPACE: &str = "file_policies";

/// A row, and the change of the store that belongs to it.
pub(crate) type Edit = (Option<Change>, Draft);

/// The policies that were last recorded.
pub(crate) fn recorded(kept: &[Document]) -> Meanings {
    let meaning =
        |kept: &Document| (kept.key.as_ref().to_owned(), kept.json.trim_matches('"').to_owned());
    kept.iter().map(meaning).collect()
}

/// One row for each policy of the file that differs from what was last recorded.
pub(crate) fn since_last_start(
    recorded: &Meanings,
    active: &Meanings,
    now: Timestamp,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (name, meaning) in active {
        match recorded.get(name) {
            None => edits.push(policy(name, Some(meaning), "has a new policy", now)),
            Some(other) if other != meaning => {
                edits.push(policy(name, Some(meaning), "has another text for the policy", now));
            }
            Some(_) => {}
        }
    }
    let gone = recorded.keys().filter(|name| !active.contains_key(*name));
    edits.extend(gone.map(|name| policy(name, None, "no longer has the policy", now)));
    edits
}

/// One row for each policy whose meaning changed, and one for everything else.
pub(crate) fn rows(
    (old, before): (&Config, &Meanings),
    (new, after): (&Config, &Meanings),
    now: Timestamp,
) -> Vec<Edit> {
    // The policy of local mode comes and goes with local mode, not by an edit.
    let comes_or_goes = |name: &str| {
        let has = |config: &Config| config.policies.iter().any(|it| it.name == name);
        !(has(old) || has(new)) && before.contains_key(name) != after.contains_key(name)
    };
    let mut edits = since_last_start(before, after, now);
    edits.retain(|(_, row)| !row.policy.as_deref().is_some_and(comes_or_goes));
    let changes = rest(old, new);
    if !changes.is_empty() {
        let mut row = Draft::new(RowKind::Admin, now);
        row.message = Some(format!("toolgate.yaml was edited: {}", changes.join(", ")).into());
        edits.push((None, row));
    }
    edits
}

fn policy(name: &str, meaning: Option<&String>, what: &str, now: Timestamp) -> Edit {
    let (space, key): (Arc<str>, Arc<str>) = (SPACE.into(), name.into());
    let change = match meaning {
        Some(hash) => {
            Change::PutDocument(Document { space, key, json: format!("\"{hash}\"").into() })
        }
        None => Change::ReplaceDocuments { space, keep: Vec::new(), forget: vec![key] },
    };
    let mut row = Draft::new(RowKind::Policy, now);
    row.policy = Some(Arc::from(name));
    row.policy_hash = meaning.and_then(|hash| Hash::parse(hash).ok());
    row.message = Some(format!("the configuration {what} `{name}`").into());
    (Some(change), row)
}

/// The changes of everything but policies.
fn rest(old: &Config, new: &Config) -> Vec<String> {
    let mut changes = Vec::new();
    compare("grant", &old.grants, &new.grants, |grant| &grant.label, &mut changes);
    compare("person", &old.people, &new.people, |person| &person.name, &mut changes);
    compare("server", &old.servers, &new.servers, |server| &server.name, &mut changes);
    let others = |config: &Config| Config {
        grants: Vec::new(),
        people: Vec::new(),
        servers: Vec::new(),
        policies: Vec::new(),
        ..config.clone()
    };
    if others(old) != others(new) {
        changes.push("other settings changed".to_owned());
    }
    changes
}

fn compare<T: PartialEq>(
    what: &str,
    old: &[T],
    new: &[T],
    name: impl Fn(&T) -> &str,
    changes: &mut Vec<String>,
) {
    for one in new {
        match old.iter().find(|other| name(other) == name(one)) {
            None => changes.push(format!("{what} `{}` added", name(one))),
            Some(other) if other != one => changes.push(format!("{what} `{}` changed", name(one))),
            Some(_) => {}
        }
    }
    let gone = old.iter().filter(|one| !new.iter().any(|other| name(other) == name(one)));
    changes.extend(gone.map(|one| format!("{what} `{}` removed", name(one))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config;

    fn meanings(all: &[(&str, u8)]) -> Meanings {
        let hash = |byte: u8| Hash([byte; 32]).to_string();
        all.iter().map(|(name, byte)| ((*name).to_owned(), hash(*byte))).collect()
    }

    #[test]
    fn an_edit_is_recorded_by_what_it_changes() {
        let old = "policies: { same: { file: s }, other: { file: o }, gone: { file: g } }\n\
                   grants: [{ label: a, token: env:A }, { label: b, token: env:B }]\n\
                   servers: { s: { url: 'http://127.0.0.1:1/' } }";
        let new = "policies: { same: { file: s }, other: { file: o }, new: { file: n } }\n\
                   grants: [{ label: a, token: env:C }, { label: c, token: env:D }]\n\
                   people: [{ name: p, token: env:P, roles: [viewer] }]\nlocal: off";
        let (old, new) = (config(old), config(new));
        let before = meanings(&[("same", 1), ("other", 2), ("gone", 3), ("local", 6)]);
        let after = meanings(&[("same", 1), ("other", 4), ("new", 5)]);
        let rows = rows((&old, &before), (&new, &after), Timestamp::UNIX_EPOCH);
        let changes: Vec<_> = rows
            .iter()
            .map(|(change, row)| {
                assert_eq!(change.is_some(), row.kind == RowKind::Policy);
                let hash = row.policy_hash.map(|hash| hash.0[0]);
                (row.kind, row.policy.as_deref(), hash, row.message.as_deref().unwrap())
            })
            .collect();
        assert_eq!(
            changes,
            [
                (RowKind::Policy, Some("new"), Some(5), "the configuration has a new policy `new`"),
                (
                    RowKind::Policy,
                    Some("other"),
                    Some(4),
                    "the configuration has another text for the policy `other`"
                ),
                (
                    RowKind::Policy,
                    Some("gone"),
                    None,
                    "the configuration no longer has the policy `gone`"
                ),
                (
                    RowKind::Admin,
                    None,
                    None,
                    "toolgate.yaml was edited: grant `a` changed, grant `c` added, grant `b` \
                     removed, person `p` added, server `s` removed, other settings changed"
                ),
            ]
        );
        let same = super::rows((&old, &before), (&old, &before), Timestamp::UNIX_EPOCH);
        assert!(same.is_empty(), "{same:?}");
    }

    #[test]
    fn a_start_records_what_is_new() {
        let written = meanings(&[("same", 1), ("other", 2), ("gone", 3)]);
        let in_force = meanings(&[("same", 1), ("other", 4), ("new", 5)]);
        let edits = since_last_start(&written, &in_force, Timestamp::UNIX_EPOCH);
        let mut kept = written.clone();
        for (change, row) in edits {
            let name = row.policy.as_deref().unwrap().to_owned();
            match change.unwrap() {
                Change::PutDocument(new) => kept.extend(super::recorded(&[new])),
                Change::ReplaceDocuments { forget, .. } => drop(kept.remove(&*forget[0])),
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(kept, in_force);
        assert!(since_last_start(&in_force, &in_force, Timestamp::UNIX_EPOCH).is_empty());
    }
}
