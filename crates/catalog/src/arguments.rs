//! What the arguments of a tool imply.
//!
//! Arguments can only raise a class: code makes a tool Execute, an amount with a recipient makes a
//! writing tool Financial, an operation `delete` among the allowed values makes it Destructive.

use smallvec::SmallVec;

use crate::class::Class;
use crate::definition::Argument;
use crate::lexicon::{Form, Kind, Nouns, nouns, verb};
use crate::signal::{Place, Signal, What};
use crate::words::{Capitals, Words};

/// What all arguments together imply.
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
#[derive(Clone, Debug, Default)]
pub(crate) struct ArgumentFinding {
    /// The class that they raise a tool to, whatever it does.
    pub(crate) class: Option<Class>,
    /// The class that they raise a tool to that does not only read.
    pub(crate) class_if_writing: Option<Class>,
    pub(crate) path: bool,
    pub(crate) url: bool,
    pub(crate) code: bool,
    pub(crate) query: bool,
    pub(crate) recipient: bool,
    pub(crate) signals: SmallVec<[Signal; 4]>,
}

/// Judges all arguments.
pub(crate) fn find(arguments: &[Argument<'_>]) -> ArgumentFinding {
    let mut found = ArgumentFinding::default();
    let mut amounts = 0;
    let mut money: Option<&str> = None;
    let mut parties = 0;
    for argument in arguments {
        let roles = Traits::of(argument);
        amounts += usize::from(roles.amount);
        parties += usize::from(roles.party || roles.currency);
        if roles.amount {
            money = Some(&argument.name);
        }
        found.take(argument, &roles);
    }
    if let Some(name) = money.filter(|_| amounts > 0 && parties > 0) {
        found.signal(What::TakesAmount, name, 6);
        found.class_if_writing = Some(Class::Financial);
    }
    found
}

/// What one argument is.
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    path: bool,
    url: bool,
    amount: bool,
    currency: bool,
    party: bool,
    code: bool,
    any_code: bool,
    query: bool,
    recipient: bool,
    operation: bool,
    destroys: Option<Class>,
    /// What it removes is a part of a result, if the tool reads.
    of_result: bool,
}

impl Traits {
    fn of(argument: &Argument<'_>) -> Self {
        let words = Words::of(&argument.name, Capitals::Title);
        let only = words.len() == 1;
        // One of a few allowed values is not code.
        let is_text = argument.kind.as_deref().is_none_or(|kind| kind == "string")
            && argument.values.is_empty();
        let is_switch = argument.kind.as_deref() == Some("boolean");
        let mut traits = Self::default();
        for (at, word) in words.iter().enumerate() {
            let last = at + 1 == words.len();
            traits.take(word, last, only, is_text);
            traits.recipient |= only && nouns(word).has(Nouns::RECIPIENT);
            if is_switch && let Some(verb) = verb(word) {
                let destroys = verb.class.raised(Class::Destructive) == verb.class
                    && verb.kind == Kind::Verb
                    && verb.form == Form::Base;
                traits.destroys = destroys.then_some(verb.class).or(traits.destroys);
            }
        }
        if is_switch && is_guard(&words) {
            traits.destroys = None;
        }
        let removes = words.get(0).is_some_and(|word| matches!(word, "remove" | "strip" | "drop"));
        traits.of_result =
            removes && words.iter().skip(1).any(|word| nouns(word).has(Nouns::MARKUP));
        traits
    }

    fn take(&mut self, word: &str, last: bool, only: bool, is_text: bool) {
        match word {
            "path" | "paths" | "filepath" | "filename" | "file" | "directory" | "dir"
            | "folder" => {
                self.path |= last;
            }
            "url" | "urls" | "uri" | "href" | "webhook" | "endpoint" | "link" => self.url |= last,
            "amount" | "sum" | "price" => self.amount |= last,
            "currency" => self.currency = true,
            "recipient" | "beneficiary" | "payee" | "iban" | "account" | "wallet" | "card"
            | "customer" | "payer" | "destination" | "receiver" | "to" => self.party = true,
            "command" | "cmd" | "shell" | "script" | "bash" | "javascript" | "python" => {
                self.code |= is_text && last;
            }
            "code" | "expression" | "program" | "snippet" => self.any_code |= is_text && only,
            "sql" | "cypher" => self.query |= is_text && last,
            "action" | "operation" | "op" | "method" | "mode" => self.operation |= last,
            _ => {}
        }
    }
}

/// Switches that make a tool safer: `dry_run`, `skip_delete`, `allow_…` only permits.
fn is_guard(words: &Words) -> bool {
    words.iter().any(|word| {
        matches!(
            word,
            "dry"
                | "skip"
                | "no"
                | "not"
                | "prevent"
                | "include"
                | "show"
                | "keep"
                | "protect"
                | "if"
        )
    })
}

impl ArgumentFinding {
    fn take(&mut self, argument: &Argument<'_>, traits: &Traits) {
        let name = &*argument.name;
        self.path |= traits.path;
        self.url |= traits.url;
        self.recipient |= traits.recipient;
        for (is, what, weight) in [
            (traits.path, What::TakesPath, 0),
            (traits.url, What::TakesUrl, 0),
            (traits.recipient, What::TakesRecipient, 0),
        ] {
            if is {
                self.signal(what, name, weight);
            }
        }
        if traits.code || (traits.any_code && runs(argument)) {
            self.code = true;
            self.signal(What::TakesCode, name, 6);
        } else if traits.any_code {
            self.signal(What::TakesCode, name, 0);
            self.raise_if_writing(Class::Execute);
        }
        if traits.query || (&*argument.name == "query" && is_sql(argument)) {
            self.query = true;
            self.signal(What::TakesQuery, name, 5);
        }
        if let Some(class) = traits.destroys.filter(|_| traits.of_result) {
            self.signal(What::Switch(class), name, 0);
            self.raise_if_writing(class);
        } else if let Some(class) = traits.destroys {
            self.raise(What::Switch(class), class, name, 6);
        }
        if traits.operation || is_operation_list(argument) {
            self.operations(argument);
        }
    }

    fn operations(&mut self, argument: &Argument<'_>) {
        let classes = argument.values.iter().map(|value| crate::name::class(value));
        let highest = classes.filter(|class| *class != Class::Other).reduce(Class::raised);
        if let Some(class) = highest.filter(|class| *class != Class::Read) {
            self.raise(What::Operation(class), class, &argument.name, 7);
        }
    }

    fn raise(&mut self, what: What, class: Class, name: &str, weight: u8) {
        self.signal(what, name, weight);
        self.class = Some(self.class.map_or(class, |own| own.raised(class)));
    }

    fn raise_if_writing(&mut self, class: Class) {
        let own = self.class_if_writing;
        self.class_if_writing = Some(own.map_or(class, |own| own.raised(class)));
    }

    fn signal(&mut self, what: What, name: &str, weight: u8) {
        if self.signals.len() < 16 {
            self.signals.push(Signal { what, place: Place::Argument(name.into()), weight });
        }
    }
}

/// Whether all allowed values but a few are verbs, so that the argument selects what is done.
fn is_operation_list(argument: &Argument<'_>) -> bool {
    let verbs = argument.values.iter().filter(|value| {
        verb(value).is_some_and(|verb| verb.kind == Kind::Verb && verb.form == Form::Base)
    });
    verbs.count() >= 2
}

/// Whether the description of an argument states that it is run.
fn runs(argument: &Argument<'_>) -> bool {
    argument.description.as_ref().is_some_and(|text| {
        let text = text.to_lowercase();
        ["execut", "run", "eval", "выполн", "исполн"].iter().any(|mark| text.contains(mark))
    })
}

fn is_sql(argument: &Argument<'_>) -> bool {
    argument.description.as_ref().is_some_and(|text| {
        let text = text.to_ascii_lowercase();
        text.contains("sql") || text.contains("cypher")
    })
}
