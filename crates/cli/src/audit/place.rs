//! The position of the rule of a row: document, line and column.
//!
//! A row has the rule and the hash of its policy. The current documents are searched for that hash:
//! policy files, the configuration, the data folder, the built-in policy.
//!
//! Invariant: a position is printed only for a document with the hash of the row.

use std::path::Path;

use toolgate_audit::Draft;
use toolgate_config::{Config, PolicySource};
use toolgate_control::SERVERS;
use toolgate_policy::{Known, Policy, RECOMMENDED};
use toolgate_store_sqlite::ReadOnlyStore;

use crate::args::ShowArgs;
use crate::config_source::Source as ConfigSource;
use crate::policy::{Source, place};

const CHANGED: &str = "; the policy has changed since, so its line is unknown";

/// The current policy documents.
pub(super) struct Documents {
    list: Vec<Document>,
    /// The servers, on which the meaning of keys such as `server__tool` depends.
    known: Known,
}

struct Document {
    name: String,
    hash: String,
    source: Source,
}

impl Documents {
    /// The documents that can be read.
    pub(super) fn read(args: &ShowArgs, folder: &Path) -> Self {
        let config = ConfigSource::find(args.data.config.as_deref());
        let config_file = config.load_without_secrets().ok();
        let mut store = ReadOnlyStore::open(folder).ok().flatten();
        let mut all = Self { list: Vec::new(), known: known(config_file.as_ref(), store.as_mut()) };
        if let Some(path) = &args.policy
            && let Ok(source) = Source::read(path)
        {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            all.add(&name, source, None);
        }
        for policy in config_file.map(|config| config.policies).unwrap_or_default() {
            let source = match &policy.source {
                PolicySource::File(path) => Source::read(path).ok(),
                // Its lines are those of the configuration file.
                PolicySource::Inline(text) => config
                    .file()
                    .map(|file| Source { file: file.display().to_string(), text: text.clone() }),
            };
            if let Some(source) = source {
                all.add(&policy.name, source, None);
            }
        }
        let kept = store.as_mut().and_then(|store| store.snapshot().ok());
        for kept in kept.iter().flat_map(|snapshot| &snapshot.policies) {
            let file = format!("policy {} version {}", kept.name, kept.version);
            all.add(&kept.name, Source { file, text: kept.document.to_string() }, None);
        }
        let built_in = || Source { file: "recommended".to_owned(), text: RECOMMENDED.to_owned() };
        all.add("recommended", built_in(), None);
        // As in local mode; lines are those of the document itself.
        all.add("recommended", built_in(), Some(&format!("mode: shadow\n{RECOMMENDED}")));
        all
    }

    /// `active`: the active text, if it differs from the one shown.
    fn add(&mut self, name: &str, source: Source, active: Option<&str>) {
        let text = active.unwrap_or(&source.text);
        if let Some(policy) = Policy::load(name, text, &self.known).policy {
            let hash = policy.hash().to_owned();
            self.list.push(Document { name: name.to_owned(), hash, source });
        }
    }

    /// The text after the rule of a row.
    pub(super) fn place(&self, row: &Draft) -> String {
        let (Some(rule), Some(name)) = (&row.rule, &row.policy) else { return String::new() };
        let hash = row.policy_hash.map(|hash| hash.to_string()).unwrap_or_default();
        let of_name = || self.list.iter().filter(|document| *document.name == **name);
        match of_name().find(|document| document.hash == hash) {
            Some(document) => place(&document.source, rule),
            None if of_name().next().is_some() => CHANGED.to_owned(),
            None => String::new(),
        }
    }
}

/// The servers of the configuration and of the store.
fn known(config: Option<&Config>, store: Option<&mut ReadOnlyStore>) -> Known {
    let configured = config.into_iter().flat_map(|config| &config.servers);
    let mut servers: Vec<String> = configured.map(|server| server.name.clone()).collect();
    let added = store.and_then(|store| store.documents(SERVERS).ok()).unwrap_or_default();
    servers.extend(added.iter().map(|added| added.key.to_string()));
    Known { servers, ..Known::default() }
}
