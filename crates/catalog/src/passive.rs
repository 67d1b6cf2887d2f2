//! Statements in the passive: `all rows will be deleted`, `the card is charged`, `cannot be undone`.
//!
//! A statement about what happens elsewhere implies nothing: `whether a file is deleted`, `files that
//! are deleted`, `items are deleted after 30 days`.

use crate::class::Class;
use crate::lexicon::Nouns;
use crate::signal::What;

/// What a sentence has said so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passive {
    /// For how many words a participle completes the passive.
    open: u8,
    is_modal: bool,
    /// Whether the sentence asks: `shows what would be deleted`.
    asks: bool,
    /// Whether the clause is a condition: `when a file is deleted`.
    is_condition: bool,
    /// A statement that the next word may weaken: `is deleted after 30 days`.
    pending: Option<(What, Class)>,
}

impl Passive {
    /// Whether the sentence asks or reports a question.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// Takes the next word; `after_verb` if it comes directly behind one. Returns a statement that is
    /// complete.
    pub(crate) fn word(
        &mut self,
        word: &str,
        roles: Nouns,
        before: Nouns,
        is_negated: bool,
        after_verb: bool,
    ) -> Option<(What, Class)> {
        let complete = self.pending.take().filter(|_| !is_deferred(word));
        let mut stated = None;
        if self.open > 0 && !is_negated && !self.asks {
            let statement = statement(roles);
            if self.is_modal {
                stated = statement;
            } else {
                self.pending = statement;
            }
        }
        // `Checks if a file is deleted.`
        self.asks |= roles.has(Nouns::QUESTION) || (word == "if" && after_verb);
        self.is_condition |= is_condition(word);
        if roles.has(Nouns::MODAL) {
            (self.open, self.is_modal) = (4, true);
        } else if is_passive(word, before) && !self.is_condition {
            (self.open, self.is_modal) = (3, false);
        } else if roles.has(Nouns::PASSIVE) && self.open > 0 {
            self.open = 2;
        } else if !roles.has(Nouns::JOIN) {
            self.open = self.open.saturating_sub(1);
        }
        complete.or(stated)
    }

    /// Takes a comma, which ends conditions and questions.
    pub(crate) fn comma(&mut self) -> Option<(What, Class)> {
        let complete = self.pending.take();
        *self = Self::default();
        complete
    }
}

fn statement(roles: Nouns) -> Option<(What, Class)> {
    if roles.has(Nouns::LOST) {
        Some((What::Lost, Class::Destructive))
    } else if roles.has(Nouns::CHARGED) {
        Some((What::Charged, Class::Financial))
    } else {
        None
    }
}

/// Words behind a participle that put it off.
fn is_deferred(word: &str) -> bool {
    matches!(
        word,
        "after" | "when" | "if" | "automatically" | "within" | "once" | "unless" | "from" | "по"
    )
}

fn is_condition(word: &str) -> bool {
    matches!(
        word,
        "if" | "when"
            | "once"
            | "unless"
            | "until"
            | "after"
            | "before"
            | "while"
            | "если"
            | "когда"
    )
}

/// `the file is deleted`, `it gets deleted`; `files that are deleted` are only a kind of file.
fn is_passive(word: &str, before: Nouns) -> bool {
    match word {
        "is" | "are" => !before.has(Nouns::RELATIVE),
        "gets" => before.has(Nouns::DETERMINER),
        _ => false,
    }
}
