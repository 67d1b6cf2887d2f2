//! The class of a tool, and why.
//!
//! Name, description, arguments and annotations each imply a class; the highest applies, with these
//! exceptions: a verb whose effect depends on its object yields to the description; a query that is
//! stated to read only is Read; a name that alone says little, without a description, is Other.
//!
//! Invariant: deterministic. Annotations and the statement to be read-only never lower the class of
//! a destructive, financial or executing tool.
//! Start at [`classify`].

use serde::Serialize;
use smallvec::SmallVec;

use crate::arguments::{self, ArgumentFinding};
use crate::class::{Class, Level};
use crate::definition::Definition;
use crate::label::{self, Labels};
use crate::lexicon::Nouns;
use crate::name::{self, NameFinding};
use crate::person::asks_for_person;
use crate::prose::{self, ProseFinding};
use crate::signal::{Place, Signal, What};

/// What is known about the risk of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assessment {
    /// Its class.
    pub class: Class,
    /// The level of the class.
    pub level: Level,
    /// How probable it is that the class is right, 0 to 1.
    pub confidence: f64,
    /// What led to the class, the weightiest first.
    pub signals: Vec<Signal>,
    /// What it can do with data.
    pub labels: Labels,
}

impl Assessment {
    /// Whether the definition asks that a person decides first.
    pub fn asks_for_person(&self) -> bool {
        self.signals.iter().any(|signal| signal.what == What::AsksForPerson)
    }

    /// The signal that people read first, in one sentence.
    pub fn reason(&self) -> String {
        match self.signals.first() {
            Some(signal) => format!("{} ({})", signal.what, signal.place),
            None => "no signal".to_owned(),
        }
    }

    /// Replaces the class by one that is known otherwise.
    #[must_use]
    pub fn with_class(mut self, class: Class, why: What) -> Self {
        self.class = class;
        self.level = class.level();
        self.confidence = 1.0;
        self.signals.insert(0, Signal { what: why, place: Place::Toolgate, weight: 10 });
        self
    }
}

/// Judges a definition.
pub fn classify(definition: &Definition<'_>) -> Assessment {
    let name = name::find_lenient(&definition.name);
    let title = definition.title.as_deref().map(prose::find).unwrap_or_default();
    let text = definition.description.as_deref().unwrap_or_default();
    let prose = prose::find(text);
    let arguments = arguments::find(&definition.arguments);
    let mut evidence = Evidence { definition, name, title, prose, arguments, signals: Vec::new() };
    let (class, confidence) = evidence.weigh();
    let labels =
        label::labels(class, &evidence.name, &evidence.prose, &evidence.arguments, definition);
    evidence.collect(class, confidence, labels)
}

struct Evidence<'d, 't> {
    definition: &'d Definition<'t>,
    name: NameFinding,
    title: ProseFinding,
    prose: ProseFinding,
    arguments: ArgumentFinding,
    signals: Vec<Signal>,
}

impl Evidence<'_, '_> {
    fn weigh(&mut self) -> (Class, f64) {
        let (class, confidence) = self.of_words();
        let (class, confidence) = self.of_mentions(class, confidence);
        let (class, confidence) = self.of_recipe(class, confidence);
        let (class, confidence) = self.of_arguments(class, confidence);
        let (class, confidence) = self.of_query(class, confidence);
        self.of_annotations(class, confidence)
    }

    /// Name, title and description.
    fn of_words(&mut self) -> (Class, f64) {
        let described = self.definition.is_described();
        if !described {
            self.signal(What::NoDescription, Place::Description, 0);
        }
        let said = max(self.prose.class, self.title.class);
        match (self.name.class, said) {
            (Some(name), None) if self.name.is_vague => {
                if self.name.is_generic && !described {
                    let (what, _) = self.name.signals.first().cloned().unwrap_or((What::NoVerb, 0));
                    if let What::Verb(verb, _) = what {
                        self.name.signals.clear();
                        self.signal(What::Vague(verb), Place::Name, 3);
                    }
                    return (Class::Other, 0.25);
                }
                (name, 0.55)
            }
            (Some(name), Some(said))
                if (self.name.is_vague || self.name.may_be_noun) && !self.prose.is_vague =>
            {
                let agree = if name == said { 0.93 } else { 0.85 };
                (said, agree)
            }
            (Some(name), Some(said)) if name == said => {
                (name, if self.prose.is_vague { 0.8 } else { 0.98 })
            }
            (Some(Class::Read), Some(Class::Write)) if self.prose.may_be_noun => (Class::Read, 0.8),
            // `convert_currency` that computes.
            (Some(Class::Write), Some(Class::Read)) if self.name.lead == Some("convert") => {
                (Class::Read, 0.8)
            }
            (Some(name), Some(said)) => {
                let class = name.raised(said);
                // A higher class in the name is rarely wrong; one in the text alone more often.
                self.signal(What::Disagree, Place::Description, 0);
                (class, if class == name { 0.6 } else { 0.55 })
            }
            (Some(name), None) => (name, if described { 0.85 } else { 0.75 }),
            (None, Some(said)) => (said, if self.prose.is_vague { 0.85 } else { 0.92 }),
            (None, None) => {
                self.signal(What::NoVerb, Place::Name, 0);
                (Class::Other, if described { 0.7 } else { 0.2 })
            }
        }
    }

    /// Where no verb states an effect, a critical verb that the text mentions is believed. What cannot be
    /// undone is lost, unless it is a message that was sent.
    fn of_mentions(&mut self, class: Class, confidence: f64) -> (Class, f64) {
        let says_nothing = self.name.class.is_none() && self.title.class.is_none();
        let is_open = says_nothing && (self.prose.class.is_none() || self.prose.only_carries);
        if let Some((verb, mentioned)) = self.prose.mentioned.filter(|_| is_open) {
            self.signal(What::Mentioned(verb, mentioned), Place::Description, 6);
            return (mentioned, 0.65);
        }
        let changes = matches!(class, Class::Write | Class::Other);
        if self.prose.is_irreversible && changes && !self.sends() {
            self.signal(What::Lost, Place::Description, 7);
            return (Class::Destructive, confidence.min(0.8));
        }
        (class, confidence)
    }

    /// Whether the tool sends something. That cannot be undone, and nothing is lost.
    fn sends(&self) -> bool {
        let is_sending = |verb| {
            matches!(
                verb,
                "send"
                    | "post"
                    | "publish"
                    | "email"
                    | "notify"
                    | "message"
                    | "submit"
                    | "отправить"
            )
        };
        let mut verbs = self.name.signals.iter().chain(&self.prose.signals);
        verbs.any(|(what, _)| matches!(what, What::Verb(verb, _) if is_sending(*verb)))
    }

    /// Building or applying a recipe runs it.
    fn of_recipe(&mut self, class: Class, confidence: f64) -> (Class, f64) {
        let lead = self.name.lead.filter(|verb| matches!(*verb, "apply" | "build"));
        match lead.filter(|_| class == Class::Write && self.prose.roles.has(Nouns::RECIPE)) {
            Some(verb) => {
                self.signal(What::RunsCode(verb), Place::Name, 6);
                (Class::Execute, confidence.min(0.8))
            }
            None => (class, confidence),
        }
    }

    fn of_arguments(&self, class: Class, confidence: f64) -> (Class, f64) {
        let mut raised = self.arguments.class.map_or(class, |by| class.raised(by));
        // Analysing code or a command is reading: `explain_command`.
        let reads = class == Class::Read;
        let runs = self.arguments.code && !(reads && self.is_about_text());
        if runs || (self.arguments.query && !reads) {
            raised = raised.raised(Class::Execute);
        }
        if !reads && let Some(by) = self.arguments.class_if_writing {
            raised = raised.raised(by);
        }
        if raised == class { (class, confidence) } else { (raised, confidence.min(0.8)) }
    }

    /// Verbs that look at a text that they are given.
    fn is_about_text(&self) -> bool {
        let verbs = self.name.signals.iter().chain(&self.prose.signals);
        verbs
            .filter_map(|(what, _)| match what {
                What::Verb(verb, Class::Read) => Some(*verb),
                _ => None,
            })
            .any(|verb| {
                matches!(
                    verb,
                    "explain"
                        | "validate"
                        | "verify"
                        | "parse"
                        | "lint"
                        | "analyze"
                        | "analyse"
                        | "suggest"
                        | "check"
                        | "describe"
                        | "classify"
                        | "review"
                        | "summarize"
                        | "search"
                        | "find"
                        | "inspect"
                        | "diff"
                        | "compare"
                        | "lookup"
                )
            })
    }

    /// Queries that are stated to read only are Read; others may write.
    fn of_query(&mut self, class: Class, confidence: f64) -> (Class, f64) {
        let is_query = self.prose.is_query || self.name.is_query;
        let reads_only = self.prose.reads_only || self.title.reads_only;
        if class == Class::Execute && is_query && reads_only && !self.arguments.code {
            self.signal(What::ReadQuery, Place::Description, 6);
            return (Class::Read, confidence.min(0.8));
        }
        (class, confidence)
    }

    fn of_annotations(&mut self, class: Class, confidence: f64) -> (Class, f64) {
        let hints = self.definition.hints;
        let mut raised = class;
        if hints.destructive == Some(true) {
            self.signal(What::DeclaredDestructive, Place::Annotations, 7);
            raised = raised.raised(Class::Destructive);
        } else if hints.read_only == Some(false) {
            self.signal(What::DeclaredWriting, Place::Annotations, 4);
            raised = raised.raised(Class::Write);
        } else if hints.read_only == Some(true) && !matches!(class, Class::Read | Class::Other) {
            self.signal(What::DeclaredReadOnly, Place::Annotations, 0);
        }
        if raised == class { (class, confidence) } else { (raised, confidence.clamp(0.7, 0.9)) }
    }

    fn signal(&mut self, what: What, place: Place, weight: u8) {
        self.signals.push(Signal { what, place, weight });
    }

    fn collect(mut self, class: Class, confidence: f64, labels: Labels) -> Assessment {
        let name = std::mem::take(&mut self.name.signals);
        let title = std::mem::take(&mut self.title.signals);
        let prose = std::mem::take(&mut self.prose.signals);
        self.signals.extend(placed(name, &Place::Name));
        self.signals.extend(placed(title, &Place::Title));
        self.signals.extend(placed(prose, &Place::Description));
        self.signals.append(&mut self.arguments.signals.to_vec());
        if self.asks() {
            self.signal(What::AsksForPerson, Place::Description, 5);
        }
        // Signals of the class first: the first one is the reason that people read.
        self.signals.sort_by_key(|signal| {
            (signal.what.class() != Some(class), std::cmp::Reverse(signal.weight))
        });
        self.signals.dedup();
        Assessment { class, level: class.level(), confidence, signals: self.signals, labels }
    }

    fn asks(&self) -> bool {
        let text = self.definition.description.as_deref().unwrap_or_default();
        !text.is_empty() && asks_for_person(&text.to_lowercase())
    }
}

fn placed(signals: SmallVec<[(What, u8); 4]>, place: &Place) -> impl Iterator<Item = Signal> {
    signals.into_iter().map(move |(what, weight)| Signal { what, place: place.clone(), weight })
}

fn max(one: Option<Class>, two: Option<Class>) -> Option<Class> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.raised(two)),
        (one, two) => one.or(two),
    }
}
