//! Classes of single definitions.

use toolgate_catalog::{Class, Definition, Level, classify};

/// Ways to say in a name, a description or an argument what a tool does: class (or several), definition.
const PHRASINGS: &str = include_str!("../data/phrasings.tsv");

#[test]
fn what_a_tool_does_is_understood_however_it_is_said() {
    let mut wrong = Vec::new();
    for line in PHRASINGS.lines() {
        let (classes, definition) = line.split_once('\t').unwrap();
        let found = classify(&Definition::parse(definition).unwrap());
        if !classes.split('|').any(|class| class == found.class.as_str()) {
            wrong.push(format!("{}, not {classes}: {definition}", found.class.as_str()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Name, description, class, level.
const MUST_HOLD: &[(&str, &str, Class)] = &[
    (
        "close_1c_session",
        "Closes the 1C:Enterprise session and returns the command that starts it again",
        Class::Write,
    ),
    ("close_1c_session", "", Class::Write),
    ("close", "Close the current diagram", Class::Write),
    ("close_agent_session", "Close an agent session and mark it completed", Class::Write),
    ("close_agent_session", "", Class::Write),
    ("close_session", "", Class::Other),
    ("execute_code", "", Class::Execute),
    ("execute_code", "Executes code on the 1C side", Class::Execute),
    ("delete_file", "", Class::Destructive),
    ("delete_anything", "Returns the file", Class::Destructive),
    ("drop_table", "", Class::Destructive),
    ("wipe_disk", "", Class::Destructive),
    ("remove_all", "", Class::Destructive),
    ("create_payment", "", Class::Financial),
    ("make_payment", "", Class::Financial),
    ("refund_order", "", Class::Financial),
    ("transfer_funds", "", Class::Financial),
    ("transfer", "Transfers money between accounts", Class::Financial),
    ("charge_card", "", Class::Financial),
    ("create_charge", "", Class::Financial),
    ("issue_refund", "", Class::Financial),
    ("payment_create", "", Class::Financial),
    ("send_payment", "", Class::Financial),
    ("get_user", "", Class::Read),
    ("list_files", "Lists files", Class::Read),
    ("search_web", "", Class::Read),
    ("get_and_delete_all", "", Class::Destructive),
    ("get_report", "Returns a report and deletes the original", Class::Destructive),
    ("get_report", "Gets the report, then wipes the table", Class::Destructive),
    ("get_report", "Returns a report. All rows will be deleted.", Class::Destructive),
    ("list_orders", "Finds orders to delete", Class::Read),
    ("get_order", "Returns an order and charges the card", Class::Financial),
    ("get_rows", "Get rows. Does not delete anything.", Class::Read),
    ("get_refund", "Get a refund", Class::Read),
    ("list_charges", "", Class::Read),
    ("get_updates", "", Class::Read),
    ("execute_query", "Execute an SQL query", Class::Execute),
    ("execute_query", "Run a read-only SQL query", Class::Read),
    ("execute_code", "Runs code in read-only mode", Class::Execute),
    ("delete_user", "Read-only. Shows what would happen.", Class::Destructive),
    ("УдалитьДокумент", "", Class::Destructive),
    ("ПолучитьОстатки", "Возвращает остатки товаров", Class::Read),
    ("get_Остатки", "", Class::Read),
    ("ОчиститьБазу", "Удаляет все данные", Class::Destructive),
    ("СоздатьЗаказ", "", Class::Write),
    ("ВыполнитьКод", "Выполняет произвольный код", Class::Execute),
    ("ОплатитьСчет", "", Class::Financial),
    ("Отчет", "Показывает продажи и удаляет временные таблицы", Class::Destructive),
    ("Отчет", "Показывает продажи и не удаляет ничего", Class::Read),
    ("HTTPЗапрос", "", Class::Read),
    ("undelete", "", Class::Write),
    ("show_page", "Shows a page.\n\n**Tip:** use the zoom. Note: it is slow.", Class::Read),
    ("tip_user", "Tip a user", Class::Financial),
    ("show_page", "Shows a page. Delete: removes it.", Class::Destructive),
    ("place_stock_order", "Place a stock order", Class::Financial),
    ("place_order", "Place an order for crypto", Class::Financial),
    ("close_positions", "Closes all open positions at the market price", Class::Financial),
    ("exercise_option", "Exercises an option", Class::Financial),
    ("exercise_lookup", "Looks up exercises for a muscle", Class::Read),
    ("get_clock", "Retrieves and formats the market clock", Class::Read),
    ("get_disk", "Reads the disk and formats it", Class::Write),
    ("format_disk", "Reads and formats the disk", Class::Destructive),
    ("pick", "Select an element on the page", Class::Write),
    ("select_rows", "Select rows of a table", Class::Read),
    ("", "", Class::Other),
];

#[test]
fn what_must_hold() {
    let mut wrong = Vec::new();
    for (name, description, class) in MUST_HOLD {
        let definition =
            Definition { description: Some((*description).into()), ..Definition::named(name) };
        let found = classify(&definition);
        if found.class != *class {
            wrong.push(format!(
                "{name} / {description}: {:?}, not {class:?}: {:?}",
                found.class, found.signals
            ));
        }
        assert_eq!(found.level, class_level(found.class), "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn class_level(class: Class) -> Level {
    match class {
        Class::Read | Class::Other => Level::Low,
        Class::Write => Level::Medium,
        Class::Execute => Level::High,
        Class::Destructive | Class::Financial => Level::Critical,
    }
}

#[test]
fn names_alone_imply_a_class() {
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
        ("user_list", Class::Read),
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
        ("undelete", Class::Write),
        ("dropdown_items", Class::Other),
        ("close", Class::Write),
        ("close_session", Class::Write),
        ("not_delete", Class::Other),
        ("dont_delete_it", Class::Other),
        ("invoice_list", Class::Read),
        ("payment_status", Class::Read),
        ("subscription_cancel", Class::Financial),
        ("УДАЛИТЬ_ВСЁ", Class::Destructive),
        ("rm", Class::Destructive),
        ("del", Class::Destructive),
        ("wire_money", Class::Financial),
        ("send_bitcoin", Class::Financial),
        ("shutdown_server", Class::Write),
    ] {
        assert_eq!(Class::by_name(name), class, "{name}");
    }
    for class in Class::ALL {
        assert_eq!(Class::parse(class.as_str()), Some(class));
    }
}

fn class_of(raw: &str) -> Class {
    classify(&Definition::parse(raw).unwrap()).class
}

#[test]
fn annotations_and_arguments_only_raise() {
    for (raw, class) in [
        (
            r#"{"name":"delete_all","annotations":{"readOnlyHint":true,"destructiveHint":false}}"#,
            Class::Destructive,
        ),
        (r#"{"name":"get_x","annotations":{"destructiveHint":true}}"#, Class::Destructive),
        (r#"{"name":"get_x","annotations":{"readOnlyHint":false}}"#, Class::Write),
        (r#"{"name":"get_x","annotations":{"readOnlyHint":true}}"#, Class::Read),
        (r#"{"name":"pay","annotations":{"destructiveHint":true}}"#, Class::Financial),
        (r#"{"name":"foo","annotations":{"readOnlyHint":true}}"#, Class::Other),
        (
            r#"{"name":"get_x","inputSchema":{"properties":{"command":{"type":"string"}}}}"#,
            Class::Execute,
        ),
        (
            r#"{"name":"explain_x","inputSchema":{"properties":{"command":{"type":"string"}}}}"#,
            Class::Read,
        ),
        (
            r#"{"name":"update_x","inputSchema":{"properties":{"sql":{"type":"string"}}}}"#,
            Class::Execute,
        ),
        (
            r#"{"name":"manage_x","description":"Manages x","inputSchema":{"properties":{"action":{"enum":["get","delete"]}}}}"#,
            Class::Destructive,
        ),
        (
            r#"{"name":"get_x","inputSchema":{"properties":{"how":{"enum":["read","purge","list"]}}}}"#,
            Class::Destructive,
        ),
        (
            r#"{"name":"list_x","inputSchema":{"properties":{"order":{"enum":["asc","desc"]}}}}"#,
            Class::Read,
        ),
        (
            r#"{"name":"sync_x","inputSchema":{"properties":{"delete_extra":{"type":"boolean"}}}}"#,
            Class::Destructive,
        ),
        (
            r#"{"name":"get_page","inputSchema":{"properties":{"removeComments":{"type":"boolean"}}}}"#,
            Class::Read,
        ),
        (
            r#"{"name":"update_page","inputSchema":{"properties":{"removeComments":{"type":"boolean"}}}}"#,
            Class::Destructive,
        ),
        (
            r#"{"name":"get_page","inputSchema":{"properties":{"delete_comments":{"type":"boolean"}}}}"#,
            Class::Destructive,
        ),
        (
            r#"{"name":"get_x","inputSchema":{"properties":{"include_deleted":{"type":"boolean"}}}}"#,
            Class::Read,
        ),
        (
            r#"{"name":"create_x","inputSchema":{"properties":{"amount":{"type":"number"},"currency":{"type":"string"}}}}"#,
            Class::Financial,
        ),
        (
            r#"{"name":"list_x","inputSchema":{"properties":{"min_amount":{"type":"number"},"currency":{"type":"string"}}}}"#,
            Class::Read,
        ),
        (
            r#"{"name":"get_x","inputSchema":{"properties":{"country_code":{"type":"string"}}}}"#,
            Class::Read,
        ),
        (
            r#"{"name":"get_x","inputSchema":{"properties":{"code":{"type":"string"}}}}"#,
            Class::Read,
        ),
    ] {
        assert_eq!(class_of(raw), class, "{raw}");
    }
}

#[test]
fn signals_tell_why() {
    let found = classify(&Definition {
        description: Some("".into()),
        ..Definition::named("close_session")
    });
    assert!(found.confidence < 0.5);
    let shown: Vec<String> =
        found.signals.iter().map(|signal| format!("{} ({})", signal.what, signal.place)).collect();
    assert_eq!(
        shown,
        [
            "the effect of `close` depends on its object (name)",
            "there is no description (description)"
        ]
    );
    let asks = "Ends the session. Do not call on your own initiative.";
    let found =
        classify(&Definition { description: Some(asks.into()), ..Definition::named("end_it") });
    assert!(found.asks_for_person());
    assert_eq!(serde_json::to_value(&found.signals[0]).unwrap()["where"], "name");
}

#[test]
fn labels_of_data() {
    for (raw, expected) in [
        (
            r#"{"name":"read_file","description":"Reads a file","inputSchema":{"properties":{"path":{"type":"string"}}}}"#,
            "reads_private",
        ),
        (
            r#"{"name":"fetch","description":"Fetches a page","inputSchema":{"properties":{"url":{"type":"string"}}}}"#,
            "reads_private ingests_untrusted sends_out",
        ),
        (
            r#"{"name":"send_email","description":"Sends an email","inputSchema":{"properties":{"to":{"type":"string"}}}}"#,
            "sends_out",
        ),
        (
            r#"{"name":"list_issues","description":"Lists issues of a project"}"#,
            "ingests_untrusted",
        ),
        (
            r#"{"name":"run_shell","description":"Runs a command","inputSchema":{"properties":{"command":{"type":"string"}}}}"#,
            "reads_private ingests_untrusted sends_out",
        ),
        (r#"{"name":"add_numbers","description":"Adds two numbers"}"#, ""),
        (r#"{"name":"get_time","description":"Returns the time"}"#, ""),
    ] {
        let found = classify(&Definition::parse(raw).unwrap());
        assert_eq!(found.labels.names().collect::<Vec<_>>().join(" "), expected, "{raw}");
    }
}
