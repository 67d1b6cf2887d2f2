//! The links of one agent session: one to its server, or one to each.
//!
//! Invariant: never changed, only replaced as a whole, so that a reader sees one state.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_upstream::link::Link;

/// Links in the configured order of their servers.
#[derive(Default)]
pub(crate) struct Links {
    order: Vec<Arc<Link>>,
    by_name: HashMap<String, usize>,
    /// The indexes of those with bare names.
    bare: Vec<usize>,
}

impl Links {
    pub(crate) fn new(order: Vec<Arc<Link>>) -> Self {
        let place = |(index, link): (usize, &Arc<Link>)| (link.server().name().to_owned(), index);
        let by_name = order.iter().enumerate().map(place).collect();
        let is_bare = |index: &usize| {
            order.get(*index).is_some_and(|link: &Arc<Link>| link.server().naming.is_bare())
        };
        let bare = (0..order.len()).filter(is_bare).collect();
        Self { order, by_name, bare }
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<Link>> {
        self.order.iter()
    }

    pub(crate) fn first(&self) -> Option<&Arc<Link>> {
        self.order.first()
    }

    /// The link to the server of that name, and its place in the order.
    pub(crate) fn find(&self, server: &str) -> Option<(usize, &Arc<Link>)> {
        let index = *self.by_name.get(server)?;
        Some((index, self.order.get(index)?))
    }

    /// The links with bare names, in the configured order.
    pub(crate) fn bare(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.bare.iter().filter_map(|index| self.order.get(*index))
    }

    /// Whether some names are bare, so that names can collide.
    pub(crate) fn may_collide(&self) -> bool {
        !self.bare.is_empty()
    }

    pub(crate) fn holds(&self, link: &Arc<Link>) -> bool {
        self.order.iter().any(|other| Arc::ptr_eq(other, link))
    }
}
