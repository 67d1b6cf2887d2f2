//! Builds the read model of the admin API from file and store.
//!
//! Something that both sides define is shown once, as that of the file; a revocation in the store is
//! shown on it.

use jiff::Timestamp;
use serde_json::{Map, Value};
use toolgate_config::{Config, GrantConfig, ServerConfig, Transport};
use toolgate_gateway::ServerState;
use toolgate_policy::{Glob, RECOMMENDED};
use toolgate_session::Reach;
use toolgate_store::{self as store, FreezeTarget, Snapshot};

use crate::literal_secrets::shown_command;
use crate::policies::{BUILT_IN, FileState, Policies};
use crate::view::{
    FreezeItem, GrantItem, Origin, PersonItem, PolicyItem, PolicyState, PolicyText, ServerItem,
    View,
};

/// The prefix of ids of what the file defines, also in the store's rows about a revocation.
const OF_FILE: &str = "file:";

/// Whether this is the id of something that the file defines, or defined.
pub(crate) fn is_of_file(id: &str) -> bool {
    id.starts_with(OF_FILE)
}

/// The id of what the file defines under this name.
pub(crate) fn file_id(name: &str) -> String {
    format!("{OF_FILE}{name}")
}

/// The read model of this file and store.
pub(crate) fn read_model(
    file: &FileState,
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

fn server_item(server: &ServerConfig, config: &Config) -> ServerItem {
    let in_file = config.servers.iter().any(|other| other.name == server.name);
    let (transport, address, command) = match &server.transport {
        Transport::Stdio(stdio) => {
            let args: Vec<&str> =
                stdio.args.iter().map(toolgate_config::Expanded::written).collect();
            let program = stdio.command.written();
            ("stdio", program.to_owned(), Some(shown_command(program, &args)))
        }
        Transport::Http(http) => ("http", http.url.to_string(), None),
    };
    ServerItem {
        name: server.name.clone(),
        source: if in_file { Origin::File } else { Origin::Store },
        transport,
        address,
        command,
        pin: server.pin.as_str(),
        tools: None,
        state: ServerState::NeverUsed.as_str(),
        running: 0,
        last_error: None,
        last_error_at: None,
        retry_after_s: None,
    }
}

fn grants(config: &Config, snapshot: &Snapshot) -> Vec<GrantItem> {
    let revoked = |label: &str| {
        let found = snapshot.grants.iter().find(|grant| *grant.label == *label);
        found.and_then(|grant| grant.revoked)
    };
    let in_file = config.grants.iter().map(|grant| {
        let mut item = of_file_grant(grant, revoked(&grant.label));
        let used = snapshot.uses.iter().find(|used| *used.id == *item.id);
        item.last_use = used.map(|used| used.at.to_string());
        item
    });
    let is_in_file = |label: &str| config.grants.iter().any(|grant| grant.label == label);
    let is_restored =
        |grant: &&store::StoredGrant| grant.revoked.is_none() && is_of_file(&grant.id);
    let in_store = snapshot.grants.iter().filter(|grant| !is_in_file(&grant.label));
    let in_store = in_store.filter(|grant| !is_restored(grant));
    in_file.chain(in_store.map(of_stored_grant)).collect()
}

fn of_file_grant(grant: &GrantConfig, revoked: Option<Timestamp>) -> GrantItem {
    GrantItem {
        id: file_id(&grant.label),
        label: grant.label.clone(),
        source: Origin::File,
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

fn of_stored_grant(grant: &store::StoredGrant) -> GrantItem {
    GrantItem {
        id: grant.id.to_string(),
        label: grant.label.to_string(),
        source: Origin::Store,
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

fn sessions(reach: &Reach) -> Option<Value> {
    let lists = [
        ("infobase_name", &reach.infobase_name),
        ("kind", &reach.kind),
        ("session_id", &reach.session_id),
    ];
    let globs = lists.into_iter().filter_map(|(name, globs)| {
        let globs = globs.as_ref()?.iter().map(Glob::to_string);
        Some((name.to_owned(), globs.collect::<Vec<_>>().into()))
    });
    let globs: Map<String, Value> = globs.collect();
    (!globs.is_empty()).then_some(Value::Object(globs))
}

fn people_items(config: &Config, snapshot: &Snapshot) -> Vec<PersonItem> {
    let admin = PersonItem {
        id: "admin".to_owned(),
        name: "admin".to_owned(),
        source: Origin::Data,
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
        id: file_id(&person.name),
        name: person.name.clone(),
        source: Origin::File,
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
        source: Origin::Store,
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
            state: if in_force.is_some() { PolicyState::InForce } else { PolicyState::Broken },
            created,
            shadows: None,
        }
    };
    let stored = |name: &str| snapshot.policies.iter().find(|kept| *kept.name == *name);
    let in_file = policies.of_file.iter().map(|(name, document)| PolicyText {
        item: PolicyItem {
            shadows: stored(name).map(|kept| kept.version),
            ..item(name, Origin::File, None, None)
        },
        document: document.clone(),
    });
    let is_in_file = |name: &str| policies.of_file.iter().any(|(other, _)| other == name);
    let in_store = snapshot.policies.iter().filter(|kept| !is_in_file(&kept.name));
    let in_store = in_store.map(|kept| PolicyText {
        item: item(&kept.name, Origin::Store, Some(kept.version), Some(kept.created.to_string())),
        document: kept.document.to_string(),
    });
    let mut texts: Vec<_> = in_file.chain(in_store).collect();
    if !texts.iter().any(|text| text.item.name == BUILT_IN) {
        texts.push(PolicyText {
            item: item(BUILT_IN, Origin::BuiltIn, None, None),
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
    FreezeItem {
        id: freeze.id.to_string(),
        grant,
        server,
        session,
        all,
        created: freeze.created.to_string(),
        person: freeze.person.as_deref().map(str::to_owned),
        reason: freeze.reason.as_deref().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::PolicyFiles;
    use crate::test_config::{config, stored_grant, stored_person};

    fn model(text: &str, snapshot: &Snapshot) -> View {
        let (config, policies) = (config(text), PolicyFiles::default());
        let servers = config.servers.clone();
        let file = FileState { config, policies, local_policy: None };
        read_model(&file, snapshot, &servers, &Policies::default(), false)
    }

    #[test]
    fn a_revoked_grant_of_the_file_is_shown_once() {
        let grants = vec![stored_grant("a", None, true), stored_grant("s", None, false)];
        let snapshot = Snapshot { grants, ..Snapshot::default() };
        let view = model("grants: [{ label: a, token: env:A }]", &snapshot);
        let shown: Vec<_> = view
            .grants
            .iter()
            .map(|grant| (&*grant.id, grant.source, grant.revoked.is_some()))
            .collect();
        assert_eq!(shown, [("file:a", Origin::File, true), ("g-s", Origin::Store, false)]);
    }

    #[test]
    fn grants_of_the_file_show_their_last_use() {
        let used = store::GrantUse { id: "file:a".into(), at: Timestamp::UNIX_EPOCH };
        let snapshot = Snapshot { uses: vec![used], ..Snapshot::default() };
        let text = "grants: [{ label: a, token: env:A }, { label: b, token: env:B }]";
        let view = model(text, &snapshot);
        let shown: Vec<_> = view.grants.iter().map(|grant| grant.last_use.as_deref()).collect();
        assert_eq!(shown, [Some("1970-01-01T00:00:00Z"), None]);
    }

    #[test]
    fn a_revoked_person_of_the_file_is_shown_once() {
        let people = vec![stored_person("duty", toolgate_audit::Hash::default(), true)];
        let snapshot = Snapshot { people, ..Snapshot::default() };
        let view = model("people: [{ name: duty, token: env:A, roles: [viewer] }]", &snapshot);
        let shown: Vec<_> = view
            .people
            .iter()
            .map(|person| (&*person.id, person.source, person.revoked.is_some()))
            .collect();
        assert_eq!(shown, [("admin", Origin::Data, false), ("file:duty", Origin::File, true)]);
    }

    #[test]
    fn a_policy_that_is_not_active_is_broken_and_the_built_in_one_is_listed() {
        let stored = store::PolicyVersion {
            name: "bad".into(),
            version: 3,
            document: "?".into(),
            created: Timestamp::UNIX_EPOCH,
        };
        let snapshot = Snapshot { policies: vec![stored], ..Snapshot::default() };
        let view = model("", &snapshot);
        let shown: Vec<_> = view
            .policies
            .iter()
            .map(|policy| (&*policy.item.name, policy.item.source, policy.item.state))
            .collect();
        let expected = [
            ("bad", Origin::Store, PolicyState::Broken),
            (BUILT_IN, Origin::BuiltIn, PolicyState::Broken),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_address_is_shown_as_the_file_has_it() {
        let view = model("servers: { s: { url: 'http://127.0.0.1:1/' } }", &Snapshot::default());
        let server = view.servers.first().unwrap();
        assert_eq!((server.source, server.transport), (Origin::File, "http"));
    }
}
