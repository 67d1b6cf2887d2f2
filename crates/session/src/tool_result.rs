//! Converts the answer of a client to an MCP tool result.
//!
//! Invariant: blocks, structured content and unknown members are unchanged; only names change
//! (snake_case to MCP's), and `json` blocks, which MCP does not have, become text.

use serde_json::json;
use toolgate_json::object::{members, value};
use toolgate_json::scan::compact;
use toolgate_json::{items, members as pick, quote, text};

/// A tool result for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Raw JSON.
    pub json: String,
    /// Whether it reports a failure of the tool.
    pub is_error: bool,
}

/// The result for the `result` of a client.
pub fn from_result(raw: &str) -> ToolResult {
    let Ok(members) = members(raw) else {
        return plain(&if raw == "null" { "[]".to_owned() } else { blocks(raw) });
    };
    let structured = ["structured_content", "structuredContent"]
        .into_iter()
        .find_map(|key| value(&members, key))
        .filter(|raw| *raw != "null");
    let content = match value(&members, "content").filter(|raw| *raw != "null") {
        Some(content) => blocks(content),
        // A client that reads only text must receive something.
        None => structured
            .map_or_else(|| "[]".to_owned(), |raw| format!("[{}]", text_block(&compact(raw)))),
    };
    let is_error = ["is_error", "isError"]
        .into_iter()
        .find_map(|key| value(&members, key))
        .is_some_and(|raw| raw == "true" || raw == "\"true\"");
    let mut json = format!(r#"{{"content":{content},"isError":{is_error}"#);
    if let Some(structured) = structured.filter(|raw| raw.starts_with('{')) {
        json.push_str(r#","structuredContent":"#);
        json.push_str(structured);
    }
    let known =
        ["content", "is_error", "isError", "structured_content", "structuredContent", "resultType"];
    for member in members.iter().filter(|member| !known.iter().any(|key| member.is(key))) {
        json.push(',');
        json.push_str(member.raw_key);
        json.push(':');
        json.push_str(member.value);
    }
    json.push('}');
    ToolResult { json, is_error }
}

/// The result for the `error` of a client, with its code and message.
pub fn from_error(raw: &str) -> ToolResult {
    let [code, message] = pick(raw, ["code", "message"]).unwrap_or_default();
    let message = message.and_then(text).unwrap_or("the client gave no message".into());
    let shown = match code {
        Some(code) => format!("{message} (code {code})"),
        None => message.into_owned(),
    };
    let json = format!(
        r#"{{"content":[{}],"isError":true,"_meta":{{"client_error":{raw}}}}}"#,
        text_block(&shown)
    );
    ToolResult { json, is_error: true }
}

fn plain(content: &str) -> ToolResult {
    let json = format!(r#"{{"content":{content},"isError":false}}"#);
    ToolResult { json, is_error: false }
}

/// The content as an array of blocks, for any content of the client.
fn blocks(raw: &str) -> String {
    match items(raw) {
        Ok(Some(items)) => {
            let blocks: Vec<String> = items.into_iter().map(block).collect();
            format!("[{}]", blocks.join(","))
        }
        _ => format!("[{}]", block(raw)),
    }
}

fn block(raw: &str) -> String {
    let Ok(members) = members(raw) else {
        return match text(raw) {
            Some(text) => text_block(&text),
            None => text_block(&compact(raw)),
        };
    };
    match value(&members, "type").and_then(text).as_deref() {
        Some("json") => {
            let shown = compact(value(&members, "json").unwrap_or("null"));
            let mut block = format!(r#"{{"type":"text","text":{}"#, quote(&shown));
            for member in members.iter().filter(|member| !member.is("type") && !member.is("json")) {
                block.extend([",", member.raw_key, ":", member.value]);
            }
            block.push('}');
            block
        }
        Some(_) => raw.to_owned(),
        // Not a block: shown as text.
        None => text_block(&compact(raw)),
    }
}

fn text_block(text: &str) -> String {
    json!({"type": "text", "text": text}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_mcp_results() {
        let cases = [
            (r"null", r#"{"content":[],"isError":false}"#),
            (r"{}", r#"{"content":[],"isError":false}"#),
            (r#""готово""#, r#"{"content":[{"text":"готово","type":"text"}],"isError":false}"#),
            (
                r#"{"content":[{"type":"text","text":"\u0401"}],"is_error":true}"#,
                r#"{"content":[{"type":"text","text":"\u0401"}],"isError":true}"#,
            ),
            (
                r#"{"content":[{"type":"json","json":{ "Сумма" : 1.50 }}]}"#,
                r#"{"content":[{"type":"text","text":"{\"Сумма\":1.50}"}],"isError":false}"#,
            ),
            (
                r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource","resource":{"uri":"e1cib://x","text":"t"}}]}"#,
                r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource","resource":{"uri":"e1cib://x","text":"t"}}],"isError":false}"#,
            ),
            (
                r#"{"structured_content":{"a":1},"_meta":{"x":1},"more":1e999}"#,
                r#"{"content":[{"text":"{\"a\":1}","type":"text"}],"isError":false,"structuredContent":{"a":1},"_meta":{"x":1},"more":1e999}"#,
            ),
            (
                r#"{"structured_content":[1, 2]}"#,
                r#"{"content":[{"text":"[1,2]","type":"text"}],"isError":false}"#,
            ),
            (
                r#"{"content":"просто"}"#,
                r#"{"content":[{"text":"просто","type":"text"}],"isError":false}"#,
            ),
            (
                r#"{"content":{"ok":false}}"#,
                r#"{"content":[{"text":"{\"ok\":false}","type":"text"}],"isError":false}"#,
            ),
        ];
        for (raw, expected) in cases {
            let result = from_result(raw);
            assert_eq!(result.json, expected, "{raw}");
            assert_eq!(result.is_error, expected.contains("\"isError\":true"));
        }
    }

    #[test]
    fn errors_keep_code_and_message() {
        let result = from_error(r#"{"code":-32000,"message":"Поле не найдено","data":[1]}"#);
        assert!(result.is_error);
        assert_eq!(
            result.json,
            r#"{"content":[{"text":"Поле не найдено (code -32000)","type":"text"}],"isError":true,"_meta":{"client_error":{"code":-32000,"message":"Поле не найдено","data":[1]}}}"#
        );
        assert!(from_error("7").json.contains("no message"));
    }
}
