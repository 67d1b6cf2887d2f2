//! What could go wrong if an agent calls a tool unwatched: one text per tool, made of its class, its
//! arguments and what it does with data.
//!
//! Start at [`what_could_go_wrong`].

use crate::class::Class;
use crate::classify::Assessment;
use crate::definition::Definition;
use crate::label::Labels;
use crate::signal::{
    Place, TAKES_AMOUNT, TAKES_CODE, TAKES_PATH, TAKES_QUERY, TAKES_RECIPIENT, TAKES_URL,
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
    }
    .text()
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
        let (server, tool, arguments) = (self.server, self.tool, self.named_arguments());
        match self.class {
            Class::Read => format!("`{tool}` of {server} discloses what {arguments} select."),
            Class::Write => format!(
                "A wrong or injected value in {arguments} makes `{tool}` of {server} change \
                 something that was not meant, and a loop does so many times."
            ),
            Class::Execute => format!(
                "`{tool}` of {server} runs what {arguments} contain, with the rights of the server: \
                 an injected text can make the agent run anything."
            ),
            Class::Destructive => format!(
                "`{tool}` of {server} destroys what {arguments} select; after a wrong or injected \
                 value the data does not come back."
            ),
            Class::Financial => format!(
                "`{tool}` of {server} moves money or creates a duty to pay, as {arguments} state: a \
                 wrong recipient or a repeated call costs money."
            ),
            Class::Other => format!(
                "The definition of `{tool}` of {server} does not tell what it does with {arguments}; \
                 it may do more than its name suggests."
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

    fn named_arguments(&self) -> String {
        const SHOWN: usize = 4;
        let shown = self.arguments.iter().take(SHOWN);
        let names: Vec<String> = shown.map(|name| format!("`{name}`")).collect();
        match names.len() {
            0 => "its surroundings".to_owned(),
            _ if self.arguments.len() > SHOWN => format!("{} and others", names.join(", ")),
            _ => names.join(", "),
        }
    }
}
