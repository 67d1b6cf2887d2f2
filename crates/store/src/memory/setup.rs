//! Changes of the setup, in memory.

use std::sync::Arc;

use jiff::Timestamp;

use super::Data;
use crate::{Change, Document, PolicyVersion, backend::ChangeOutcome};

impl Data {
    pub(super) fn make(&mut self, change: &Change, now: Timestamp) -> ChangeOutcome {
        match change {
            Change::PutGrant(grant) => {
                let mut others = self.grants.values().filter(|other| other.id != grant.id);
                if others.any(|other| other.label == grant.label) {
                    return ChangeOutcome::NameTaken(grant.label.to_string());
                }
                self.grants.insert(Arc::clone(&grant.id), (**grant).clone());
            }
            Change::RevokeGrant(id) => match self.grants.get_mut(id) {
                Some(grant) => grant.revoked = grant.revoked.or(Some(now)),
                None => return ChangeOutcome::Unknown(id.to_string()),
            },
            Change::PutPerson(person) => {
                let mut others = self.people.values().filter(|other| other.id != person.id);
                if others.any(|other| other.name == person.name) {
                    return ChangeOutcome::NameTaken(person.name.to_string());
                }
                self.people.insert(Arc::clone(&person.id), (**person).clone());
            }
            Change::RevokePerson(id) => match self.people.get_mut(id) {
                Some(person) => person.revoked = person.revoked.or(Some(now)),
                None => return ChangeOutcome::Unknown(id.to_string()),
            },
            Change::PutPolicy { name, document } => {
                let versions = self.versions.entry(Arc::clone(name)).or_default();
                let version = versions.last().map_or(0, |last| last.version) + 1;
                let (name, document) = (Arc::clone(name), Arc::clone(document));
                let policy = PolicyVersion { name, version, document, created: now };
                versions.push(policy.clone());
                self.policies.insert(Arc::clone(&policy.name), policy);
            }
            Change::RemovePolicy(name) => {
                return gone(name, self.policies.remove(name).is_some());
            }
            Change::Freeze(freeze) => {
                let same = self.freezes.values().find(|other| other.what == freeze.what);
                if let Some(same) = same {
                    return ChangeOutcome::AlreadyFrozen(same.id.to_string());
                }
                self.freezes.insert(Arc::clone(&freeze.id), freeze.clone());
            }
            Change::Unfreeze(id) => return gone(id, self.freezes.remove(id).is_some()),
            // The engine makes it.
            Change::Answer { approval, .. } => {
                return ChangeOutcome::Unknown(approval.to_string());
            }
            Change::Except(exception) => {
                self.exceptions.insert(Arc::clone(&exception.id), (**exception).clone());
            }
            Change::EndException(id) => return gone(id, self.exceptions.remove(id).is_some()),
            Change::AcceptClock => {
                let from = std::mem::replace(&mut self.state.mark, now);
                self.ledger.rebase(from, now);
                self.approvals.rebase(from, now);
                for open in self.open.values_mut() {
                    open.waits = open.waits.map(|_| now);
                }
            }
            Change::PutDocument(kept) => {
                let key = (Arc::clone(&kept.space), Arc::clone(&kept.key));
                self.kept.insert(key, kept.clone());
            }
            Change::RemoveDocument(space, key) => {
                let kept = (Arc::clone(space), Arc::clone(key));
                return gone(key, self.kept.remove(&kept).is_some());
            }
            Change::ReplaceDocuments { space, keep, forget } => {
                for key in forget {
                    self.kept.remove(&(Arc::clone(space), Arc::clone(key)));
                }
                for (key, json) in keep {
                    let (space, key) = (Arc::clone(space), Arc::clone(key));
                    let kept = Document { space, key, json: Arc::clone(json) };
                    self.kept.insert((Arc::clone(&kept.space), Arc::clone(&kept.key)), kept);
                }
            }
        }
        ChangeOutcome::Made
    }
}

fn gone(name: &str, was_there: bool) -> ChangeOutcome {
    if was_there { ChangeOutcome::Made } else { ChangeOutcome::Unknown(name.to_owned()) }
}
