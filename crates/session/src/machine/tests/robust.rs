//! For any input of a client: no panic, no deep recursion, and all output is JSON.

use serde_json::{Value, json};
use toolgate_dice::Dice;

use super::{Harness, card};

fn next(dice: &mut Dice) -> usize {
    usize::try_from(dice.roll() >> 33).unwrap()
}

fn frames() -> Vec<String> {
    let register = card("u1", "client", "trade", &["find", "Провести"]);
    let wire = format!("mgr-1-{:032x}", 1);
    [
        json!({"jsonrpc": "2.0", "id": 1, "method": "session.register", "params": register}),
        json!({"jsonrpc": "2.0", "method": "session.tools_changed", "params": {"tools": register["tools"]}}),
        json!({"jsonrpc": "2.0", "id": wire, "result": {"content": [{"type": "json", "json": {"Ключ": [1, {}]}}], "structured_content": {}}}),
        json!({"jsonrpc": "2.0", "id": wire, "error": {"code": -1, "message": "нет"}}),
        json!({"jsonrpc": "2.0", "id": "x", "method": "session.bye", "params": null}),
    ]
    .iter()
    .map(Value::to_string)
    .collect()
}

fn spoil(dice: &mut Dice, frame: &str) -> String {
    let mut chars: Vec<char> = frame.chars().collect();
    for _ in 0..=next(dice) % 3 {
        if chars.is_empty() {
            break;
        }
        let at = next(dice) % chars.len();
        match next(dice) % 4 {
            0 => drop(chars.remove(at)),
            1 => chars
                .insert(at, ['{', '}', '[', ']', '"', ',', ':', '\\', '0', 'n'][next(dice) % 10]),
            2 => chars.truncate(at + 1),
            _ => {
                let code = u32::try_from(next(dice) % 0x500).unwrap();
                chars[at] = char::from_u32(code).unwrap_or('x');
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn corrupted_frames_are_harmless() {
    let frames = frames();
    for seed in 0..3_000 {
        let mut dice = Dice::new(seed);
        let mut harness = Harness::new();
        harness.join(1, "u1", "client", &["find"]);
        harness.call(1, "find", "{}");
        harness.open(2, None);
        for _ in 0..4 {
            let frame = frames[next(&mut dice) % frames.len()].as_str();
            let (socket, text) = (1 + next(&mut dice) as u64 % 2, spoil(&mut dice, frame));
            for line in harness.say_text(socket, &text) {
                let json = line.splitn(3, ' ').nth(2).filter(|_| line.starts_with("send"));
                let json =
                    json.or_else(|| line.splitn(4, ' ').nth(3).filter(|_| line.contains(" ok ")));
                let fine = json.is_none_or(|json| serde_json::from_str::<Value>(json).is_ok());
                assert!(fine, "seed {seed}: {text}\n{line}");
            }
        }
    }
}

#[test]
fn deep_nesting_is_harmless() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut harness = Harness::new();
    harness.open(1, None);
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"session.register","params":{{"client_uid":"u1","kind":"k","version":"1","infobase_name":"b","ib_session_number":1,"extras":{deep},"tools":[{{"name":"a","input_schema":{{"x":{deep}}}}}]}}}}"#
    );
    let lines = harness.say_text(1, &text);
    assert!(lines[1].contains("`tools[0].input_schema`: recursion limit exceeded"), "{}", lines[1]);
    harness.ask(1, "session.register", card("u1", "k", "b", &["a"]));
    harness.call(1, "a", &format!(r#"{{"x":{deep}}}"#));
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":"mgr-1-{:032x}","result":{{"content":[{{"type":"json","json":{deep}}}]}}}}"#,
        1
    );
    assert!(harness.say_text(1, &text)[0].starts_with("answer 1 ok"));
}
