//! People: who may use the admin API, and with which roles.
//!
//! A revocation in the store takes precedence over a person of the file. Of two people with one
//! token, `admin` of the data folder takes precedence over the file, and the file over the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::Hash;
use toolgate_config::{Config, PersonConfig, Role};
use toolgate_gateway::{Approver, Approvers};
use toolgate_store::{self as store, Snapshot};

/// A person with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Their name; unique.
    pub name: Arc<str>,
    /// What they may do.
    pub roles: Vec<Role>,
    /// Groups they are in.
    pub groups: Vec<String>,
    /// When their token ends.
    pub expires: Option<Timestamp>,
}

/// All people, by the SHA-256 of their tokens.
#[derive(Debug, Default)]
pub struct People(HashMap<Hash, Arc<Person>>);

impl Person {
    /// Whether the person has this role.
    pub fn may(&self, needed: Role) -> bool {
        self.roles.iter().any(|role| role.covers(needed))
    }
}

impl People {
    /// These people.
    pub fn new(people: impl IntoIterator<Item = (Hash, Arc<Person>)>) -> Self {
        Self(people.into_iter().collect())
    }

    /// The people who may answer approvals.
    pub fn approvers(&self, four_eyes: Option<bool>) -> Approvers {
        let answer = |person: &&Arc<Person>| person.may(Role::Approver);
        let answering = self.0.values().filter(answer);
        let by_name = answering.map(|person| {
            let Person { name, groups, expires, .. } = &**person;
            (Arc::clone(name), Approver { groups: groups.clone(), expires: *expires })
        });
        Approvers { by_name: by_name.collect(), people: self.0.len(), four_eyes }
    }

    /// The person with this token. It is found by its hash, so the time reveals nothing about
    /// tokens.
    pub fn find(&self, token: &str, now: Timestamp) -> Option<Arc<Person>> {
        self.find_by_hash(&Hash::of(token.as_bytes()), now)
    }

    /// The person whose token has this SHA-256.
    pub fn find_by_hash(&self, token: &Hash, now: Timestamp) -> Option<Arc<Person>> {
        let person = self.0.get(token)?;
        person.expires.is_none_or(|end| now < end).then(|| Arc::clone(person))
    }
}

/// The people of the data folder (`admin`), the file and the store.
pub(crate) fn people(admin: Hash, config: &Config, snapshot: &Snapshot) -> People {
    let revoked = snapshot.people.iter().filter(|person| person.revoked.is_some());
    let revoked: HashSet<&str> = revoked.map(|person| &*person.name).collect();
    let of_data = Person {
        name: "admin".into(),
        roles: vec![Role::Admin],
        groups: Vec::new(),
        expires: None,
    };
    let in_file = config.people.iter().filter(|person| !revoked.contains(&*person.name));
    let in_file = in_file.map(|person| (Hash(*person.token.as_bytes()), of_file(person)));
    let in_store = snapshot.people.iter().filter(|person| person.revoked.is_none());
    let in_store = in_store.map(|person| (person.token, of_store(person)));
    // The last one of a token takes precedence.
    let all = in_store.chain(in_file).chain([(admin, of_data)]);
    People::new(all.map(|(token, person)| (token, Arc::new(person))))
}

fn of_file(person: &PersonConfig) -> Person {
    Person {
        name: person.name.as_str().into(),
        roles: person.roles.clone(),
        groups: person.groups.clone(),
        expires: person.expires,
    }
}

fn of_store(person: &store::StoredPerson) -> Person {
    let roles = person.roles.iter().filter_map(|role| Role::parse(role)).collect();
    Person {
        name: Arc::clone(&person.name),
        roles,
        groups: person.groups.clone(),
        expires: person.expires,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::{config, stored_person, token};

    const PEOPLE: &str = "people: [{ name: duty, token: env:DUTY, roles: [viewer] }]";

    fn name(people: &People, token: &str) -> Option<String> {
        people.find(token, Timestamp::UNIX_EPOCH).map(|person| person.name.to_string())
    }

    fn with(people: Vec<store::StoredPerson>, admin: Hash) -> People {
        let snapshot = Snapshot { people, ..Snapshot::default() };
        super::people(admin, &config(PEOPLE), &snapshot)
    }

    #[test]
    fn people_of_all_places_are_found_by_their_tokens() {
        let stored = stored_person("night", Hash::of(b"night"), false);
        let people = with(vec![stored], Hash::of(b"admin"));
        assert_eq!(name(&people, &token("DUTY")).as_deref(), Some("duty"));
        assert_eq!(name(&people, "night").as_deref(), Some("night"));
        assert_eq!(name(&people, "admin").as_deref(), Some("admin"));
        assert_eq!(name(&people, "another"), None);
    }

    #[test]
    fn a_revocation_takes_precedence_over_the_file() {
        let tombstone = stored_person("duty", Hash::default(), true);
        let revoked = stored_person("night", Hash::of(b"night"), true);
        let people = with(vec![tombstone, revoked], Hash::of(b"admin"));
        assert_eq!(name(&people, &token("DUTY")), None);
        assert_eq!(name(&people, "night"), None);
        assert_eq!(name(&people, "admin").as_deref(), Some("admin"));
    }

    #[test]
    fn of_one_token_the_data_folder_precedes_the_file_and_the_file_the_store() {
        let same = Hash::of(token("DUTY").as_bytes());
        let stored = || vec![stored_person("night", same, false)];
        let of_file = with(stored(), Hash::of(b"admin"));
        assert_eq!(name(&of_file, &token("DUTY")).as_deref(), Some("duty"));
        let of_data = with(stored(), same);
        assert_eq!(name(&of_data, &token("DUTY")).as_deref(), Some("admin"));
    }
}
