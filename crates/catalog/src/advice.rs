//! What could go wrong with a tool, and which attack patterns apply to it.

use serde::{Serialize, Serializer};

use crate::class::Class;
use crate::classify::Assessment;
use crate::definition::Definition;
use crate::signal::What;

/// A known way to misuse tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttackPattern {
    /// The tool acts with rights that its caller does not have.
    ConfusedDeputy,
    /// An agent repeats a call without end.
    RunawayLoop,
    /// A definition changes after it was approved.
    RugPull,
    /// A description instructs the model.
    ToolPoisoning,
    /// Two servers offer the same or a confusable name.
    Shadowing,
    /// Private data, text of strangers and a way out meet in one agent.
    LethalTrifecta,
    /// A definition holds characters that people do not see.
    HiddenText,
    /// Arguments carry what the schema does not describe.
    SchemaSmuggling,
    /// A caller ends what belongs to another.
    ClosingNotYours,
}

impl AttackPattern {
    /// All patterns.
    pub const ALL: [AttackPattern; 9] = [
        AttackPattern::ConfusedDeputy,
        AttackPattern::RunawayLoop,
        AttackPattern::RugPull,
        AttackPattern::ToolPoisoning,
        AttackPattern::Shadowing,
        AttackPattern::LethalTrifecta,
        AttackPattern::HiddenText,
        AttackPattern::SchemaSmuggling,
        AttackPattern::ClosingNotYours,
    ];

    /// The name of its page.
    pub fn slug(self) -> &'static str {
        match self {
            AttackPattern::ConfusedDeputy => "confused-deputy",
            AttackPattern::RunawayLoop => "runaway-loop",
            AttackPattern::RugPull => "rug-pull",
            AttackPattern::ToolPoisoning => "tool-poisoning",
            AttackPattern::Shadowing => "shadowing",
            AttackPattern::LethalTrifecta => "lethal-trifecta",
            AttackPattern::HiddenText => "hidden-text",
            AttackPattern::SchemaSmuggling => "schema-smuggling",
            AttackPattern::ClosingNotYours => "closing-what-is-not-yours",
        }
    }
}

impl Serialize for AttackPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}

/// The attack patterns that apply to a tool, the most specific first.
pub fn attack_patterns(definition: &Definition<'_>, found: &Assessment) -> Vec<AttackPattern> {
    let mut patterns = Vec::new();
    let mut add = |applies: bool, pattern| {
        if applies {
            patterns.push(pattern);
        }
    };
    add(closes(found) && takes_id(definition), AttackPattern::ClosingNotYours);
    let labels = found.labels;
    add(
        labels.reads_private || labels.ingests_untrusted || labels.sends_out,
        AttackPattern::LethalTrifecta,
    );
    add(found.class != Class::Read && definition.parameters > 0, AttackPattern::ConfusedDeputy);
    add(!definition.arguments.is_empty(), AttackPattern::SchemaSmuggling);
    add(true, AttackPattern::RunawayLoop);
    add(labels.ingests_untrusted || definition.is_described(), AttackPattern::ToolPoisoning);
    add(true, AttackPattern::RugPull);
    patterns
}

fn closes(found: &Assessment) -> bool {
    found.signals.iter().any(|signal| {
        matches!(
            signal.what,
            What::Verb(
                "close"
                    | "end"
                    | "cancel"
                    | "delete"
                    | "remove"
                    | "resume"
                    | "stop"
                    | "terminate"
                    | "kill"
                    | "закрыть"
                    | "удалить"
                    | "завершить"
                    | "остановить"
                    | "отменить",
                _
            )
        )
    })
}

fn takes_id(definition: &Definition<'_>) -> bool {
    definition.arguments.iter().any(|argument| {
        let name = argument.name.to_ascii_lowercase();
        name == "id"
            || name.ends_with("_id")
            || name.ends_with("uid")
            || argument.name.ends_with("Id")
    })
}

/// What could go wrong if an agent calls the tool unwatched.
pub fn what_could_go_wrong(
    server: &str,
    definition: &Definition<'_>,
    found: &Assessment,
) -> String {
    let tool = &definition.name;
    let arguments = named_arguments(definition);
    let mut text = match found.class {
        Class::Read => format!("`{tool}` of {server} returns what {arguments} select."),
        Class::Write => format!(
            "`{tool}` of {server} changes what {arguments} select. A wrong or injected value changes \
             something that was not meant, and a loop does so many times."
        ),
        Class::Execute => format!(
            "`{tool}` of {server} runs what {arguments} contain, with the rights of the server. An \
             injected text can make the agent run anything."
        ),
        Class::Destructive => format!(
            "`{tool}` of {server} destroys what {arguments} select. A wrong or injected value loses \
             data that does not come back."
        ),
        Class::Financial => format!(
            "`{tool}` of {server} moves money or creates a duty to pay, as {arguments} state. A wrong \
             recipient or a repeated call costs money."
        ),
        Class::Other => format!(
            "What `{tool}` of {server} does is not clear from its definition. It may do more than its \
             name suggests."
        ),
    };
    for (is, sentence) in [
        (
            found.labels.reads_private,
            " Its result may hold private data, which then is in the agent's context.",
        ),
        (
            found.labels.ingests_untrusted,
            " Its result may hold text of strangers, which can instruct the agent.",
        ),
        (found.labels.sends_out, " It can carry data out of the organisation."),
        (found.asks_for_person(), " Its server asks that a person decides first."),
    ] {
        if is {
            text.push_str(sentence);
        }
    }
    text
}

fn named_arguments(definition: &Definition<'_>) -> String {
    const SHOWN: usize = 4;
    let top = definition.arguments.iter().take(definition.parameters.min(SHOWN));
    let names: Vec<String> = top.map(|argument| format!("`{}`", argument.name)).collect();
    match names.len() {
        0 => "its surroundings".to_owned(),
        _ if definition.parameters > SHOWN => format!("{} and others", names.join(", ")),
        _ => names.join(", "),
    }
}
