//! What a description implies: the verbs that its sentences predicate of the tool.
//!
//! A verb is believed where a sentence says what the tool does: at its start (`Deletes a file`,
//! `This tool will delete`), in a list of verbs (`Create, run and see`), after `it`, `will`, `can be
//! used to`. A verb elsewhere is about something else (`Finds orders to delete`). Negated verbs
//! imply nothing.
//!
//! Invariant: linear in the text, of which [`MAX`] bytes are read.

mod phrase;

use smallvec::SmallVec;

use self::phrase::Phrase;
use crate::class::Class;
use crate::lexicon::{Form, Kind, Nouns, Verb, nouns, phrasal, verb};
use crate::passive::Passive;
use crate::prose_words::{Token, Tokens};
use crate::signal::What;

/// How many bytes of a text are read.
pub(crate) const MAX: usize = 32 * 1024;

/// What a text implies.
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
#[derive(Clone, Debug, Default)]
pub(crate) struct ProseFinding {
    /// The class of the verbs of its first sentence.
    pub(crate) lead: Option<Class>,
    /// The highest class of the verbs of all sentences.
    pub(crate) class: Option<Class>,
    /// Whether only a verb whose effect depends on its object was found.
    pub(crate) is_vague: bool,
    /// Whether only words for writing were found that may be nouns as well.
    pub(crate) may_be_noun: bool,
    /// Whether a verb has a query as its object.
    pub(crate) is_query: bool,
    /// Whether the text states that it only reads.
    pub(crate) reads_only: bool,
    /// Whether other runs than of queries were found.
    pub(crate) runs_more: bool,
    /// The highest of the critical verbs that the text mentions anywhere: `a tool for deleting files`.
    pub(crate) mentioned: Option<(&'static str, Class)>,
    /// Whether all verbs that were found only carry another one: `provides a way to`.
    pub(crate) only_carries: bool,
    /// Whether the text states that the effect cannot be undone.
    pub(crate) is_irreversible: bool,
    /// What led to it.
    pub(crate) signals: SmallVec<[(What, u8); 4]>,
    /// Roles of all words of the text.
    pub(crate) roles: Nouns,
}

/// Judges a text.
pub(crate) fn find(text: &str) -> ProseFinding {
    let text = text.get(..text.floor_char_boundary(MAX)).unwrap_or_default();
    let text = if text.is_ascii() { text.to_ascii_lowercase() } else { text.to_lowercase() };
    let mut reader = Reader::default();
    let mut tokens = Tokens::of(&text);
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => {
                let (follower, is_label) = (tokens.peek_word(), tokens.is_at_colon());
                reader.word(word, follower, is_label);
            }
            Token::Comma => reader.comma(),
            Token::End => reader.end(),
        }
    }
    reader.end();
    reader.found
}

/// The state within one sentence.
#[expect(clippy::struct_excessive_bools, reason = "independent states")]
#[derive(Debug, Default)]
struct Reader {
    found: ProseFinding,
    sentence: usize,
    words: usize,
    /// Whether the next word may be the verb of the sentence.
    expects: bool,
    /// Whether the next word is a noun, because an article came before it.
    after_article: bool,
    /// Words since the last negation.
    negated: u8,
    /// The last verb that was believed, and whether nothing came after it.
    last: Option<(Verb, bool)>,
    /// The noun phrase behind the last verb.
    phrase: Phrase,
    before: Nouns,
    /// Whether `to` follows a word like `used`.
    may_use: bool,
    passive: Passive,
    read_word: u8,
    /// Whether a comma came directly before, or one and adverbs.
    after_comma: bool,
    /// Whether the last verb carries the next: `performs a search`.
    carries: bool,
}

impl Reader {
    /// `is_label`: a colon follows, so a word that may be a noun is one: `Tip: …`, `Note: …`.
    fn word(&mut self, word: &str, follower: Option<&str>, is_label: bool) {
        if self.words == 0 {
            self.expects = true;
        }
        self.words += 1;
        let mut roles = nouns(word);
        let found = phrasal(word, follower).or_else(|| verb(word));
        if roles == Nouns::default() && found.is_none() && is_adverb(word) {
            roles = Nouns::FILLER;
        }
        self.note(word, roles);
        if let Some(verb) = found {
            self.mention(&verb);
        }
        let found = found.filter(|verb| !(is_label && verb.kind == Kind::Both));
        if let Some(verb) = found.filter(|verb| self.is_predicate(verb, roles, follower)) {
            self.predicate(verb);
        } else {
            self.step(word, roles);
        }
        self.after_comma &= roles.has(Nouns::FILLER);
        self.negated = self.negated.saturating_sub(1);
        if roles.has(Nouns::NEGATION) {
            self.negated = 3;
        }
        self.before = roles;
    }

    fn comma(&mut self) {
        self.close_phrase();
        if let Some((what, class)) = self.passive.comma() {
            self.vote(what, class, 7);
        }
        self.after_comma = self.words > 0;
        self.carries = false;
        // Only a list of verbs continues after a comma: `Create, run, and see`.
        self.expects = matches!(self.last, Some((_, true))) || self.words == 0;
        self.negated = 0;
    }

    fn end(&mut self) {
        self.comma();
        if self.words > 0 {
            self.sentence += 1;
        }
        self.words = 0;
        self.last = None;
        self.expects = false;
        self.after_article = false;
        self.negated = 0;
        self.may_use = false;
        self.after_comma = false;
        self.read_word = 0;
        self.before = Nouns::default();
    }

    /// Facts that do not depend on grammar.
    fn note(&mut self, word: &str, roles: Nouns) {
        self.found.roles = self.found.roles.and(roles);
        // `read-only`, `read mode`, `только чтение`
        let is_read = matches!(word, "read" | "readonly" | "только" | "select");
        let ends = matches!(word, "only" | "mode" | "чтение" | "чтения" | "readonly");
        if (ends && (self.read_word > 0 || word == "readonly")) || word == "select" {
            self.found.reads_only = true;
        }
        self.read_word = if is_read { 2 } else { self.read_word.saturating_sub(1) };
        if roles.has(Nouns::UNDONE) && self.negated > 0 || is_final(word) && self.negated == 0 {
            self.found.is_irreversible = true;
        }
        let after_verb = self.last.is_some_and(|(_, direct)| direct);
        if let Some((what, class)) =
            self.passive.word(word, roles, self.before, self.negated > 0, after_verb)
        {
            self.vote(what, class, 7);
        }
    }

    /// Remembers verbs of critical classes, wherever they are.
    fn mention(&mut self, verb: &Verb) {
        let is_meant = verb.kind == Kind::Verb || verb.form == Form::Gerund;
        let is_critical = matches!(verb.class, Class::Destructive | Class::Financial);
        if is_meant && is_critical && self.negated == 0 && !self.passive.asks() {
            let own = self.found.mentioned;
            let higher = own.is_none_or(|(_, own)| own.raised(verb.class) != own);
            self.found.mentioned = if higher { Some((verb.base, verb.class)) } else { own };
        }
    }

    /// Whether this verb says what the tool does.
    fn is_predicate(&self, verb: &Verb, roles: Nouns, follower: Option<&str>) -> bool {
        // `Credits the account`, not `Credits left`.
        let may_be_noun = matches!(verb.base, "credit" | "debit");
        if self.after_article || (may_be_noun && !stands_alone(verb, follower)) {
            return false;
        }
        // `, deleting extra files`, `by executing the code`
        let is_high = verb.class.raised(Class::Execute) == verb.class;
        let is_means = self.after_comma || self.before.has(Nouns::BY);
        if verb.form == Form::Gerund && verb.kind == Kind::Verb && is_high && is_means {
            return true;
        }
        // `shows what a delete would remove`
        if self.passive.asks() && self.before.has(Nouns::MODAL) {
            return false;
        }
        let filler = roles.has(Nouns::FILLER) && self.words <= 2 && verb.class != Class::Read;
        if filler && self.expects {
            return false;
        }
        if self.expects {
            return match self.last {
                Some((last, _)) if self.carries => carries(last.base),
                Some((last, direct)) => {
                    same_form(&last, verb) && (direct || stands_alone(verb, follower))
                }
                None => true,
            };
        }
        // `it deletes`, `which deletes`; and unmistakable verbs anywhere.
        let unmistakable = verb.kind == Kind::Verb && verb.form == Form::Third && is_high;
        unmistakable && !self.before.has(Nouns::DETERMINER)
    }

    fn predicate(&mut self, verb: Verb) {
        self.close_phrase();
        if self.negated > 0 {
            self.found.signals.push((What::Negated(verb.base), 0));
        } else {
            let reads = |(last, direct): &(Verb, bool)| *direct && last.class == Class::Read;
            let shows = verb.base == "format" && self.last.as_ref().is_some_and(reads);
            // The next verb says what is performed.
            let open = !carries(verb.base);
            self.phrase = Phrase::new(open, shows);
            self.last = Some((verb, true));
        }
        self.carries = carries(verb.base);
        self.expects = self.carries;
        self.may_use = false;
    }

    fn step(&mut self, word: &str, roles: Nouns) {
        let joins = roles.has(Nouns::JOIN);
        if let Some((_, direct)) = &mut self.last {
            *direct &= joins;
        }
        if joins {
            self.close_phrase();
            self.expects |= self.last.is_some() || self.words == 1;
            return;
        }
        let goes_on = self.words == 1 || self.expects;
        let carried = self.carries && (roles.has(Nouns::DETERMINER) || word == "http");
        self.expects = goes_on && (roles.has(Nouns::FILLER) || carried);
        self.after_article = matches!(word, "the" | "a" | "an") && self.words <= 3 && !self.carries;
        if self.after_article && self.words == 1 {
            self.expects = true;
            self.after_article = false;
        }
        if roles.has(Nouns::MODAL) || matches!(word, "it" | "which" | "that") && self.words > 1 {
            self.expects = true;
        }
        if word == "to" && self.may_use {
            self.expects = true;
        }
        self.may_use = roles.has(Nouns::USED);
        self.phrase.take(roles);
        if roles.has(Nouns::STOP) {
            self.close_phrase();
        }
    }

    /// Judges the last verb, now that its object is known.
    fn close_phrase(&mut self) {
        if !std::mem::take(&mut self.phrase.open) {
            return;
        }
        let Some((verb, _)) = self.last else { return };
        let (what, class) = match self.phrase.judge(verb) {
            // What is read and formatted is a result, unless it is a disk.
            _ if self.phrase.shows && !self.phrase.all.has(Nouns::MEDIUM) => {
                (What::Verb(verb.base, Class::Read), Class::Read)
            }
            judged => judged,
        };
        // Later sentences instruct as often as they describe: `Set limit to 10.`
        let describes = self.sentence == 0
            || verb.form == Form::Third
            || class.raised(Class::Destructive) == class;
        // They also say how: `Handles various encodings.`
        let says_how = self.sentence > 0 && self.found.class.is_some();
        if !describes || (says_how && verb.kind == Kind::Vague && class == Class::Write) {
            return;
        }
        self.found.is_query |= self.phrase.all.has(Nouns::QUERY);
        self.found.runs_more |= class == Class::Execute && !self.phrase.all.has(Nouns::QUERY);
        let was_carried = self.found.only_carries || self.found.class.is_none();
        self.found.only_carries = was_carried && verb.base == "provide";
        let was_vague = self.found.is_vague || self.found.class.is_none();
        self.found.is_vague = was_vague && verb.kind == Kind::Vague && class == Class::Write;
        let was_noun = self.found.may_be_noun || self.found.class.is_none();
        self.found.may_be_noun = was_noun
            && verb.kind == Kind::Both
            && (verb.class, class) == (Class::Write, Class::Write);
        self.vote(what, class, if self.sentence == 0 { 8 } else { 5 });
    }

    fn vote(&mut self, what: What, class: Class, weight: u8) {
        let raise = |own: Option<Class>| Some(own.map_or(class, |own| own.raised(class)));
        self.found.class = raise(self.found.class);
        if self.sentence == 0 {
            self.found.lead = raise(self.found.lead);
        }
        if self.found.signals.len() < 16 {
            self.found.signals.push((what, weight));
        }
    }
}

/// Verbs whose effect is that of the next one: `performs a search`.
fn carries(verb: &str) -> bool {
    matches!(verb, "perform" | "conduct")
}

/// `temporarily`; not `only`.
fn is_adverb(word: &str) -> bool {
    word.len() > 4 && word.ends_with("ly")
}

/// Words that state alone that the effect cannot be undone.
fn is_final(word: &str) -> bool {
    matches!(
        word,
        "irreversible"
            | "irreversibly"
            | "irrecoverable"
            | "irrecoverably"
            | "необратимо"
            | "необратима"
            | "необратимое"
            | "безвозвратно"
    )
}

/// Verbs of one list have one form: `Create and update`, `creates and updates`.
fn same_form(last: &Verb, verb: &Verb) -> bool {
    last.form == verb.form
}

/// Whether a word behind an object is a verb again: `finds an order and charges the card`.
fn stands_alone(verb: &Verb, follower: Option<&str>) -> bool {
    verb.kind != Kind::Both || follower.is_some_and(|word| nouns(word).has(Nouns::DETERMINER))
}
