//! `grants`: tokens of agents, what they may reach, and their policy.

use jiff::Timestamp;
use toolgate_policy::Glob;
use toolgate_session::Reach;

use crate::finding::Span;
use crate::problem::code;
use crate::reader::{At, Reader, section};
use crate::suggest;
use crate::value::{Date, Pattern, Sha256Hex, Text, TokenHash, TokenReference, one_token};

/// A grant of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantConfig {
    /// Unique label.
    pub label: String,
    /// The hash of the token.
    pub token: TokenHash,
    /// Identity on whose behalf the agent acts.
    pub identity: Option<String>,
    /// Groups, for policies.
    pub groups: Vec<String>,
    /// The servers it may reach; `None` is all.
    pub servers: Option<Vec<String>>,
    /// The sessions it may reach.
    pub sessions: Reach,
    /// Its policy; without one every call is denied.
    pub policy: Option<String>,
    /// When the token expires.
    pub expires: Option<Timestamp>,
}

section! {
    foreign = &[("name", "did you mean `label`?"), ("policies", "a grant has one policy: `policy: NAME`")];
    /// A grant: what an agent with this token may reach.
    #[schemars(rename = "Grant", extend("oneOf" = [{"required": ["token"]}, {"required": ["token_sha256"]}]))]
    struct RawGrant {
        /// Unique label; `local` is reserved.
        #[schemars(required)]
        label: Text,
        /// The token, at least 20 characters, as `env:NAME` or `file:PATH`.
        token: TokenReference,
        /// SHA-256 of the token in hexadecimal, instead of `token`.
        token_sha256: Sha256Hex,
        /// Identity on whose behalf the agent acts.
        identity: Text,
        /// Groups of that identity, for policies.
        groups: Vec<Text>,
        /// Servers it may reach, by name. Default: all.
        servers: Vec<At<Text>>,
        /// Sessions it may reach. Default: all.
        sessions: RawSessionFilter,
        /// Name of its policy. Without one every call is denied.
        policy: Text,
        /// Expiry date: the token stops working at 00:00 UTC on this day.
        expires: Date,
    }
}

section! {
    foreign = &[("infobase", "did you mean `infobase_name`?"), ("kinds", "did you mean `kind`?")];
    /// Sessions that a grant may reach: those that match every list given here. Globs: `*`, `?`, `[a-z]`, `[!a]`.
    #[schemars(rename = "SessionFilter")]
    struct RawSessionFilter {
        /// Globs for the infobase name.
        infobase_name: Vec<Pattern>,
        /// Globs for the kind.
        kind: Vec<Pattern>,
        /// Globs for the session id.
        session_id: Vec<Pattern>,
    }
}

/// A grant or person with the positions of name and token, to check uniqueness.
pub(crate) struct Holder<T> {
    pub(crate) value: T,
    pub(crate) name: Span,
    pub(crate) token: Span,
}

/// Names that grants may refer to.
pub(crate) struct Known<'a> {
    pub(crate) servers: Vec<&'a str>,
    pub(crate) policies: Vec<&'a str>,
}

impl RawGrant {
    pub(crate) fn lower(
        self,
        span: Span,
        known: &Known<'_>,
        reader: &mut Reader<'_>,
    ) -> Option<Holder<GrantConfig>> {
        let label = reader.require(self.label, "label", span, &self.unreadable);
        if let Some(label) = &label {
            check_label(label, &["local", "stdio"], reader);
        }
        let (token, hash) = (self.token.as_ref(), self.token_sha256.as_ref());
        let token = one_token(token, hash, span, &self.unreadable, reader);
        for server in self.servers.iter().flat_map(|at| &at.value) {
            check_known("server", server, &known.servers, reader);
        }
        match &self.policy {
            Some(policy) => check_known("policy", policy, &known.policies, reader),
            None if self.unreadable.contains(&"policy") => {}
            None => {
                let message = "a grant without a policy: every call is denied".to_owned();
                let hint = "add `policy: NAME`; the policy `recommended` is built in".to_owned();
                let span = label.as_ref().map_or(span, |label| label.span);
                reader.warn(code::NO_POLICY, span, message, hint);
            }
        }
        let (label, token) = (label?, token?);
        let (name, token_at) = (label.span, token.span);
        let value = GrantConfig {
            label: label.value.0,
            token: token.value,
            identity: self.identity.map(|at| at.value.0),
            groups: self
                .groups
                .into_iter()
                .flat_map(|at| at.value)
                .map(|Text(group)| group)
                .collect(),
            servers: self.servers.map(|at| at.value.into_iter().map(|name| name.value.0).collect()),
            sessions: self.sessions.map(|at| at.value.lower()).unwrap_or_default(),
            policy: self.policy.map(|at| at.value.0),
            expires: self.expires.map(|at| at.value.0),
        };
        Some(Holder { value, name, token: token_at })
    }
}

impl RawSessionFilter {
    fn lower(self) -> Reach {
        Reach {
            infobase_name: self.infobase_name.map(globs),
            kind: self.kind.map(globs),
            session_id: self.session_id.map(globs),
        }
    }
}

/// The globs of a list.
pub(crate) fn globs(list: At<Vec<Pattern>>) -> Vec<Glob> {
    list.value.into_iter().map(|Pattern(glob)| glob).collect()
}

/// Labels of grants and names of people: short, printable, and not reserved.
pub(crate) fn check_label(label: &At<Text>, taken: &[&str], reader: &mut Reader<'_>) {
    let Text(text) = &label.value;
    if taken.contains(&text.as_str()) {
        let message = format!("`{text}` is reserved");
        reader.error_hint(code::INVALID_NAME, label.span, message, "choose another name");
    } else if text.chars().count() > 64 || text.contains(char::is_control) || text.trim() != text {
        let hint = "at most 64 characters, no control characters, no leading or trailing space";
        reader.error_hint(code::INVALID_NAME, label.span, "not a valid name", hint);
    }
}

/// A name may also be defined in the store, so an unknown one is only a warning.
fn check_known(what: &str, name: &At<Text>, known: &[&str], reader: &mut Reader<'_>) {
    let Text(text) = &name.value;
    if known.contains(&text.as_str()) {
        return;
    }
    let hint = suggest::nearest(text, known.iter().copied()).map_or_else(
        || "it must be created with the CLI or API to take effect".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    reader.warn(code::UNKNOWN_NAME, name.span, format!("no {what} `{text}` in this file"), hint);
}
