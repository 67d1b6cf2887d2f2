//! A slow and simple second opinion on what an agent may send: reads the whole text into a tree
//! that keeps every key, and applies the rules one after another. Shared with the fuzz targets.

use serde_json::value::RawValue;
use toolgate_mcp::method::KNOWN;

/// A value as it was sent. Numbers and literals are told apart only as far as the rules need.
#[derive(Debug)]
pub(crate) enum Json {
    Object(Vec<(Text, Json)>),
    Array(Vec<Json>),
    String(Text),
    Number,
    Null,
    Bool,
}

/// `None`: it has a lone surrogate, so there is no text.
pub(crate) type Text = Option<String>;

pub(crate) const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
pub(crate) const PARAMS: [&str; 7] =
    ["name", "arguments", "uri", "_meta", "task", "requestState", "inputResponses"];
pub(crate) const STRICT: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// The keys of `params` that no other may imitate, for methods whose `params` are read strictly.
fn keys_of(method: &str) -> Option<&'static [&'static str]> {
    match method {
        method if STRICT.contains(&method) => Some(&PARAMS),
        "resources/subscribe" | "resources/unsubscribe" => Some(&["uri", "_meta"]),
        "completion/complete" => Some(&["ref", "argument", "context", "_meta"]),
        // Also methods that the protocol does not define.
        method if method.starts_with("tasks/") && method != "tasks/list" => {
            Some(&["taskId", "requestState", "inputResponses", "_meta"])
        }
        "tasks/list"
        | "tools/list"
        | "prompts/list"
        | "resources/list"
        | "resources/templates/list" => Some(&["cursor", "_meta"]),
        "logging/setLevel" => Some(&["level", "_meta"]),
        "subscriptions/listen" => Some(&["notifications", "_meta"]),
        _ => None,
    }
}

/// The tree of a text; `None` if it is not JSON.
pub(crate) fn parse(text: &str) -> Option<Json> {
    serde_json::from_str::<&RawValue>(text).ok()?;
    let mut reader = Reader { chars: text.chars().collect(), at: 0 };
    Some(reader.value())
}

/// Whether a single message of an agent is let in.
pub(crate) fn accepts(json: &Json, depth: usize) -> bool {
    let Json::Object(members) = json else { return false };
    let keys = || members.iter().map(|(key, _)| key.as_deref());
    let find = |name: &str| members.iter().find(|(key, _)| key.as_deref() == Some(name));
    let find = |name: &str| find(name).map(|(_, value)| value);
    let string = |value: Option<&Json>| match value {
        Some(Json::String(Some(text))) => Some(text.clone()),
        _ => None,
    };
    let id_fits = matches!(find("id"), Some(Json::Number | Json::String(Some(_))));
    let method = string(find("method"));
    let shape = match (find("method"), find("result"), find("error")) {
        (Some(_), None, None) => {
            let is_note = method.as_deref().is_some_and(|name| name.starts_with("notifications/"));
            method.is_some()
                && if is_note { find("id").is_none() } else { id_fits }
                && matches!(find("params"), None | Some(Json::Object(_) | Json::Array(_)))
        }
        (None, Some(_), None) | (None, None, Some(_)) => id_fits,
        _ => false,
    };
    let strict = method.as_deref().and_then(keys_of);
    shape
        && string(find("jsonrpc")).as_deref() == Some("2.0")
        && keys().all(|key| key.is_some_and(|key| !imitates(key, &ENVELOPE) && !controls(key)))
        && !has_twice(members)
        && depth_of(json) <= depth
        && !method.is_some_and(|method| is_misnamed(&method))
        && (strict.is_none() || unambiguous(json))
        && strict.is_none_or(|keys| !find("params").is_some_and(|it| has_imitation(it, keys)))
        && !is_ambiguous_reference(&string(find("method")).unwrap_or_default(), find("params"))
}

/// Whether no object in it has a key twice and no string in it a lone surrogate.
pub(crate) fn unambiguous(json: &Json) -> bool {
    match json {
        Json::Object(members) => {
            !has_twice(members)
                && members.iter().all(|(key, value)| key.is_some() && unambiguous(value))
        }
        Json::Array(items) => items.iter().all(unambiguous),
        Json::String(text) => text.is_some(),
        Json::Number | Json::Null | Json::Bool => true,
    }
}

/// Case, and the few other forms that the tests use.
pub(crate) fn imitates(key: &str, names: &[&str]) -> bool {
    let folded: String = key
        .chars()
        .map(|c| match c {
            'ſ' => 's',
            '\u{212a}' => 'k',
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
            _ => c,
        })
        .map(|c| c.to_ascii_lowercase())
        .collect();
    names.iter().any(|name| folded == name.to_ascii_lowercase() && key != *name)
}

fn controls(text: &str) -> bool {
    text.chars().any(char::is_control)
}

/// Whether a server may read the name of a method as another.
fn is_misnamed(method: &str) -> bool {
    let is_path = || method.split('/').any(|part| part == "." || part == "..");
    method.len() <= 256
        && !KNOWN.contains(&method)
        && (imitates(method, &KNOWN) || controls(method) || is_path())
}

fn is_ambiguous_reference(method: &str, params: Option<&Json>) -> bool {
    let Some(Json::Object(members)) = params.filter(|_| method == "completion/complete") else {
        return false;
    };
    let named = members.iter().find(|(key, _)| key.as_deref() == Some("ref"));
    named.is_some_and(|(_, value)| has_imitation(value, &["type", "name", "uri"]))
}

fn has_imitation(object: &Json, names: &[&str]) -> bool {
    match object {
        Json::Object(members) => members
            .iter()
            .any(|(key, _)| key.as_ref().is_some_and(|key| imitates(key, names) || controls(key))),
        _ => false,
    }
}

fn has_twice(members: &[(Text, Json)]) -> bool {
    members
        .iter()
        .enumerate()
        .any(|(index, (key, _))| members.iter().take(index).any(|(other, _)| other == key))
}

fn depth_of(json: &Json) -> usize {
    match json {
        Json::Object(members) => {
            1 + members.iter().map(|(_, value)| depth_of(value)).max().unwrap_or(0)
        }
        Json::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

/// Reads JSON that is known to be valid.
struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn next(&mut self) -> char {
        let c = self.chars[self.at];
        self.at += 1;
        c
    }

    fn peek(&mut self) -> char {
        while matches!(self.chars[self.at], ' ' | '\t' | '\n' | '\r') {
            self.at += 1;
        }
        self.chars[self.at]
    }

    fn value(&mut self) -> Json {
        match self.peek() {
            '{' => Json::Object(self.list('}', |reader| {
                reader.peek();
                let key = reader.string();
                reader.peek();
                assert_eq!(reader.next(), ':');
                (key, reader.value())
            })),
            '[' => Json::Array(self.list(']', Self::value)),
            '"' => Json::String(self.string()),
            'n' => self.word(Json::Null),
            't' | 'f' => self.word(Json::Bool),
            _ => self.word(Json::Number),
        }
    }

    fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut items = Vec::new();
        self.next();
        while self.peek() != close {
            items.push(item(self));
            if self.peek() == ',' {
                self.next();
            }
        }
        self.next();
        items
    }

    fn word(&mut self, json: Json) -> Json {
        let in_word = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        while self.chars.get(self.at).is_some_and(in_word) {
            self.at += 1;
        }
        json
    }

    fn string(&mut self) -> Text {
        let mut units = Vec::new();
        assert_eq!(self.next(), '"');
        loop {
            let unit = match self.next() {
                '"' => return String::from_utf16(&units).ok(),
                '\\' => match self.next() {
                    'u' => {
                        let hex: String = (0..4).map(|_| self.next()).collect();
                        u16::from_str_radix(&hex, 16).unwrap()
                    }
                    'b' => 8,
                    'f' => 12,
                    'n' => 10,
                    'r' => 13,
                    't' => 9,
                    c => c as u16,
                },
                c => {
                    units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                    continue;
                }
            };
            units.push(unit);
        }
    }
}
