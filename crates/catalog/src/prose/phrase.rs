//! The object of a verb in prose, and what the verb means with it.

use crate::class::Class;
use crate::lexicon::{Nouns, Verb, means, takes_money, trades};
use crate::signal::What;

/// The object of a verb, as far as it was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Phrase {
    pub(super) open: bool,
    /// Whether its verb follows one for reading at once: `retrieves and formats`.
    pub(super) shows: bool,
    head: Nouns,
    pub(super) all: Nouns,
}

impl Phrase {
    pub(super) fn new(open: bool, shows: bool) -> Self {
        Self { open, shows, ..Self::default() }
    }

    pub(super) fn take(&mut self, roles: Nouns) {
        if !self.open || roles.has(Nouns::STOP) {
            return;
        }
        self.head = roles;
        self.all = self.all.and(roles);
    }

    pub(super) fn judge(&self, verb: Verb) -> (What, Class) {
        let other = Nouns::NOT_MONEY.and(Nouns::QUERY).and(Nouns::DATABASE);
        let money = self.head.has(Nouns::MONEY) && !self.all.has(other);
        let money = money || (!verb.base.is_ascii() && self.all.has(Nouns::MONEY));
        let plain = (What::Verb(verb.base, verb.class), verb.class);
        if let Some(class) = means(verb.base, self.head) {
            return (What::Verb(verb.base, class), class);
        }
        match verb.class {
            Class::Read if takes_money(verb.base, self.all) => {
                (What::Money(verb.base), Class::Financial)
            }
            Class::Read if verb.base == "query" && self.all.has(Nouns::DATABASE) => {
                (What::AnyQuery, Class::Execute)
            }
            Class::Financial if verb.base == "transfer" && self.all.has(Nouns::NOT_MONEY) => {
                (What::Verb(verb.base, Class::Write), Class::Write)
            }
            Class::Read if verb.base == "select" && self.head.has(Nouns::ELEMENT) => {
                (What::Verb(verb.base, Class::Write), Class::Write)
            }
            Class::Read | Class::Financial => plain,
            _ if money || trades(verb.base, self.head, self.all) => {
                (What::Money(verb.base), Class::Financial)
            }
            // `performs an HTTP POST request`
            Class::Write
                if self.head.has(Nouns::REQUEST)
                    && matches!(verb.base, "post" | "put" | "patch") =>
            {
                (What::AnyQuery, Class::Execute)
            }
            Class::Write
                if self.all.has(Nouns::RECIPE) && matches!(verb.base, "apply" | "build") =>
            {
                (What::RunsCode(verb.base), Class::Execute)
            }
            Class::Write
                if self.all.has(Nouns::TEXT)
                    && matches!(verb.base, "generate" | "compose" | "draft") =>
            {
                (What::Verb(verb.base, Class::Read), Class::Read)
            }
            Class::Destructive
                if self.head.has(Nouns::LIGHT)
                    && matches!(verb.base, "remove" | "reset" | "clear" | "clean") =>
            {
                (What::Verb(verb.base, Class::Write), Class::Write)
            }
            _ => plain,
        }
    }
}
