//! Which server a name on `/mcp` speaks of.
//!
//! Invariant: lists and calls ask the same function, so that what is listed is what is called.

use std::sync::Arc;

use toolgate_admission::list_kind::Kind;
use toolgate_upstream::link::Link;
use toolgate_upstream::names::server_of_name;

use crate::downstream::links::Links;

/// The server that `shown` speaks of, and what it calls it. Where two show the same name, the
/// first in the configured order has it. A server that was never heard is taken at its prefix.
pub(super) fn route<'a, 'n>(
    links: &'a Links,
    kind: Kind,
    shown: &'n str,
) -> Option<(&'a Arc<Link>, &'n str)> {
    let prefixed = prefixed(links, kind, shown);
    let before = prefixed.map_or(usize::MAX, |(index, _, _)| index);
    let bare = links.bare().take_while(|(index, _)| *index < before);
    for (_, link) in bare {
        let offer = link.server().offers.of(link.audience());
        if offer.is_some_and(|offer| offer.list(kind).has(shown)) {
            return Some((link, shown));
        }
    }
    prefixed.map(|(_, link, own)| (link, own))
}

fn prefixed<'a, 'n>(
    links: &'a Links,
    kind: Kind,
    shown: &'n str,
) -> Option<(usize, &'a Arc<Link>, &'n str)> {
    let (index, link) = links.find(server_of_name(shown)?)?;
    let naming = &link.server().naming;
    let own = naming.own_name(shown).filter(|_| !naming.is_bare())?;
    let offer = link.server().offers.of(link.audience());
    offer.is_none_or(|offer| offer.list(kind).has(own)).then_some((index, link, own))
}
