//! A call as the policy sees it: who, what, and the raw arguments. Everything is borrowed.

use std::sync::Arc;

use serde::Serialize;

use toolgate_json::{compatible, fold};

use crate::digest::Digest;

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

    /// The class a tool's name alone gives: that of its first word, raised by every other word. A
    /// name that a server may take for another one has the class of that one, if it is higher.
    pub fn by_name(tool: &str) -> Self {
        let form = compatible(tool);
        // Without its case a name may have fewer words to go by.
        [Self::of_words(&form, true), Self::of_words(&fold(tool), false)]
            .into_iter()
            .filter(|class| *class != Class::Other)
            .fold(Self::of_words(&form, false), Self::raised)
    }

    /// The higher of two classes. What nobody knows may be more than reading.
    #[must_use]
    pub fn raised(self, other: Self) -> Self {
        if other.height() > self.height() { other } else { self }
    }

    fn height(self) -> u8 {
        match self {
            Class::Read => 0,
            Class::Other => 1,
            Class::Write => 2,
            Class::Execute => 3,
            Class::Destructive => 4,
            Class::Financial => 5,
        }
    }

    fn of_words(name: &str, hard: bool) -> Self {
        let mut words = words(name, hard).into_iter();
        let first = words.next().map_or(Class::Other, |word| Self::of_word(&word));
        // A word for reading behind the first says nothing: `user_list` may do anything.
        words.map(|word| Self::of_word(&word)).filter(|class| *class > Class::Read).fold(
            first,
            |class, other| if other == Class::Other { class } else { class.raised(other) },
        )
    }

    fn of_word(word: &str) -> Self {
        match word {
            "get" | "list" | "search" | "find" | "read" => Class::Read,
            "delete" | "drop" | "purge" => Class::Destructive,
            "pay" | "refund" | "charge" => Class::Financial,
            "run" | "execute" => Class::Execute,
            "create" | "update" | "send" | "close" => Class::Write,
            _ => Class::Other,
        }
    }
}

/// The words of a name, in lower case: parted by anything but letters, by digits, and where the case
/// changes (`deleteAccount`, `DROPTable`). With `hard` a word in capitals ends where small letters
/// begin (`DROPtable`).
fn words(name: &str, hard: bool) -> Vec<String> {
    let mut words = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (at, c) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        let capital = |c: Option<&char>| c.is_some_and(|c| c.is_uppercase());
        let small = |c: Option<&char>| c.is_some_and(|c| c.is_lowercase());
        let two = at.checked_sub(2).and_then(|at| letters.get(at));
        let begins = if c.is_uppercase() {
            small(before) || (!hard && capital(before) && small(after))
        } else {
            hard && c.is_lowercase() && capital(before) && capital(two)
        };
        if begins || !c.is_alphabetic() {
            words.push(String::new());
        }
        if let (Some(word), true) = (words.last_mut(), c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
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
    fn words_give_the_class() {
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
            ("list2", Class::Read),
            ("", Class::Other),
            ("user_list", Class::Other),
            ("get_or_delete_user", Class::Destructive),
            ("user_delete", Class::Destructive),
            ("userDelete", Class::Destructive),
            ("kv.v2.purge", Class::Destructive),
            ("get2delete", Class::Destructive),
            ("listAndDropTables", Class::Destructive),
            ("DROP_everything", Class::Destructive),
            ("DROPTable", Class::Destructive),
            ("DROPtable", Class::Destructive),
            ("tableDROP", Class::Destructive),
            ("delete_account ", Class::Destructive),
            ("ｄｅｌｅｔｅ＿ａ", Class::Destructive),
            ("ＤｅｌｅｔｅＡccount", Class::Destructive),
            ("dele\u{ad}te_a", Class::Destructive),
            ("read_and_pay", Class::Financial),
            ("delete_then_pay", Class::Financial),
            ("search_run", Class::Execute),
            ("get_update", Class::Write),
            ("run_update", Class::Execute),
            ("undelete", Class::Other),
            ("dropdown_items", Class::Other),
        ] {
            assert_eq!(Class::by_name(name), class, "{name}");
        }
        for class in Class::ALL {
            assert_eq!(Class::parse(class.as_str()), Some(class));
        }
    }
}
