//! What the name of a tool implies.
//!
//! The first verb of the name is its lead: `chat_get_people` gets. Words behind it can only raise
//! the class: `get_and_delete_all` deletes.

use smallvec::SmallVec;
use toolgate_json::{compatible, fold};

use crate::class::Class;
use crate::lexicon::{Form, Kind, Nouns, Verb, means, nouns, phrasal, takes_money, trades, verb};
use crate::signal::What;
use crate::words::{Capitals, Words, has_capital_runs};

/// What a name implies.
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
#[derive(Clone, Debug, Default)]
pub(crate) struct NameFinding {
    /// The class of its verbs.
    pub(crate) class: Option<Class>,
    /// Whether the class rests on a verb whose effect depends on its object.
    pub(crate) is_vague: bool,
    /// Whether the verb may just as well be a noun: `my_branch`.
    pub(crate) may_be_noun: bool,
    /// The verb that leads.
    pub(crate) lead: Option<&'static str>,
    /// Whether nothing in the name says what the object is.
    pub(crate) is_generic: bool,
    /// Whether the verb is the first word.
    pub(crate) leads: bool,
    /// Whether the verb is about a query.
    pub(crate) is_query: bool,
    /// What led to it.
    pub(crate) signals: SmallVec<[(What, u8); 4]>,
    /// The roles of all words.
    pub(crate) roles: SmallVec<[Nouns; 8]>,
}

/// Judges a name, and the names that a lenient server may take it for: the highest class applies.
pub(crate) fn find_lenient(name: &str) -> NameFinding {
    if name.bytes().all(|byte| matches!(byte, b'!'..=b'~')) {
        return find(name);
    }
    let (found, folded) = (find(&compatible(name)), find(&fold(name)));
    match (found.class, folded.class) {
        (Some(own), Some(other)) if own.raised(other) != own => folded,
        (None, Some(_)) => folded,
        _ => found,
    }
}

/// The class that a name alone implies.
pub(crate) fn class(name: &str) -> Class {
    find(name).class.unwrap_or_default()
}

impl Class {
    /// The class that a tool's name alone implies. A name that a server may take for another one has
    /// the class of that one, if it is higher.
    pub fn by_name(tool: &str) -> Self {
        let form = compatible(tool);
        let own = class(&form);
        // Without its case a name may have fewer words to go by.
        match class(&fold(tool)) {
            Class::Other => own,
            folded => own.raised(folded),
        }
    }
}

/// Judges a name.
pub(crate) fn find(name: &str) -> NameFinding {
    let mut found = judge(&Words::of(name, Capitals::Title));
    if has_capital_runs(name) {
        let hard = judge(&Words::of(name, Capitals::Hard));
        if let Some(class) = hard.class
            && found.class.is_none_or(|own| own.raised(class) != own)
        {
            found = hard;
        }
    }
    found
}

fn judge(words: &Words) -> NameFinding {
    let mut found = NameFinding::default();
    let mut lead: Option<(usize, Verb)> = None;
    let mut before = Nouns::default();
    let last = words.iter().last().map(nouns).unwrap_or_default();
    let asks = words.len() > 1 && words.get(0).is_some_and(asks);
    for (at, word) in words.iter().enumerate() {
        let roles = nouns(word);
        let here = phrasal(word, words.get(at + 1)).or_else(|| verb(word));
        if let Some(verb) = here.filter(|verb| is_verb_here(verb, at)) {
            if before.has(Nouns::NEGATION) || (asks && !before.has(Nouns::JOIN)) {
                found.signals.push((What::Negated(verb.base), 0));
            } else {
                match lead {
                    Some((_, first)) if !is_noun_before(first, verb, before) => {
                        found.follow(first, verb, before, last);
                    }
                    _ => lead = Some((at, verb)),
                }
            }
        }
        found.roles.push(roles);
        before = roles;
    }
    // `payment_status` is a report, whatever its other words can do as verbs.
    let names_report = found.roles.last().is_some_and(|roles| roles.has(Nouns::REPORT))
        && lead.is_none_or(|(_, verb)| verb.kind == Kind::Both && words.len() > 1);
    match lead {
        None if asks => found.raise(What::Question, Class::Read, 6),
        _ if names_report => {
            found.raise(What::Report, Class::Read, 4);
            found.is_generic = words.len() == 1;
        }
        Some((at, verb)) => {
            found.leads = at == 0;
            found.judge_lead(words, at, verb);
        }
        None => {}
    }
    found
}

/// Whether a name that begins with this word asks a question: `is_deleted`, `can_delete`.
fn asks(word: &str) -> bool {
    matches!(
        word,
        "is" | "are" | "has" | "have" | "can" | "was" | "does" | "did" | "should" | "exists"
    )
}

/// Whether the first verb is rather the object of the second: `invoice_list`.
fn is_noun_before(first: Verb, verb: Verb, before: Nouns) -> bool {
    first.kind == Kind::Both
        && first.base != "preview"
        && verb.kind == Kind::Verb
        && !before.has(Nouns::JOIN.and(Nouns::STOP))
}

/// In names a plural is a noun (`get_updates`), except at the start.
fn is_verb_here(verb: &Verb, at: usize) -> bool {
    match verb.form {
        Form::Base => true,
        Form::Third => at == 0,
        // Russian names are often nouns of verbs: `УдалениеПомеченных`.
        Form::Gerund => at == 0 || !verb.base.is_ascii(),
    }
}

impl NameFinding {
    /// A verb behind the lead. `last` are the roles of the last word.
    fn follow(&mut self, lead: Verb, verb: Verb, before: Nouns, last: Nouns) {
        let joined = before.has(Nouns::JOIN);
        // `get_delete_log`, `list_items_to_delete`, `mark_for_deletion`, `preview_delete`
        let is_named = before.has(Nouns::STOP)
            || lead.base == "preview"
            || (lead.class == Class::Read && last.has(Nouns::REPORT.and(Nouns::PLANNED)));
        if is_named && !joined {
            return;
        }
        let raises = match verb.kind {
            // Few words for writing are never nouns behind a word for reading.
            Kind::Verb if verb.class == Class::Write && lead.class == Class::Read => {
                joined
                    || matches!(
                        verb.base,
                        "create" | "update" | "write" | "insert" | "modify" | "edit"
                    )
            }
            Kind::Verb => joined || verb.class != Class::Read,
            Kind::Both | Kind::Vague => joined,
        };
        if raises && lead.class.raised(verb.class) != lead.class {
            self.raise(What::Verb(verb.base, verb.class), verb.class, 6);
        }
    }

    fn judge_lead(&mut self, words: &Words, at: usize, lead: Verb) {
        let object = Object::of(&self.roles, at);
        self.is_query =
            object.all.has(Nouns::QUERY) || lead.base == "query" || lead.base == "запросить";
        let weight = if at == 0 { 8 } else { 7 };
        match lead.class {
            Class::Read => self.judge_reading(lead, &object, at, weight),
            class => {
                let is_trade = trades(lead.base, object.head, object.all);
                if (object.is_money(lead) || is_trade) && class != Class::Financial {
                    self.raise(What::Money(lead.base), Class::Financial, 9);
                }
                if object.all.has(Nouns::RECIPE) {
                    self.judge_recipe(lead, class);
                }
                let meant = means(lead.base, object.head).unwrap_or_else(|| lowered(lead, &object));
                self.raise(What::Verb(lead.base, meant), meant, weight);
            }
        }
        self.lead = Some(lead.base);
        let is_money = self.class == Some(Class::Financial);
        // `log_call` records one, `log_search` looks for one.
        let logs = lead.base == "log"
            && lead.form == Form::Base
            && at == 0
            && words.len() > 1
            && self.class == Some(Class::Read);
        if logs {
            self.raise(What::Verb(lead.base, Class::Write), Class::Write, weight);
        }
        self.is_vague = (lead.kind == Kind::Vague || logs) && !is_money;
        self.may_be_noun = lead.kind == Kind::Both && lead.class == Class::Write && !is_money;
        let rest = words.len().saturating_sub(at + 1);
        self.is_generic = at == 0 && (rest == 0 || rest == object.generic);
    }

    fn judge_reading(&mut self, lead: Verb, object: &Object, at: usize, weight: u8) {
        // `database_query` takes any statement.
        let asks = lead.base == "query"
            && (object.all.has(Nouns::DATABASE) || self.has_before(at, Nouns::DATABASE));
        if asks {
            self.raise(What::AnyQuery, Class::Execute, 5);
        } else if takes_money(lead.base, object.all) {
            self.raise(What::Money(lead.base), Class::Financial, 8);
        } else if lead.base == "select" && object.head.has(Nouns::ELEMENT) {
            self.raise(What::Verb(lead.base, Class::Write), Class::Write, weight);
        } else {
            self.raise(What::Verb(lead.base, Class::Read), Class::Read, weight);
        }
    }

    fn judge_recipe(&mut self, lead: Verb, class: Class) {
        if class == Class::Write && matches!(lead.base, "apply" | "build") {
            self.raise(What::RunsCode(lead.base), Class::Execute, 6);
        }
    }

    fn has_before(&self, at: usize, role: Nouns) -> bool {
        self.roles.iter().take(at).any(|roles| roles.has(role))
    }

    fn raise(&mut self, what: What, class: Class, weight: u8) {
        self.signals.push((what, weight));
        self.class = Some(self.class.map_or(class, |own| own.raised(class)));
    }
}

/// Taking away a label or a member is easily undone.
fn lowered(lead: Verb, object: &Object) -> Class {
    let detaches =
        matches!(lead.base, "remove" | "reset" | "clear") && object.head.has(Nouns::LIGHT);
    let moves = lead.base == "transfer" && object.all.has(Nouns::NOT_MONEY);
    if detaches || moves { Class::Write } else { lead.class }
}

/// The object of the lead: its noun phrase.
#[derive(Clone, Copy, Debug, Default)]
struct Object {
    head: Nouns,
    all: Nouns,
    generic: usize,
}

impl Object {
    fn of(roles: &[Nouns], lead: usize) -> Self {
        let behind = roles.get(lead + 1..).unwrap_or_default();
        // A verb at the end has its object before it: `payment_create`.
        let rest = if behind.is_empty() { roles.get(..lead).unwrap_or_default() } else { behind };
        let phrase = rest.iter().take_while(|roles| !roles.has(Nouns::STOP));
        Self {
            head: phrase.clone().last().copied().unwrap_or_default(),
            all: phrase.fold(Nouns::default(), |all, roles| all.and(*roles)),
            generic: rest.iter().filter(|roles| roles.has(Nouns::GENERIC)).count(),
        }
    }

    fn is_money(&self, lead: Verb) -> bool {
        // In Russian the object comes before the one who receives it.
        let head = if lead.base.is_ascii() { self.head } else { self.all };
        head.has(Nouns::MONEY)
            && !self.all.has(Nouns::NOT_MONEY.and(Nouns::QUERY).and(Nouns::DATABASE))
    }
}
