//! Where the rule of a row stands: in which document, on which line.
//!
//! A row says which rule decided, and the hash of the policy that it was a rule of. The documents
//! of today are looked through for that hash: the files and the text of the configuration, what is
//! kept in the data folder, the built-in policy.
//!
//! Invariant: a place is named only in a document with the very meaning that decided.

use std::path::Path;

use toolgate_audit::Draft;
use toolgate_config::PolicySource;
use toolgate_policy::{Known, Policy, RECOMMENDED};
use toolgate_store_sqlite::ReadOnlyStore;

use crate::args::ShowArgs;
use crate::config_source::Source as ConfigSource;
use crate::policy::{Source, place};

const CHANGED: &str = "; that policy has changed since, so where it stood is not known";

/// The documents of today.
pub(super) struct Documents(Vec<Document>);

struct Document {
    name: String,
    hash: String,
    source: Source,
}

impl Documents {
    /// Those that can be read now; others have no places.
    pub(super) fn read(args: &ShowArgs, folder: &Path) -> Self {
        let mut all = Self(Vec::new());
        if let Some(path) = &args.policy
            && let Ok(source) = Source::read(path)
        {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            all.add(&name, source, None);
        }
        let config = ConfigSource::find(args.data.config.as_deref());
        let configured = config.load_without_secrets().map(|config| config.policies);
        for policy in configured.unwrap_or_default() {
            let source = match &policy.source {
                PolicySource::File(path) => Source::read(path).ok(),
                // Its lines are those of the configuration.
                PolicySource::Inline(text) => config
                    .file()
                    .map(|file| Source { file: file.display().to_string(), text: text.clone() }),
            };
            if let Some(source) = source {
                all.add(&policy.name, source, None);
            }
        }
        let kept = ReadOnlyStore::open(folder).ok().flatten().and_then(|mut it| it.snapshot().ok());
        for kept in kept.iter().flat_map(|snapshot| &snapshot.policies) {
            let file = format!("policy {} version {}", kept.name, kept.version);
            all.add(&kept.name, Source { file, text: kept.document.to_string() }, None);
        }
        let built_in = || Source { file: "recommended".to_owned(), text: RECOMMENDED.to_owned() };
        all.add("recommended", built_in(), None);
        // As it is in force while there is no grant; the line is that of the document itself.
        all.add("recommended", built_in(), Some(&format!("mode: shadow\n{RECOMMENDED}")));
        all
    }

    /// `means`: the text that is in force, if it is not the one that is shown.
    fn add(&mut self, name: &str, source: Source, means: Option<&str>) {
        let text = means.unwrap_or(&source.text);
        if let Some(policy) = Policy::load(name, text, &Known::default()).policy {
            let hash = policy.hash().to_owned();
            self.0.push(Document { name: name.to_owned(), hash, source });
        }
    }

    /// What is to be said behind the rule of a row.
    pub(super) fn place(&self, row: &Draft) -> String {
        let (Some(rule), Some(name)) = (&row.rule, &row.policy) else { return String::new() };
        let hash = row.policy_hash.map(|hash| hash.to_string()).unwrap_or_default();
        let of_name = || self.0.iter().filter(|document| *document.name == **name);
        match of_name().find(|document| document.hash == hash) {
            Some(document) => place(&document.source, rule),
            None if of_name().next().is_some() => CHANGED.to_owned(),
            None => String::new(),
        }
    }
}
