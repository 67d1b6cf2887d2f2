//! Tools that real 1C programs publish, with plausible answers.

use serde_json::{Value, json};

use super::ClientProfile;

/// The definitions of a profile, as `session.register` carries them.
pub fn definitions(profile: ClientProfile) -> Value {
    let names: &[(&str, &str, &[&str])] = match profile {
        ClientProfile::Thin => &THIN,
        ClientProfile::Test => &TEST,
        ClientProfile::Server => &SERVER,
    };
    let definition = |(name, description, arguments): &(&str, &str, &[&str])| {
        let properties: serde_json::Map<String, Value> = arguments
            .iter()
            .map(|argument| ((*argument).to_owned(), json!({"type": kind_of(argument)})))
            .collect();
        json!({
            "name": name,
            "description": description,
            "input_schema": {"type": "object", "properties": properties},
        })
    };
    names.iter().map(definition).collect()
}

/// The answer of such a tool, in the shape that clients use.
pub(super) fn answer(name: &str, arguments: &Value) -> Value {
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    match name {
        "infobase_info" => json!({"content": [{"type": "json", "json": {
            "Конфигурация": "УправлениеТорговлей", "Версия": "11.5.18", "Платформа": "8.3.27.1508",
        }}]}),
        "execute_query" => json!({
            "content": [{"type": "json", "json": {"Строки": [{"Ссылка": "Заказ 1", "Сумма": 100.50}]}}],
            "structured_content": {"Строки": [{"Ссылка": "Заказ 1", "Сумма": 100.50}]},
        }),
        "validate_query" => text("Запрос корректен".to_owned()),
        "ui_find" => text("{\"ok\":true,\"found\":1}".to_owned()),
        // Business errors are returned as text, without `is_error`.
        "ui_click" if arguments.get("Кнопка").is_none() => {
            text("{\"ok\":false,\"error\":\"Не указана кнопка\"}".to_owned())
        }
        "system_kill_pid" => json!({
            "content": [{"type": "text", "text": "Процесс не найден"}], "is_error": true,
        }),
        _ => text(format!("{{\"ok\":true,\"tool\":\"{name}\",\"arguments\":{arguments}}}")),
    }
}

fn kind_of(argument: &str) -> &'static str {
    match argument {
        "Секунды" | "pid" | "Номер" => "integer",
        "Параметры" => "object",
        _ => "string",
    }
}

type Definition = (&'static str, &'static str, &'static [&'static str]);

const THIN: [Definition; 4] = [
    ("infobase_info", "Сведения об информационной базе", &[]),
    ("system_spawn_1c_client", "Запустить клиент 1С", &["Строка", "Параметры"]),
    ("system_kill_pid", "Завершить процесс", &["pid"]),
    ("timer", "Подождать", &["Секунды"]),
];

const TEST: [Definition; 14] = [
    ("test_client_start", "Запустить клиент тестирования", &["Строка"]),
    ("test_client_stop", "Остановить клиент тестирования", &[]),
    ("ui_find", "Найти элемент формы", &["Имя"]),
    ("ui_open_form", "Открыть форму", &["Ссылка"]),
    ("ui_activate", "Активизировать окно", &["Имя"]),
    ("ui_click", "Нажать кнопку", &["Кнопка"]),
    ("ui_close", "Закрыть форму", &["Имя"]),
    ("ui_input", "Ввести текст", &["Поле", "Текст"]),
    ("ui_select", "Выбрать значение", &["Поле", "Значение"]),
    ("ui_select_row", "Выбрать строку", &["Таблица", "Номер"]),
    ("ui_get_value", "Получить значение поля", &["Поле"]),
    ("ui_get_cell_value", "Получить значение ячейки", &["Таблица", "Колонка"]),
    ("ui_get_table_rows", "Получить строки таблицы", &["Таблица"]),
    ("ui_wait_for", "Дождаться элемента", &["Имя", "Секунды"]),
];

const SERVER: [Definition; 7] = [
    ("execute_query", "Выполнить запрос", &["Запрос", "Параметры"]),
    ("get_metadata", "Получить метаданные", &["Имя"]),
    ("get_object_by_link", "Получить объект по ссылке", &["Ссылка"]),
    ("get_link_of_object", "Получить ссылку объекта", &["Имя"]),
    ("find_references_to_object", "Найти ссылки на объект", &["Ссылка"]),
    ("get_access_rights", "Получить права доступа", &["Имя"]),
    ("validate_query", "Проверить запрос", &["Запрос"]),
];
