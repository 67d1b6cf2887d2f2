//! A thousand definitions that differ from the recorded ones in a single field.
//!
//! The names and descriptions are those of public MCP servers (`labels.tsv` of the catalogue).

use serde_json::{Value, json};
use toolgate_dice::Dice;

use super::{CHANGED, User, calls, offer};
use crate::auto_server::AutoServer;
use crate::harness::{Harness, INITIALIZE, shared};
use crate::script::settle;

const LABELS: &str = include_str!("../../../../catalog/tests/data/labels.tsv");
const MUTATIONS: usize = 1_000;
/// A new set of tools after so many mutations.
const ROUND: usize = 50;

/// A definition with everything that the protocol knows.
fn definition(row: &str) -> Value {
    let cells: Vec<&str> = row.split('\t').collect();
    json!({
        "name": cells[2],
        "title": cells[2].replace('_', " "),
        "description": cells[3],
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The id", "minLength": 1},
                "limit": {"type": "integer", "maximum": 100, "default": 10},
                "tags": {"type": "array", "items": {"enum": ["new", "old"]}},
            },
            "required": ["id"],
        },
        "outputSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
        "annotations": {"readOnlyHint": true, "title": cells[1]},
        "_meta": {"vendor": {"version": 1}},
    })
}

/// Every path to a value below `value`, itself included.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                paths(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                paths(item, &format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Changes one field; never the name itself, which would be another tool.
fn mutate(definition: &Value, dice: &mut Dice) -> (Value, String) {
    let mut all = Vec::new();
    paths(definition, "", &mut all);
    all.retain(|path| path != "/name");
    let path = dice.pick(&all);
    let mut mutated = definition.clone();
    let field = mutated.pointer_mut(&path).unwrap();
    match field {
        Value::String(text) => match dice.below(4) {
            0 => text.push('.'),
            1 => *text = text.to_uppercase() + "x",
            2 => text.insert(0, ' '),
            _ => *text = text.chars().rev().collect::<String>() + "!",
        },
        Value::Number(_) => *field = json!(dice.below(1_000_u64) + 1_000),
        Value::Bool(flag) => *flag = !*flag,
        Value::Array(items) => items.push(json!("added")),
        Value::Object(members) if dice.one_in(2) || members.is_empty() || path.is_empty() => {
            members.insert(format!("x{}", dice.below(100_u64)), json!(null));
        }
        Value::Object(members) => {
            let keys: Vec<String> = members.keys().cloned().collect();
            members.remove(&dice.pick(&keys));
        }
        Value::Null => *field = json!(0),
    }
    (mutated, path)
}

#[tokio::test(start_paused = true)]
async fn a_thousand_changes_of_one_field_are_all_detected() {
    let rows: Vec<&str> = LABELS.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
    let mut dice = Dice::new(16);
    for round in 0..MUTATIONS / ROUND {
        let server = AutoServer::with_tools(&[]);
        server.set("tools/call", r#"{"content":[]}"#);
        let tools: Vec<Value> =
            (0..8).map(|n| definition(rows[(round * 8 + n) % rows.len()])).collect();
        let texts: Vec<String> = tools.iter().map(Value::to_string).collect();
        let good: Vec<&str> = texts.iter().map(String::as_str).collect();
        offer(&server, &good);
        let harness = Harness::new();
        harness.apply([harness.played(shared("files"), &server)]);
        let one = User::Session(harness.agent().await, "");
        let all = User::Session(harness.open_all(INITIALIZE).await, "");
        assert!(one.lists(tools[0]["name"].as_str().unwrap()).await);
        all.lists("").await;
        for _ in 0..ROUND {
            let index = dice.below(tools.len());
            let (mutated, path) = mutate(&tools[index], &mut dice);
            assert_ne!(mutated, tools[index], "{path}");
            let name = tools[index]["name"].as_str().unwrap();
            let mutated = mutated.to_string();
            let mut changed = good.clone();
            changed[index] = &mutated;
            let what = format!("{name} {path}: {mutated}");
            // After the list and before the call; then at the next list.
            offer(&server, &changed);
            server.say(CHANGED);
            settle().await;
            calls(&server);
            assert_eq!(one.call_of(name).await, "quarantined", "{what}");
            assert_eq!(all.call_of(&format!("files__{name}")).await, "quarantined", "{what}");
            assert_eq!(calls(&server), 0, "{what}");
            let quoted = format!(r#""name":"{name}""#);
            assert!(!one.lists(&quoted).await, "{what}");
            let neighbour = tools[(index + 1) % tools.len()]["name"].as_str().unwrap();
            assert_eq!(one.call_of(neighbour).await, "sent", "{what}: a neighbour");
            offer(&server, &good);
            server.say(CHANGED);
            settle().await;
            assert_eq!(one.call_of(name).await, "sent", "{what}: back");
        }
    }
}
