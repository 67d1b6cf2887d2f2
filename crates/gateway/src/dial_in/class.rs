//! Risk classes of tools that 1C programs publish in the field.

use toolgate_policy::Class;

/// The class of a tool that is known by its name; else what the name itself says.
pub(super) fn class(tool: &str) -> Class {
    match tool {
        "execute_query" | "validate_query" | "infobase_info" | "ui_find" | "ui_wait_for"
        | "timer" => Class::Read,
        "execute_code" | "system_spawn_1c_client" | "system_kill_pid" => Class::Execute,
        "close_1c_session" | "restart_1c_session" => Class::Write,
        _ if tool.starts_with("ui_get_") => Class::Read,
        _ if tool.starts_with("ui_") || tool.starts_with("test_client_") => Class::Write,
        _ => Class::by_name(tool),
    }
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
            assert_eq!(class(tool), expected, "{tool}");
        }
    }
}
