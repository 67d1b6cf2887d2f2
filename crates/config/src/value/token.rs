//! Tokens of grants, people and sessions: always references, kept only as their SHA-256.

use std::borrow::Cow;
use std::fmt;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use sha2::{Digest as _, Sha256};

use super::reference::{Reference, Scope, resolve, whole_reference};
use super::text::Scalar;
use crate::finding::Span;
use crate::problem::code;
use crate::reader::{At, Read, Reader};
use crate::syntax::Node;

/// The fewest characters of a token.
const LEAST: usize = 20;

/// The SHA-256 of a token. The token itself is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// The hash in the form of `token_sha256`.
    pub(crate) fn to_hex(self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// The 32 bytes, for a comparison in constant time.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:***")
    }
}

/// A token by reference, already hashed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenReference {
    pub(crate) hash: TokenHash,
    /// Whether the token can be part of a URL path unchanged.
    pub(crate) fits_path: bool,
}

impl Read for TokenReference {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Scalar(text) = Scalar::read(node, reader)?;
        let variable = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let written = match variable {
            Some(name) => format!("env:{}", name.strip_prefix("env:").unwrap_or(name)),
            None => text,
        };
        let Some(reference) = whole_reference(&written, Scope::Value) else {
            let hint = "write `env:NAME` or `file:PATH`, or `token_sha256: <64 hex digits>` where that is allowed";
            reader.error_hint(code::LITERAL_SECRET, node.span, "a token must be a reference", hint);
            return None;
        };
        let token = resolve(&reference, node.span, reader)?;
        check(&token, &reference, node.span, reader)
    }
}

fn check(
    token: &str,
    reference: &Reference<'_>,
    span: Span,
    reader: &mut Reader<'_>,
) -> Option<TokenReference> {
    let (Reference::Env(name) | Reference::File(name)) = reference;
    let fault = if token.chars().count() < LEAST {
        format!("the token in `{name}` is shorter than {LEAST} characters")
    } else if token.contains(|c: char| c.is_whitespace() || c.is_control()) {
        format!("the token in `{name}` has white space or control characters in it")
    } else {
        let fits_path = token.chars().all(|c| c.is_ascii_graphic() && !"/?#%\\".contains(c));
        return Some(TokenReference { hash: TokenHash::of(token), fits_path });
    };
    reader.error_hint(code::WEAK_SECRET, span, fault, "make one with `openssl rand -hex 32`");
    None
}

impl JsonSchema for TokenReference {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "TokenReference".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:[^/].*|file:/[^/].*|\$\{(env:)?[A-Za-z_][A-Za-z0-9_]*\})$" })
    }
}

/// 64 hexadecimal digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sha256Hex(pub(crate) TokenHash);

impl Read for Sha256Hex {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Scalar(text) = Scalar::read(node, reader)?;
        let hash = from_hex(&text);
        if hash.is_none() {
            let hint = "64 hexadecimal digits: `printf %s \"$TOKEN\" | sha256sum`";
            reader.error_hint(code::WEAK_SECRET, node.span, "not a SHA-256", hint);
        }
        hash.map(|hash| Self(TokenHash(hash)))
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}

impl JsonSchema for Sha256Hex {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Sha256Hex".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9A-Fa-f]{64}$" })
    }
}

/// The token of a grant or a person; `None` after a report.
pub(crate) fn one_token(
    token: Option<&At<TokenReference>>,
    hash: Option<&At<Sha256Hex>>,
    parent: Span,
    unreadable: &[&str],
    reader: &mut Reader<'_>,
) -> Option<At<TokenHash>> {
    match (token, hash) {
        (Some(token), None) => Some(At { value: token.value.hash, span: token.span }),
        (None, Some(hash)) => Some(At { value: hash.value.0, span: hash.span }),
        (Some(_), Some(hash)) => {
            let message = "`token` and `token_sha256` do not go together";
            reader.error_hint(code::CONFLICT, hash.span, message, "keep one of them");
            None
        }
        (None, None) => {
            if !unreadable.contains(&"token") && !unreadable.contains(&"token_sha256") {
                let hint = "add `token: env:NAME`";
                reader.error_hint(code::MISSING_KEY, parent, "`token` is missing", hint);
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_in_the_file_is_the_hash_of_the_token() {
        let hex = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
        assert_eq!(from_hex(hex).map(TokenHash), Some(TokenHash::of("abc")));
        for wrong in
            ["", "ab", hex.trim_start_matches('B'), &format!("{hex}00"), &hex.replace('B', "g")]
        {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{:?}", TokenHash::of("abc")), "sha256:***");
    }
}
