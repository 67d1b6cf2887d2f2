//! What people see of the file and the store, and who the people are.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};
use toolgate_admin::{
    FreezeItem, GrantItem, People, Person, PersonItem, Place, PolicyItem, PolicyText, Role,
    ServerItem, Stands, View,
};
use toolgate_audit::Hash;
use toolgate_config::{
    Config, Glob, GrantConfig, PersonConfig, ServerConfig, SessionFilter, Transport,
};
use toolgate_policy::RECOMMENDED;
use toolgate_store::{self as store, FreezeTarget, Snapshot};

use super::access::{BUILT_IN, FileSide, Policies};

/// What ids of things of the file begin with, in the store's rows about their revocation too.
const OF_FILE: &str = "file:";

/// Everything people may look at.
pub(crate) fn view(
    file: &FileSide,
    snapshot: &Snapshot,
    servers: &[ServerConfig],
    policies: &Policies,
    local: bool,
) -> View {
    View {
        servers: servers.iter().map(|server| server_item(server, &file.config)).collect(),
        grants: grants(&file.config, snapshot),
        people: people_items(&file.config, snapshot),
        policies: policy_texts(snapshot, policies),
        freezes: snapshot.freezes.iter().map(freeze_item).collect(),
        in_force: policies.by_name.clone(),
        local,
    }
}

/// Everybody with a token: `admin`, those of the file, those of the store.
pub(crate) fn people(admin: Hash, config: &Config, snapshot: &Snapshot) -> People {
    let revoked: HashSet<&str> = snapshot
        .people
        .iter()
        .filter(|person| person.revoked.is_some())
        .map(|person| &*person.name)
        .collect();
    let data = Person {
        name: "admin".into(),
        roles: vec![Role::Admin],
        groups: Vec::new(),
        expires: None,
    };
    let in_file = config.people.iter().filter(|person| !revoked.contains(&*person.name));
    let in_file = in_file.map(|person| (Hash(*person.token.as_bytes()), of_file(person)));
    let in_store = snapshot.people.iter().filter(|person| person.revoked.is_none());
    let in_store = in_store.map(|person| (person.token, of_store(person)));
    People::new(in_store.chain(in_file).chain([(admin, data)]).map(|(t, p)| (t, Arc::new(p))))
}

fn of_file(person: &PersonConfig) -> Person {
    let roles = person.roles.iter().filter_map(|role| Role::parse(role.as_str())).collect();
    Person {
        name: person.name.as_str().into(),
        roles,
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

fn server_item(server: &ServerConfig, config: &Config) -> ServerItem {
    let in_file = config.servers.iter().any(|other| other.name == server.name);
    let (transport, address) = match &server.transport {
        Transport::Stdio(stdio) => ("stdio", stdio.command.written().to_owned()),
        Transport::Http(http) => ("http", http.url.to_string()),
    };
    ServerItem {
        name: server.name.clone(),
        source: if in_file { Place::File } else { Place::Store },
        transport,
        address,
        tools: None,
    }
}

fn grants(config: &Config, snapshot: &Snapshot) -> Vec<GrantItem> {
    let revoked = |label: &str| {
        let found = snapshot.grants.iter().find(|grant| *grant.label == *label);
        found.and_then(|grant| grant.revoked)
    };
    let in_file = config.grants.iter().map(|grant| of_file_grant(grant, revoked(&grant.label)));
    let is_in_file = |label: &str| config.grants.iter().any(|grant| grant.label == label);
    let in_store = snapshot.grants.iter().filter(|grant| !is_in_file(&grant.label));
    in_file.chain(in_store.map(kept_grant)).collect()
}

fn of_file_grant(grant: &GrantConfig, revoked: Option<Timestamp>) -> GrantItem {
    GrantItem {
        id: format!("{OF_FILE}{}", grant.label),
        label: grant.label.clone(),
        source: Place::File,
        identity: grant.identity.clone(),
        groups: grant.groups.clone(),
        servers: grant.servers.clone(),
        sessions: sessions(&grant.sessions),
        policy: grant.policy.clone(),
        created: None,
        expires: grant.expires.map(|end| end.to_string()),
        last_use: None,
        revoked: revoked.map(|at| at.to_string()),
    }
}

fn kept_grant(grant: &store::StoredGrant) -> GrantItem {
    GrantItem {
        id: grant.id.to_string(),
        label: grant.label.to_string(),
        source: Place::Store,
        identity: grant.identity.as_deref().map(str::to_owned),
        groups: grant.groups.clone(),
        servers: grant.servers.clone(),
        sessions: grant.sessions.as_deref().and_then(|json| serde_json::from_str(json).ok()),
        policy: grant.policy.as_deref().map(str::to_owned),
        created: Some(grant.created.to_string()),
        expires: grant.expires.map(|end| end.to_string()),
        last_use: grant.last_use.map(|at| at.to_string()),
        revoked: grant.revoked.map(|at| at.to_string()),
    }
}

fn sessions(filter: &SessionFilter) -> Option<Value> {
    let lists = [
        ("infobase_name", &filter.infobase_name),
        ("kind", &filter.kind),
        ("session_id", &filter.session_id),
    ];
    let globs = lists.into_iter().filter_map(|(name, globs)| {
        let globs = globs.as_ref()?.iter().map(Glob::as_str);
        Some((name.to_owned(), globs.collect::<Vec<_>>().into()))
    });
    let globs: Map<String, Value> = globs.collect();
    (!globs.is_empty()).then_some(Value::Object(globs))
}

fn people_items(config: &Config, snapshot: &Snapshot) -> Vec<PersonItem> {
    let admin = PersonItem {
        id: "admin".to_owned(),
        name: "admin".to_owned(),
        source: Place::Data,
        roles: vec!["admin".to_owned()],
        groups: Vec::new(),
        created: None,
        expires: None,
        revoked: None,
    };
    let revoked = |name: &str| {
        let found = snapshot.people.iter().find(|person| *person.name == *name);
        found.and_then(|person| person.revoked).map(|at| at.to_string())
    };
    let in_file = config.people.iter().map(|person| PersonItem {
        id: format!("{OF_FILE}{}", person.name),
        name: person.name.clone(),
        source: Place::File,
        roles: person.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        groups: person.groups.clone(),
        created: None,
        expires: person.expires.map(|end| end.to_string()),
        revoked: revoked(&person.name),
    });
    let is_in_file = |name: &str| config.people.iter().any(|person| person.name == name);
    let in_store = snapshot.people.iter().filter(|person| !is_in_file(&person.name));
    let in_store = in_store.map(|person| PersonItem {
        id: person.id.to_string(),
        name: person.name.to_string(),
        source: Place::Store,
        roles: person.roles.clone(),
        groups: person.groups.clone(),
        created: Some(person.created.to_string()),
        expires: person.expires.map(|end| end.to_string()),
        revoked: person.revoked.map(|at| at.to_string()),
    });
    std::iter::once(admin).chain(in_file).chain(in_store).collect()
}

fn policy_texts(snapshot: &Snapshot, policies: &Policies) -> Vec<PolicyText> {
    let item = |name: &str, source, version, created| {
        let in_force = policies.by_name.get(name);
        PolicyItem {
            name: name.to_owned(),
            source,
            version,
            hash: in_force.map(|in_force| in_force.policy.hash().to_owned()),
            state: if in_force.is_some() { Stands::InForce } else { Stands::Broken },
            created,
        }
    };
    let in_file = policies.of_file.iter().map(|(name, document)| PolicyText {
        item: item(name, Place::File, None, None),
        document: document.clone(),
    });
    let is_in_file = |name: &str| policies.of_file.iter().any(|(other, _)| other == name);
    let in_store = snapshot.policies.iter().filter(|kept| !is_in_file(&kept.name));
    let in_store = in_store.map(|kept| PolicyText {
        item: item(&kept.name, Place::Store, Some(kept.version), Some(kept.created.to_string())),
        document: kept.document.to_string(),
    });
    let mut texts: Vec<_> = in_file.chain(in_store).collect();
    if !texts.iter().any(|text| text.item.name == BUILT_IN) {
        texts.push(PolicyText {
            item: item(BUILT_IN, Place::BuiltIn, None, None),
            document: RECOMMENDED.to_owned(),
        });
    }
    texts
}

fn freeze_item(freeze: &store::Freeze) -> FreezeItem {
    let (mut grant, mut server, mut session, mut all) = (None, None, None, false);
    match &freeze.what {
        FreezeTarget::All => all = true,
        FreezeTarget::Grant(label) => grant = Some(label.to_string()),
        FreezeTarget::Server(name) => server = Some(name.to_string()),
        FreezeTarget::Session(id) => session = Some(id.to_string()),
    }
    let created = freeze.created.to_string();
    FreezeItem { id: freeze.id.to_string(), grant, server, session, all, created }
}
