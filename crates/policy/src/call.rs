//! A call as the policy sees it: who, what, and the raw arguments. Everything is borrowed.

use std::sync::Arc;

use serde::Serialize;

use crate::canonical::Digest;

/// The risk class of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Looks only.
    Read,
    /// Changes something that can be changed back.
    Write,
    /// Runs something.
    Execute,
    /// Destroys something.
    Destructive,
    /// Moves money.
    Financial,
    /// Nobody knows.
    #[default]
    Other,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 6] = [
        Class::Read,
        Class::Write,
        Class::Execute,
        Class::Destructive,
        Class::Financial,
        Class::Other,
    ];

    /// The word policies use.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::Write => "write",
            Class::Execute => "execute",
            Class::Destructive => "destructive",
            Class::Financial => "financial",
            Class::Other => "other",
        }
    }

    /// The class of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }

    /// The class a tool's name alone gives, by its first word.
    pub fn by_name(tool: &str) -> Self {
        let mut first = String::new();
        for c in tool.chars() {
            let boundary = !c.is_alphanumeric() || (c.is_uppercase() && !first.is_empty());
            if boundary && !first.is_empty() {
                break;
            }
            if !boundary {
                first.extend(c.to_lowercase());
            }
        }
        match first.as_str() {
            "get" | "list" | "search" | "find" | "read" => Class::Read,
            "delete" | "drop" | "purge" => Class::Destructive,
            "pay" | "refund" | "charge" => Class::Financial,
            "run" | "execute" => Class::Execute,
            "create" | "update" | "send" | "close" => Class::Write,
            _ => Class::Other,
        }
    }
}

/// Who the grant stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its groups.
    pub groups: &'a [String],
}

/// The session a call goes to, if it goes to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionFacts<'a> {
    /// What kind of program it is.
    pub kind: Option<&'a str>,
    /// The infobase it works in.
    pub infobase_name: Option<&'a str>,
    /// The machine it runs on.
    pub host_id: Option<&'a str>,
}

/// What is known of a person's answer to exactly this call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Nobody was asked.
    #[default]
    None,
    /// Somebody was asked and has not answered: the call is held again, and is no repeat.
    Pending,
    /// Approved and not used up: lifts the hold once.
    Approved,
}

/// One `tools/call`, before it is decided.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// Label of the grant.
    pub grant: &'a str,
    /// Whom the grant stands for.
    pub identity: Option<Identity<'a>>,
    /// What the client calls itself.
    pub client: Option<&'a str>,
    /// The server word: a configured server, `sessions` or `toolgate`.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// Further names under which it is published: the entries of all of them apply together.
    pub aliases: &'a [Arc<str>],
    /// Its risk class.
    pub class: Class,
    /// The session called, for session tools.
    pub session: Option<SessionFacts<'a>>,
    /// The agent session it comes by.
    pub agent_session: Option<&'a str>,
    /// The server or session called; the server word when empty.
    pub target: &'a str,
    /// The raw arguments object. `None` decides on the name alone: conditions on arguments are
    /// left out, as for lists.
    pub arguments: Option<&'a str>,
    /// Digest of the arguments, if the caller has it; computed when a rule needs it.
    pub digest: Option<Digest>,
    /// Fingerprint of the tool's definition, for standing exceptions.
    pub fingerprint: &'a str,
    /// A person's answer to this very call.
    pub approval: Approval,
}

impl<'a> Call<'a> {
    /// A call with arguments; everything else is empty and can be set.
    pub fn new(server: &'a str, tool: &'a str, class: Class, arguments: &'a str) -> Self {
        Self { server, tool, class, arguments: Some(arguments), ..Self::default() }
    }

    /// Every name of the tool.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        std::iter::once(self.tool).chain(self.aliases.iter().map(|alias| &**alias))
    }

    pub(crate) fn target(&self) -> &'a str {
        if self.target.is_empty() { self.server } else { self.target }
    }
}

#[cfg(test)]
mod tests {
    use super::Class;

    #[test]
    fn the_first_word_gives_the_class() {
        for (name, class) in [
            ("get_user", Class::Read),
            ("listUsers", Class::Read),
            ("SearchAll", Class::Read),
            ("delete-file", Class::Destructive),
            ("purge", Class::Destructive),
            ("refund_payment", Class::Financial),
            ("run.script", Class::Execute),
            ("close_1c_session", Class::Write),
            ("_send", Class::Write),
            ("getter_thing", Class::Other),
            ("list2", Class::Other),
            ("", Class::Other),
        ] {
            assert_eq!(Class::by_name(name), class, "{name}");
        }
        for class in Class::ALL {
            assert_eq!(Class::parse(class.as_str()), Some(class));
        }
    }
}
