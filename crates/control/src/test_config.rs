//! Configurations and stored things for unit tests.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use toolgate_audit::Hash;
use toolgate_config::{Config, Surroundings};
use toolgate_store::{Snapshot, StoredGrant, StoredPerson};

struct Secrets;

impl Surroundings for Secrets {
    fn env(&self, name: &str) -> Option<String> {
        Some(token(name))
    }
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(b"a file".to_vec())
    }
}

/// The token that the variable `name` holds in [`config`].
pub(crate) fn token(name: &str) -> String {
    format!("a-token-of-more-than-20-characters-{name}")
}

/// A configuration; every variable holds a token of its own.
pub(crate) fn config(text: &str) -> Config {
    let text = format!("version: 1\n{text}\n");
    Config::parse(&text, Path::new("t.yaml"), &Secrets).unwrap().config
}

/// A grant of the store.
pub(crate) fn stored_grant(label: &str, policy: Option<&str>, revoked: bool) -> StoredGrant {
    StoredGrant {
        id: format!("g-{label}").into(),
        label: label.into(),
        token: Hash::of(label.as_bytes()),
        identity: None,
        groups: Vec::new(),
        servers: None,
        sessions: None,
        policy: policy.map(Into::into),
        created: Timestamp::UNIX_EPOCH,
        expires: None,
        last_use: None,
        revoked: revoked.then_some(Timestamp::UNIX_EPOCH),
    }
}

/// A person of the store.
pub(crate) fn stored_person(name: &str, token: Hash, revoked: bool) -> StoredPerson {
    StoredPerson {
        id: format!("p-{name}").into(),
        name: name.into(),
        token,
        roles: vec!["viewer".to_owned()],
        groups: Vec::new(),
        created: Timestamp::UNIX_EPOCH,
        expires: None,
        revoked: revoked.then_some(Timestamp::UNIX_EPOCH),
    }
}

/// A store with these grants.
pub(crate) fn snapshot_of(grants: Vec<StoredGrant>) -> Snapshot {
    Snapshot { grants, ..Snapshot::default() }
}
