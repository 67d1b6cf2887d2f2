//! Which server a name on `/mcp` belongs to.
//!
//! Invariant: lists and calls use the same function, so that a listed name is the one that is called.
//! Invariant: a name that begins with `<server>__` belongs to that server. Another server with bare
//! names never gets it, in any spelling that folds to it.

use std::sync::Arc;

use toolgate_admission::list_kind::Kind;
use toolgate_admission::reserved::TOOLGATE;
use toolgate_json::fold;
use toolgate_upstream::link::Link;
use toolgate_upstream::names::server_of_name;

use super::builtin;
use crate::downstream::links::Links;

/// The server of the shown name, and its own name. If two servers show the same bare name, the first
/// in the configured order gets it. A server that was never listed is found by its prefix.
pub(super) fn route<'a, 'n>(
    links: &'a Links,
    kind: Kind,
    shown: &'n str,
) -> Option<(&'a Arc<Link>, &'n str)> {
    prefixed(links, kind, shown).or_else(|| {
        let mut bare = links.bare().filter(|link| owner_of(links, link, kind, shown).is_none());
        let has = |link: &&Arc<Link>| {
            let advertised = link.server().list_cache.of(link.client_profile());
            advertised.is_some_and(|advertised| advertised.list(kind).has(shown))
        };
        bare.find(has).map(|link| (link, shown))
    })
}

/// The owner of a bare name of `link`, by its prefix or by what it folds to: another server, or
/// toolgate itself.
pub(super) fn owner_of<'a>(
    links: &'a Links,
    link: &Arc<Link>,
    kind: Kind,
    shown: &str,
) -> Option<&'a str> {
    let folded = fold(shown);
    if kind == Kind::Tools && builtin::TABLE.iter().any(|one| one.name == folded) {
        return Some(TOOLGATE);
    }
    let (_, owner) = links.find(server_of_name(&folded)?)?;
    (!Arc::ptr_eq(owner, link)).then(|| owner.server().name())
}

fn prefixed<'a, 'n>(
    links: &'a Links,
    kind: Kind,
    shown: &'n str,
) -> Option<(&'a Arc<Link>, &'n str)> {
    let (_, link) = links.find(server_of_name(shown)?)?;
    let naming = &link.server().naming;
    let own = naming.own_name(shown).filter(|_| !naming.is_bare())?;
    let advertised = link.server().list_cache.of(link.client_profile());
    advertised.is_none_or(|advertised| advertised.list(kind).has(own)).then_some((link, own))
}
