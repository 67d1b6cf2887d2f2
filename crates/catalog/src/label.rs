//! Labels: what a tool can do with data. Three of them together are the lethal trifecta.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::arguments::ArgumentFinding;
use crate::class::Class;
use crate::definition::Definition;
use crate::lexicon::Nouns;
use crate::name::NameFinding;
use crate::prose::ProseFinding;
use crate::signal::What;

/// What a tool can do with data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// It can read data that is not public.
    pub reads_private: bool,
    /// Its results can hold text that strangers wrote.
    pub ingests_untrusted: bool,
    /// It can carry data out.
    pub sends_out: bool,
}

impl Labels {
    /// The names of the labels that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [
            (self.reads_private, "reads_private"),
            (self.ingests_untrusted, "ingests_untrusted"),
            (self.sends_out, "sends_out"),
        ]
        .into_iter()
        .filter_map(|(is, name)| is.then_some(name))
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut labels = Self::default();
        for name in Vec::<String>::deserialize(deserializer)? {
            match name.as_str() {
                "reads_private" => labels.reads_private = true,
                "ingests_untrusted" => labels.ingests_untrusted = true,
                "sends_out" => labels.sends_out = true,
                other => return Err(serde::de::Error::custom(format!("unknown label `{other}`"))),
            }
        }
        Ok(labels)
    }
}

pub(crate) fn labels(
    class: Class,
    name: &NameFinding,
    prose: &ProseFinding,
    arguments: &ArgumentFinding,
    definition: &Definition<'_>,
) -> Labels {
    let has = |role| name.roles.iter().any(|roles| roles.has(role));
    let private = has(Nouns::PRIVATE) || prose.roles.has(Nouns::PRIVATE) || arguments.path;
    let untrusted = has(Nouns::UNTRUSTED) || prose.roles.has(Nouns::UNTRUSTED) || arguments.url;
    let outside = has(Nouns::OUTSIDE)
        || prose.roles.has(Nouns::OUTSIDE)
        || arguments.url
        || arguments.recipient;
    let open = definition.hints.open_world == Some(true);
    // Code, commands and requests can do anything that the process can.
    let runs = class == Class::Execute && (arguments.code || runs_anything(name, prose));
    match class {
        Class::Read => Labels {
            reads_private: private,
            ingests_untrusted: untrusted,
            // The address of a request carries data too.
            sends_out: arguments.url,
        },
        Class::Execute => Labels {
            reads_private: private || runs,
            ingests_untrusted: untrusted || runs,
            sends_out: outside || runs,
        },
        Class::Other => Labels {
            reads_private: private && open,
            ingests_untrusted: untrusted,
            sends_out: arguments.url || arguments.recipient,
        },
        Class::Write | Class::Destructive | Class::Financial => Labels {
            reads_private: false,
            ingests_untrusted: arguments.url && untrusted,
            sends_out: sends(name, prose) && (outside || open) || arguments.url,
        },
    }
}

/// Whether a verb carries something to a place.
fn sends(name: &NameFinding, prose: &ProseFinding) -> bool {
    verbs(name, prose).any(|verb| {
        matches!(
            verb,
            "send"
                | "post"
                | "publish"
                | "upload"
                | "push"
                | "share"
                | "reply"
                | "email"
                | "tweet"
                | "message"
                | "notify"
                | "broadcast"
                | "comment"
                | "create"
                | "add"
                | "write"
                | "update"
                | "edit"
                | "submit"
                | "invite"
                | "dm"
                | "отправить"
                | "послать"
                | "опубликовать"
        )
    })
}

fn runs_anything(name: &NameFinding, prose: &ProseFinding) -> bool {
    let code = |roles: &Nouns| roles.has(Nouns::CODE);
    name.roles.iter().any(code)
        || verbs(name, prose)
            .any(|verb| matches!(verb, "call" | "shell" | "bash" | "terminal" | "eval"))
}

fn verbs<'f>(
    name: &'f NameFinding,
    prose: &'f ProseFinding,
) -> impl Iterator<Item = &'static str> + use<'f> {
    name.signals.iter().chain(&prose.signals).filter_map(|(what, _)| match what {
        What::Verb(verb, _) | What::Money(verb) | What::RunsCode(verb) => Some(*verb),
        _ => None,
    })
}
