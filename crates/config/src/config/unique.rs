//! Names and tokens that occur once.

use crate::finding::Span;
use crate::problem::code;
use crate::reader::Reader;
use crate::settings::grants::{GrantConfig, Holder};
use crate::settings::people::PersonConfig;
use crate::value::TokenHash;

/// Labels and names are unique in their lists, tokens everywhere: a token must identify its holder.
pub(super) fn check_unique(
    grants: &[Holder<GrantConfig>],
    people: &[Holder<PersonConfig>],
    sessions: Vec<(TokenHash, Span)>,
    reader: &mut Reader<'_>,
) {
    let labels: Vec<_> = grants.iter().map(|grant| (&grant.value.label, grant.name)).collect();
    let names: Vec<_> = people.iter().map(|person| (&person.value.name, person.name)).collect();
    for (what, list) in [("grant", labels), ("person", names)] {
        for (label, span) in repeated(list) {
            let message = format!("{what} `{label}` is defined twice");
            reader.error_hint(code::NOT_UNIQUE, span, message, "give each its own name");
        }
    }
    let grants = grants.iter().map(|grant| (grant.value.token, grant.token));
    let people = people.iter().map(|person| (person.value.token, person.token));
    for (_, span) in repeated(grants.chain(people).chain(sessions).collect()) {
        let hint = "create another one with `openssl rand -hex 32`";
        reader.error_hint(code::NOT_UNIQUE, span, "this token is already used above", hint);
    }
}

/// The entries that equal an earlier one.
fn repeated<T: PartialEq + Copy>(list: Vec<(T, Span)>) -> Vec<(T, Span)> {
    let mut seen = Vec::new();
    let mut again = Vec::new();
    for (item, span) in list {
        if seen.contains(&item) {
            again.push((item, span));
        }
        seen.push(item);
    }
    again
}
