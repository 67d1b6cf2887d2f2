//! Signals: what in a definition led to its class, and where it is.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::class::Class;

/// One finding in a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signal {
    /// What was found.
    pub what: What,
    /// Where it was found.
    #[serde(rename = "where")]
    pub place: Place,
    /// How much it weighs, 0 to 10. 0 is for information.
    pub weight: u8,
}

// The texts that `advice` recognises again in a catalogue.
pub(crate) const ASKS_FOR_PERSON: &str = "asks that a person decides first";
pub(crate) const LOST: &str = "states that something is lost";
pub(crate) const CHARGED: &str = "states that money is taken";
pub(crate) const DECLARED_DESTRUCTIVE: &str = "declares itself destructive";
pub(crate) const TAKES_PATH: &str = "takes a path of a file system";
pub(crate) const TAKES_URL: &str = "takes a URL";
pub(crate) const TAKES_AMOUNT: &str = "takes an amount of money";
pub(crate) const TAKES_CODE: &str = "takes code or a command";
pub(crate) const TAKES_QUERY: &str = "takes a query";
pub(crate) const TAKES_RECIPIENT: &str = "takes a recipient";

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A verb of a class.
    Verb(&'static str, Class),
    /// A verb that is negated, and so implies nothing.
    Negated(&'static str),
    /// A verb whose effect depends on its object.
    Vague(&'static str),
    /// A verb with money as its object.
    Money(&'static str),
    /// A verb with code or a configuration that is run as its object.
    RunsCode(&'static str),
    /// A query that may write.
    AnyQuery,
    /// A query that is stated to read only.
    ReadQuery,
    /// The text states that something is lost.
    Lost,
    /// The text states that money is taken.
    Charged,
    /// A verb of a class that the text only mentions: `a tool for deleting files`.
    Mentioned(&'static str, Class),
    /// The name asks a question: `is_deleted`.
    Question,
    /// The name ends with a word for a report: `status`.
    Report,
    /// There is no description.
    NoDescription,
    /// No known verb.
    NoVerb,
    /// Name and description imply different classes.
    Disagree,
    /// The text asks that a person decides first.
    AsksForPerson,
    /// The argument is a path of a file system.
    TakesPath,
    /// The argument is a URL.
    TakesUrl,
    /// The argument is an amount of money.
    TakesAmount,
    /// The argument is code or a command.
    TakesCode,
    /// The argument is SQL or another query language.
    TakesQuery,
    /// The argument names who receives something.
    TakesRecipient,
    /// An allowed value selects an operation of a class.
    Operation(Class),
    /// A switch that destroys: `force_delete`.
    Switch(Class),
    /// `destructiveHint: true`.
    DeclaredDestructive,
    /// `readOnlyHint: false`.
    DeclaredWriting,
    /// `readOnlyHint: true` on a tool that is not Read.
    DeclaredReadOnly,
    /// A curated class of tools of 1C programs.
    Curated(Class),
    /// The operator's class.
    Configured(Class),
}

/// Where a signal was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the name.
    Name,
    /// In the title.
    Title,
    /// In the description.
    Description,
    /// In an argument of the input schema.
    Argument(Box<str>),
    /// In the annotations.
    Annotations,
    /// In toolgate's own data or configuration.
    Toolgate,
}

impl What {
    /// The class that it votes for.
    pub(crate) fn class(&self) -> Option<Class> {
        Some(match self {
            What::Verb(_, class)
            | What::Mentioned(_, class)
            | What::Operation(class)
            | What::Switch(class)
            | What::Curated(class)
            | What::Configured(class) => *class,
            What::Money(_) | What::TakesAmount | What::Charged => Class::Financial,
            What::RunsCode(_) | What::AnyQuery | What::TakesCode | What::TakesQuery => {
                Class::Execute
            }
            What::Lost | What::DeclaredDestructive => Class::Destructive,
            What::DeclaredWriting => Class::Write,
            What::Report | What::Question | What::ReadQuery => Class::Read,
            _ => return None,
        })
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Verb(verb, class) => write!(f, "`{verb}` is a verb of class {}", class.as_str()),
            What::Negated(verb) => write!(f, "`{verb}` is negated"),
            What::Vague(verb) => write!(f, "the effect of `{verb}` depends on its object"),
            What::Money(verb) => write!(f, "`{verb}` with money as its object"),
            What::RunsCode(verb) => write!(f, "`{verb}` with code as its object"),
            What::AnyQuery => f.write_str("runs queries, and does not state that they only read"),
            What::ReadQuery => f.write_str("states that its queries only read"),
            What::Lost => f.write_str(LOST),
            What::Charged => f.write_str(CHARGED),
            What::Mentioned(verb, class) => {
                write!(f, "mentions `{verb}`, a verb of class {}", class.as_str())
            }
            What::Question => f.write_str("named after a question"),
            What::Report => f.write_str("named after what it reports"),
            What::NoDescription => f.write_str("there is no description"),
            What::NoVerb => f.write_str("no known verb"),
            What::Disagree => f.write_str("name and description imply different classes"),
            What::AsksForPerson => f.write_str(ASKS_FOR_PERSON),
            What::TakesPath => f.write_str(TAKES_PATH),
            What::TakesUrl => f.write_str(TAKES_URL),
            What::TakesAmount => f.write_str(TAKES_AMOUNT),
            What::TakesCode => f.write_str(TAKES_CODE),
            What::TakesQuery => f.write_str(TAKES_QUERY),
            What::TakesRecipient => f.write_str(TAKES_RECIPIENT),
            What::Operation(class) => {
                write!(f, "can select an operation of class {}", class.as_str())
            }
            What::Switch(class) => write!(f, "a switch of class {}", class.as_str()),
            What::DeclaredDestructive => f.write_str(DECLARED_DESTRUCTIVE),
            What::DeclaredWriting => f.write_str("declares that it does not only read"),
            What::DeclaredReadOnly => {
                f.write_str("declares itself read-only, which does not lower the class")
            }
            What::Curated(class) => {
                write!(f, "known tool of 1C programs, class {}", class.as_str())
            }
            What::Configured(class) => write!(f, "configured class {}", class.as_str()),
        }
    }
}

impl Serialize for What {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Name => f.write_str("name"),
            Place::Title => f.write_str("title"),
            Place::Description => f.write_str("description"),
            Place::Argument(name) => write!(f, "argument {name}"),
            Place::Annotations => f.write_str("annotations"),
            Place::Toolgate => f.write_str("toolgate"),
        }
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
