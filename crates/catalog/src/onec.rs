//! Curated classes of tools that 1C programs publish. They apply to tools of sessions only: a server
//! may have a tool of the same name that does something else.

use crate::class::Class;
use crate::classify::{Assessment, classify};
use crate::definition::Definition;
use crate::prose::{self, ProseFinding};
use crate::signal::What;

/// The curated class of a tool of a session.
pub fn curated(tool: &str) -> Option<Class> {
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

/// The class that the name of a session tool alone implies.
pub fn session_class(tool: &str) -> Class {
    curated(tool).unwrap_or_else(|| Class::by_name(tool))
}

/// Judges a tool of a session: a curated class applies, unless the definition states more.
pub fn classify_session(definition: &Definition<'_>) -> Assessment {
    let found = classify(definition);
    let Some(curated) = curated(&definition.name) else { return found };
    let mut class = curated;
    for text in [&definition.description, &definition.title].into_iter().flatten() {
        let prose = prose::find(text);
        // Queries of 1C only read, and this is what their description calls running.
        let is_query = prose.is_query && !prose.runs_more;
        let is_normal = prose.class == Some(Class::Execute) && (is_query || only_starts(&prose));
        class = prose.class.filter(|_| !is_normal).map_or(class, |stated| class.raised(stated));
    }
    if definition.hints.destructive == Some(true) {
        class = class.raised(Class::Destructive);
    } else if definition.hints.read_only == Some(false) {
        class = class.raised(Class::Write);
    }
    if class == curated {
        found.with_class(class, What::Curated(class))
    } else {
        raised(found, class)
    }
}

/// Whether all that is run is a program that is started, such as a client.
fn only_starts(prose: &ProseFinding) -> bool {
    prose.signals.iter().all(|(what, _)| match what {
        What::Verb(verb, Class::Execute) => matches!(*verb, "запустить" | "launch"),
        what => what.class() != Some(Class::Execute),
    })
}

/// The assessment with a class that its own signals name already.
fn raised(mut found: Assessment, class: Class) -> Assessment {
    found.class = class;
    found.level = class.level();
    found.confidence = found.confidence.min(0.8);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curated_classes_are_a_floor() {
        for (name, description, class) in [
            ("execute_query", "", Class::Read),
            ("execute_query", "Выполняет запрос на языке 1С", Class::Read),
            ("execute_query", "Executes a query and returns rows", Class::Read),
            ("execute_query", "Executes a query and deletes the rows it finds", Class::Destructive),
            ("execute_query", "Выполняет запрос и удаляет найденное", Class::Destructive),
            ("execute_query", "Runs a program", Class::Execute),
            ("execute_code", "Возвращает результат", Class::Execute),
            ("ui_click", "Нажимает кнопку", Class::Write),
            ("ui_get_value", "", Class::Read),
            ("ui_get_value", "Очищает все поля", Class::Destructive),
            ("timer", "", Class::Read),
            ("test_client_start", "Запускает клиент тестирования", Class::Write),
            ("test_client_stop", "", Class::Write),
            ("close_1c_session", "Закрывает сеанс", Class::Write),
            ("delete_order", "", Class::Destructive),
            ("Найти", "", Class::Read),
        ] {
            let definition =
                Definition { description: Some(description.into()), ..Definition::named(name) };
            assert_eq!(classify_session(&definition).class, class, "{name}: {description}");
        }
        assert_eq!(session_class("execute_query"), Class::Read);
        assert_eq!(session_class("get_object"), Class::Read);
    }
}
