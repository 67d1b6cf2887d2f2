//! What an edit of the file changes, as rows of the audit: written before it takes effect.
//!
//! Who edited the file is for the system to know, so these rows name no person.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{Draft, Hash, Kind};
use toolgate_config::Config;

/// Policies of the file, and of the command line, by name: the hash of what each means.
pub(super) type Meanings = BTreeMap<String, String>;

/// One row for each policy that means something else, and one for all the rest.
pub(super) fn rows(
    (old, before): (&Config, &Meanings),
    (new, after): (&Config, &Meanings),
    now: Timestamp,
) -> Vec<Draft> {
    let mut rows = Vec::new();
    // The policy of local mode comes and goes with that, and not by an edit.
    let has = |config: &Config, name: &String| config.policies.iter().any(|it| it.name == *name);
    for (name, meaning) in after {
        match before.get(name) {
            None if has(new, name) => {
                rows.push(policy(name, Some(meaning), "has a new policy", now));
            }
            Some(other) if other != meaning => {
                rows.push(policy(name, Some(meaning), "has another text for the policy", now));
            }
            _ => {}
        }
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name) && has(old, name));
    rows.extend(gone.map(|name| policy(name, None, "no longer has the policy", now)));
    let said = rest(old, new);
    if !said.is_empty() {
        let mut row = Draft::new(Kind::Admin, now);
        row.message = Some(format!("toolgate.yaml was edited: {}", said.join(", ")).into());
        rows.push(row);
    }
    rows
}

fn policy(name: &str, meaning: Option<&String>, what: &str, now: Timestamp) -> Draft {
    let mut row = Draft::new(Kind::Policy, now);
    row.policy = Some(Arc::from(name));
    row.policy_hash = meaning.and_then(|hash| Hash::parse(hash).ok());
    row.message = Some(format!("the configuration {what} `{name}`").into());
    row
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
            .map(|row| {
                let hash = row.policy_hash.map(|hash| hash.0[0]);
                (row.kind, row.policy.as_deref(), hash, row.message.as_deref().unwrap())
            })
            .collect();
        assert_eq!(
            said,
            [
                (Kind::Policy, Some("new"), Some(5), "the configuration has a new policy `new`"),
                (
                    Kind::Policy,
                    Some("other"),
                    Some(4),
                    "the configuration has another text for the policy `other`"
                ),
                (
                    Kind::Policy,
                    Some("gone"),
                    None,
                    "the configuration no longer has the policy `gone`"
                ),
                (
                    Kind::Admin,
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
}
