//! Attack patterns: known ways to misuse tools, and which of them apply to a tool.
//!
//! Each has a page in `docs/attacks` with the rule that stops it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

    /// What happens, in one clause.
    pub fn summary(self) -> &'static str {
        match self {
            AttackPattern::ConfusedDeputy => "the server acts with rights that the caller lacks",
            AttackPattern::RunawayLoop => "an agent repeats the call without end",
            AttackPattern::RugPull => "the definition changes after it was approved",
            AttackPattern::ToolPoisoning => "a text that the model reads instructs it",
            AttackPattern::Shadowing => "another server offers a tool of the same name",
            AttackPattern::LethalTrifecta => {
                "private data, text of strangers and a way out meet in one agent"
            }
            AttackPattern::HiddenText => "the definition holds characters that people do not see",
            AttackPattern::SchemaSmuggling => "policy and server read the arguments differently",
            AttackPattern::ClosingNotYours => "an agent names the id of another agent's work",
        }
    }
}

impl Serialize for AttackPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}

impl<'de> Deserialize<'de> for AttackPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let slug = String::deserialize(deserializer)?;
        let found = Self::ALL.into_iter().find(|pattern| pattern.slug() == slug);
        let unknown = || serde::de::Error::custom(format!("unknown attack pattern `{slug}`"));
        found.ok_or_else(unknown)
    }
}

/// The attack patterns that apply to a tool, the most specific first.
pub fn attack_patterns(
    definition: &Definition<'_>,
    found: &Assessment,
    has_hidden_text: bool,
) -> Vec<AttackPattern> {
    let labels = found.labels;
    let moves_data = labels.reads_private || labels.ingests_untrusted || labels.sends_out;
    let applies = [
        (has_hidden_text, AttackPattern::HiddenText),
        (closes(found) && takes_id(definition), AttackPattern::ClosingNotYours),
        (moves_data, AttackPattern::LethalTrifecta),
        (found.class != Class::Read && definition.parameters > 0, AttackPattern::ConfusedDeputy),
        (!definition.arguments.is_empty(), AttackPattern::SchemaSmuggling),
        (true, AttackPattern::RunawayLoop),
        (labels.ingests_untrusted || definition.is_described(), AttackPattern::ToolPoisoning),
        (true, AttackPattern::RugPull),
    ];
    applies.into_iter().filter_map(|(is, pattern)| is.then_some(pattern)).collect()
}

fn closes(found: &Assessment) -> bool {
    const VERBS: [&str; 14] = [
        "close",
        "end",
        "cancel",
        "delete",
        "remove",
        "resume",
        "stop",
        "terminate",
        "kill",
        "закрыть",
        "удалить",
        "завершить",
        "остановить",
        "отменить",
    ];
    found.signals.iter().any(|signal| match signal.what {
        What::Verb(verb, _) | What::Vague(verb) => VERBS.contains(&verb),
        _ => false,
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
