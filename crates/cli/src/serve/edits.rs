//! What an edit of the file changes, as rows of the audit: written before it takes effect, also if
//! the edit was made while nobody served.
//!
//! Which policies were last written down is kept in the store, so that a start writes only what is
//! new. Who edited the file is for the system to know, so these rows name no person.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{Draft, Hash, RowKind};
use toolgate_config::Config;
use toolgate_store::{Change, Document};

/// Policies of the file, and of the command line, by name: the hash of what each means.
pub(super) type Meanings = BTreeMap<String, String>;

/// Where it is kept which meaning of a policy was last written down.
pub(super) const SPACE: &str = "file_policies";

/// A row, and what is to be kept with it.
pub(super) type Edit = (Option<Change>, Draft);

/// What was last written down.
pub(super) fn written(kept: &[Document]) -> Meanings {
    let meaning =
        |kept: &Document| (kept.key.as_ref().to_owned(), kept.json.trim_matches('"').to_owned());
    kept.iter().map(meaning).collect()
}

/// One row for each policy of the file that is not what was last written down.
pub(super) fn since_last_start(
    written: &Meanings,
    now_in_force: &Meanings,
    now: Timestamp,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (name, meaning) in now_in_force {
        match written.get(name) {
            None => edits.push(policy(name, Some(meaning), "has a new policy", now)),
            Some(other) if other != meaning => {
                edits.push(policy(name, Some(meaning), "has another text for the policy", now));
            }
            Some(_) => {}
        }
    }
    let gone = written.keys().filter(|name| !now_in_force.contains_key(*name));
    edits.extend(gone.map(|name| policy(name, None, "no longer has the policy", now)));
    edits
}

/// One row for each policy that means something else, and one for all the rest.
pub(super) fn rows(
    (old, before): (&Config, &Meanings),
    (new, after): (&Config, &Meanings),
    now: Timestamp,
) -> Vec<Edit> {
    // The policy of local mode comes and goes with that, and not by an edit.
    let comes_or_goes = |name: &str| {
        let has = |config: &Config| config.policies.iter().any(|it| it.name == name);
        !(has(old) || has(new)) && before.contains_key(name) != after.contains_key(name)
    };
    let mut edits = since_last_start(before, after, now);
    edits.retain(|(_, row)| !row.policy.as_deref().is_some_and(comes_or_goes));
    let said = rest(old, new);
    if !said.is_empty() {
        let mut row = Draft::new(RowKind::Admin, now);
        row.message = Some(format!("toolgate.yaml was edited: {}", said.join(", ")).into());
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

/// Everything that is not the text of a policy.
fn rest(old: &Config, new: &Config) -> Vec<String> {
    let mut said = Vec::new();
    compare("grant", &old.grants, &new.grants, |grant| &grant.label, &mut said);
    compare("person", &old.people, &new.people, |person| &person.name, &mut said);
    compare("server", &old.servers, &new.servers, |server| &server.name, &mut said);
    let others = |config: &Config| Config {
        grants: Vec::new(),
        people: Vec::new(),
        servers: Vec::new(),
        policies: Vec::new(),
        ..config.clone()
    };
    if others(old) != others(new) {
        said.push("other settings changed".to_owned());
    }
    said
}

fn compare<T: PartialEq>(
    what: &str,
    old: &[T],
    new: &[T],
    name: impl Fn(&T) -> &str,
    said: &mut Vec<String>,
) {
    for one in new {
        match old.iter().find(|other| name(other) == name(one)) {
            None => said.push(format!("{what} `{}` added", name(one))),
            Some(other) if other != one => said.push(format!("{what} `{}` changed", name(one))),
            Some(_) => {}
        }
    }
    let gone = old.iter().filter(|one| !new.iter().any(|other| name(other) == name(one)));
    said.extend(gone.map(|one| format!("{what} `{}` removed", name(one))));
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use toolgate_config::Surroundings;

    use super::*;

    struct Secrets;

    impl Surroundings for Secrets {
        fn env(&self, name: &str) -> Option<String> {
            Some(format!("a-token-of-more-than-20-characters-{name}"))
        }
        fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn config(text: &str) -> Config {
        let text = format!("version: 1\n{text}\n");
        Config::parse(&text, Path::new("t.yaml"), &Secrets).unwrap().config
    }

    fn meanings(all: &[(&str, u8)]) -> Meanings {
        let hash = |byte: u8| Hash([byte; 32]).to_string();
        all.iter().map(|(name, byte)| ((*name).to_owned(), hash(*byte))).collect()
    }

    #[test]
    fn an_edit_is_told_by_what_it_changes() {
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
        let said: Vec<_> = rows
            .iter()
            .map(|(change, row)| {
                assert_eq!(change.is_some(), row.kind == RowKind::Policy);
                let hash = row.policy_hash.map(|hash| hash.0[0]);
                (row.kind, row.policy.as_deref(), hash, row.message.as_deref().unwrap())
            })
            .collect();
        assert_eq!(
            said,
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
    fn a_start_tells_what_was_not_told_before() {
        let written = meanings(&[("same", 1), ("other", 2), ("gone", 3)]);
        let in_force = meanings(&[("same", 1), ("other", 4), ("new", 5)]);
        let edits = since_last_start(&written, &in_force, Timestamp::UNIX_EPOCH);
        let mut kept = written.clone();
        for (change, row) in edits {
            let name = row.policy.as_deref().unwrap().to_owned();
            match change.unwrap() {
                Change::PutDocument(new) => kept.extend(super::written(&[new])),
                Change::ReplaceDocuments { forget, .. } => drop(kept.remove(&*forget[0])),
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(kept, in_force);
        assert!(since_last_start(&in_force, &in_force, Timestamp::UNIX_EPOCH).is_empty());
    }
}
