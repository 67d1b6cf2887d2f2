//! What could go wrong if an agent calls a tool unwatched: one text per tool, made of its class, its
//! arguments and what it does with data.
//!
//! Start at [`what_could_go_wrong`].

use crate::class::Class;
use crate::classify::Assessment;
use crate::definition::Definition;
use crate::label::Labels;
use crate::signal::{
    DECLARED_DESTRUCTIVE, LOST, Place, TAKES_AMOUNT, TAKES_CODE, TAKES_PATH, TAKES_QUERY,
    TAKES_RECIPIENT, TAKES_URL,
};

/// What the text is made of. It can be had from a definition or from the catalogue.
#[derive(Clone, Debug)]
pub(crate) struct Hazard<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) class: Class,
    pub(crate) labels: Labels,
    /// The names of its own arguments.
    pub(crate) arguments: Vec<&'a str>,
    /// What single arguments are: the text of the signal, the argument.
    pub(crate) takes: Vec<(String, &'a str)>,
    pub(crate) asks_for_person: bool,
    /// Whether it is destructive only because its server declares that.
    pub(crate) is_declared: bool,
}

/// What could go wrong if an agent calls the tool unwatched.
pub fn what_could_go_wrong(
    server: &str,
    definition: &Definition<'_>,
    found: &Assessment,
) -> String {
    let takes = found.signals.iter().filter_map(|signal| match &signal.place {
        Place::Argument(name) => Some((signal.what.to_string(), &**name)),
        _ => None,
    });
    Hazard {
        server,
        tool: &definition.name,
        class: found.class,
        labels: found.labels,
        arguments: definition.argument_names().collect(),
        takes: takes.collect(),
        asks_for_person: found.asks_for_person(),
        is_declared: is_declared(found.signals.iter().map(|signal| signal.what.to_string())),
    }
    .text()
}

/// Whether nothing but its server's declaration makes a tool destructive, by the texts of its signals.
pub(crate) fn is_declared(signals: impl IntoIterator<Item = impl AsRef<str>>) -> bool {
    let mut declared = false;
    for signal in signals {
        match signal.as_ref() {
            DECLARED_DESTRUCTIVE => declared = true,
            text if text.ends_with("class destructive") || text == LOST => return false,
            _ => {}
        }
    }
    declared
}

impl Hazard<'_> {
    pub(crate) fn text(&self) -> String {
        let mut text = self.of_class();
        for (what, argument) in &self.takes {
            text.push_str(&self.of_argument(what, argument));
        }
        let labels = self.labels;
        for (is, sentence) in [
            (labels.reads_private, " Private data in its result is then in the agent's context."),
            (
                labels.ingests_untrusted,
                " Its result can hold text of strangers, which can instruct the agent.",
            ),
            (labels.sends_out, " It can carry data out of the organisation."),
            (self.asks_for_person, " Its server asks that a person decides first."),
        ] {
            if is {
                text.push_str(sentence);
            }
        }
        text
    }

    fn of_class(&self) -> String {
        let (server, tool) = (self.server, self.tool);
        let Some(arguments) = self.named_arguments() else { return self.without_arguments() };
        let s = if self.arguments.len() == 1 { "s" } else { "" };
        match self.class {
            Class::Read => format!(
                "`{tool}` of {server} shows the agent whatever {arguments} select{s}, also what the \
                 task does not need."
            ),
            Class::Write => format!(
                "A wrong or injected value in {arguments} makes `{tool}` of {server} change the wrong \
                 thing, and a loop repeats the mistake."
            ),
            Class::Execute => format!(
                "`{tool}` of {server} runs what {arguments} contain{s}, with the rights of the server: \
                 a text that instructs the agent decides what is run."
            ),
            Class::Destructive if self.is_declared => format!(
                "{server} itself declares `{tool}` destructive: take a wrong or injected value in \
                 {arguments} for a loss that cannot be undone."
            ),
            Class::Destructive => format!(
                "`{tool}` of {server} destroys what {arguments} select{s}. After a wrong or injected \
                 value it does not come back."
            ),
            Class::Financial => format!(
                "`{tool}` of {server} moves money or creates a duty to pay, as {arguments} state{s}. A \
                 wrong recipient or a repeated call costs money."
            ),
            Class::Other => format!(
                "The definition of `{tool}` of {server} does not tell what it does with {arguments}. It \
                 may do more than its name suggests."
            ),
        }
    }

    /// The same for a tool without arguments, which no rule can look at.
    fn without_arguments(&self) -> String {
        let (server, tool) = (self.server, self.tool);
        match self.class {
            Class::Read => format!(
                "`{tool}` of {server} takes no arguments, so a policy can only allow or deny all that \
                 it shows."
            ),
            Class::Write => format!(
                "Called at the wrong moment or in a loop, `{tool}` of {server} changes what should \
                 have stayed."
            ),
            Class::Execute => format!(
                "Every call of `{tool}` of {server} starts something with the rights of the server."
            ),
            Class::Destructive if self.is_declared => format!(
                "{server} itself declares `{tool}` destructive: take every call for a loss that cannot \
                 be undone."
            ),
            Class::Destructive => format!(
                "`{tool}` of {server} destroys data, and takes no argument that a rule could check."
            ),
            Class::Financial => {
                format!("Every call of `{tool}` of {server} moves money or creates a duty to pay.")
            }
            Class::Other => format!(
                "The definition of `{tool}` of {server} does not tell what it does. It may do more than \
                 its name suggests."
            ),
        }
    }

    fn of_argument(&self, what: &str, argument: &str) -> String {
        let reads = self.class == Class::Read;
        match what {
            TAKES_PATH if reads => {
                format!(" `{argument}` can name any file that the server may read, also keys.")
            }
            TAKES_PATH => {
                format!(" `{argument}` can name a file outside the folder that was meant.")
            }
            TAKES_URL => {
                format!(
                    " `{argument}` can point into the internal network, and carry data in itself."
                )
            }
            TAKES_AMOUNT => format!(" `{argument}` has no upper bound but the policy's."),
            TAKES_CODE => format!(" `{argument}` is executed as it is."),
            TAKES_QUERY => format!(" `{argument}` can ask for more than the task needs."),
            TAKES_RECIPIENT => format!(" `{argument}` can name a stranger."),
            _ => String::new(),
        }
    }

    /// Its first arguments; `None` if it has none.
    fn named_arguments(&self) -> Option<String> {
        const SHOWN: usize = 4;
        let shown = self.arguments.iter().take(SHOWN);
        let names: Vec<String> = shown.map(|name| format!("`{name}`")).collect();
        match names.len() {
            0 => None,
            _ if self.arguments.len() > SHOWN => Some(format!("{} and others", names.join(", "))),
            _ => Some(names.join(", ")),
        }
    }
}
