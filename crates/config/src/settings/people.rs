//! `people`: named tokens for people.

use jiff::Timestamp;

use super::grants::{Holder, check_label};
use crate::finding::Span;
use crate::problem::code;
use crate::reader::{Reader, section};
use crate::role::Role;
use crate::value::{Date, Sha256Hex, Text, TokenHash, TokenReference, Word, one_token};

/// A person of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonConfig {
    /// Unique name.
    pub name: String,
    /// The hash of the token.
    pub token: TokenHash,
    /// Roles, at least one.
    pub roles: Vec<Role>,
    /// Groups, for approvals.
    pub groups: Vec<String>,
    /// When the token expires.
    pub expires: Option<Timestamp>,
}

section! {
    foreign = &[("role", "did you mean `roles: [viewer]`?"), ("label", "did you mean `name`?")];
    /// A person: a named token for the CLI and the admin API.
    #[schemars(rename = "Person", extend("oneOf" = [{"required": ["token"]}, {"required": ["token_sha256"]}]))]
    struct RawPerson {
        /// Unique name; `admin` is reserved.
        #[schemars(required)]
        name: Text,
        /// The token, at least 20 characters, as `env:NAME` or `file:PATH`.
        token: TokenReference,
        /// SHA-256 of the token in hexadecimal, instead of `token`.
        token_sha256: Sha256Hex,
        /// `viewer`, `approver` (answers approvals), `policy_manager` (changes policies), `admin` (everything).
        #[schemars(required, length(min = 1))]
        roles: Vec<Word<Role>>,
        /// Groups, for policies that name approvers.
        groups: Vec<Text>,
        /// Expiry date: the token stops working at 00:00 UTC on this day.
        expires: Date,
    }
}

impl RawPerson {
    pub(crate) fn lower(self, span: Span, reader: &mut Reader<'_>) -> Option<Holder<PersonConfig>> {
        let name = reader.require(self.name, "name", span, &self.unreadable);
        if let Some(name) = &name {
            check_label(name, &["admin"], reader);
        }
        let (token, hash) = (self.token.as_ref(), self.token_sha256.as_ref());
        let token = one_token(token, hash, span, &self.unreadable, reader);
        let roles = reader.require(self.roles, "roles", span, &self.unreadable);
        if let Some(roles) = roles.as_ref().filter(|roles| reader.is_empty_list(roles.span)) {
            let message = "a person without roles can do nothing";
            reader.error_hint(code::INVALID_VALUE, roles.span, message, "give at least `viewer`");
        }
        let (name, token, roles) = (name?, token?, roles?);
        let (name_at, token_at) = (name.span, token.span);
        let value = PersonConfig {
            name: name.value.0,
            token: token.value,
            roles: roles.value.into_iter().map(|Word(role)| role).collect(),
            groups: self
                .groups
                .into_iter()
                .flat_map(|at| at.value)
                .map(|Text(group)| group)
                .collect(),
            expires: self.expires.map(|at| at.value.0),
        };
        Some(Holder { value, name: name_at, token: token_at })
    }
}
