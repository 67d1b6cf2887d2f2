//! Risk classes of session tools.
//!
//! The operator's word about a tool of a kind decides. Else the class is that of the tool's name, and
//! what its program says of it, in annotations and in its description, can raise it.
//!
//! Invariant: what a program says of its own tool never lowers the class.
//! Invariant: where several kinds have a tool, and nothing says which of them is called, the strictest
//! class is taken.

use std::collections::HashMap;

use toolgate_policy::Class;
use toolgate_session::{KnownSessionTool, Tool};

use toolgate_upstream::class_of_definition;

/// The operator's word about single tools: of all kinds, and of kinds that have settings of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionClasses {
    /// Of kinds that have no settings of their own.
    pub common: HashMap<String, Class>,
    /// Of the others, complete.
    pub kinds: HashMap<String, HashMap<String, Class>>,
}

impl SessionClasses {
    /// The class of a tool that a grant knows, whichever kind of session is called.
    pub fn of(&self, known: &KnownSessionTool) -> Class {
        let classes =
            known.offered.iter().map(|offered| self.of_kind(&offered.kind, &offered.tool));
        classes.reduce(Class::raised).unwrap_or_else(|| by_name(&known.original))
    }

    /// The class of a tool of sessions of this kind.
    pub(super) fn of_kind(&self, kind: &str, tool: &Tool) -> Class {
        let said = self.kinds.get(kind).unwrap_or(&self.common).get(&*tool.name);
        said.copied().unwrap_or_else(|| by_itself(tool))
    }
}

/// The class of a tool that the operator has said nothing of.
fn by_itself(tool: &Tool) -> Class {
    let of_field = of_field(&tool.name);
    let class = of_field.unwrap_or_else(|| Class::by_name(&tool.name));
    let declared = class_of_definition(tool.raw.get());
    // What is known of tools of the field is more than a few words about them.
    let described = tool.description().filter(|_| of_field.is_none());
    declared
        .into_iter()
        .chain(described.and_then(|text| of_description(&text)))
        .fold(class, Class::raised)
}

/// The class of a tool that is known by its name; else what the name itself says.
pub(super) fn by_name(tool: &str) -> Class {
    of_field(tool).unwrap_or_else(|| Class::by_name(tool))
}

/// Tools that 1C programs publish in the field.
fn of_field(tool: &str) -> Option<Class> {
    Some(match tool {
        "execute_query" | "validate_query" | "infobase_info" | "ui_find" | "ui_wait_for"
        | "timer" => Class::Read,
        "execute_code" | "system_spawn_1c_client" | "system_kill_pid" => Class::Execute,
        "close_1c_session" | "restart_1c_session" => Class::Write,
        _ if tool.starts_with("ui_get_") => Class::Read,
        _ if tool.starts_with("ui_") || tool.starts_with("test_client_") => Class::Write,
        _ => return None,
    })
}

/// What a description says at the beginning of its sentences: `Deletes an order.` Words elsewhere say
/// too little: `Finds orders to delete.`
fn of_description(text: &str) -> Option<Class> {
    let text = text.get(..text.floor_char_boundary(DESCRIBED)).unwrap_or_default();
    let sentences = text.split(['.', '!', '?', ';', ':', '\n']);
    let verbs = sentences.filter_map(|sentence| {
        let word = sentence.split(|c: char| !c.is_alphabetic()).find(|word| !word.is_empty())?;
        of_verb(&word.to_lowercase())
    });
    verbs.filter(|class| *class > Class::Read).reduce(Class::raised)
}

/// How many bytes of a description are read.
const DESCRIBED: usize = 16 * 1024;

/// `delete`, `deletes`, `удаляет`, `удалить`.
fn of_verb(verb: &str) -> Option<Class> {
    const STEMS: [(&str, Class); 12] = [
        ("удал", Class::Destructive),
        ("очищ", Class::Destructive),
        ("очист", Class::Destructive),
        ("уничтож", Class::Destructive),
        ("выполн", Class::Execute),
        ("запуск", Class::Execute),
        ("запуст", Class::Execute),
        ("созда", Class::Write),
        ("измен", Class::Write),
        ("запис", Class::Write),
        ("отправ", Class::Write),
        ("закры", Class::Write),
    ];
    let stem = STEMS.iter().find(|(stem, _)| verb.starts_with(stem));
    let plain = verb.strip_suffix('s').unwrap_or(verb);
    let class = stem.map_or_else(|| Class::by_name(plain), |(_, class)| *class);
    (class != Class::Other).then_some(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_the_field_have_their_class() {
        for (tool, expected) in [
            ("execute_query", Class::Read),
            ("validate_query", Class::Read),
            ("get_metadata", Class::Read),
            ("find_references_to_object", Class::Read),
            ("infobase_info", Class::Read),
            ("ui_get_table_rows", Class::Read),
            ("ui_wait_for", Class::Read),
            ("ui_click", Class::Write),
            ("test_client_start", Class::Write),
            ("restart_1c_session", Class::Write),
            ("execute_code", Class::Execute),
            ("system_kill_pid", Class::Execute),
            ("delete_order", Class::Destructive),
            ("Найти", Class::Other),
        ] {
            assert_eq!(by_name(tool), expected, "{tool}");
        }
    }

    #[test]
    fn descriptions_say_by_their_sentences_what_a_tool_does() {
        for (text, expected) in [
            ("Deletes an order.", Some(Class::Destructive)),
            ("Finds an order. DROPS it", Some(Class::Destructive)),
            ("Удаляет помеченные объекты", Some(Class::Destructive)),
            ("Проводит документ: отправляет письмо", Some(Class::Write)),
            ("- run: the code", Some(Class::Execute)),
            ("Finds orders to delete", None),
            ("Gets the list of closed orders", None),
            ("", None),
        ] {
            assert_eq!(of_description(text), expected, "{text}");
        }
    }
}
