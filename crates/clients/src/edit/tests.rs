use super::*;
use crate::client::ClientEntry;

fn entry(client: McpClient) -> FileValue {
    client.entry(&ClientEntry {
        url: "http://127.0.0.1:4001/mcp".to_owned(),
        authorization: None,
        command: vec!["toolgate".to_owned(), "run".to_owned()],
    })
}

fn cursor(text: &str) -> String {
    connect(McpClient::Cursor, text, "toolgate", &entry(McpClient::Cursor)).unwrap()
}

#[test]
fn only_the_entry_is_added() {
    for (before, after) in [
        (
            "",
            "{\n  \"mcpServers\": {\n    \"toolgate\": {\n      \"url\": \"http://127.0.0.1:4001/mcp\"\n    }\n  }\n}\n",
        ),
        (
            "{}",
            "{\n  \"mcpServers\": {\n    \"toolgate\": {\n      \"url\": \"http://127.0.0.1:4001/mcp\"\n    }\n  }\n}",
        ),
        (
            "{\n\t// mine\n\t\"a\": 1, // one\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"x\"} // keep\n\t},\n}\n",
            "{\n\t// mine\n\t\"a\": 1, // one\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"x\"}, // keep\n\t\t\"toolgate\": {\n\t\t\t\"url\": \"http://127.0.0.1:4001/mcp\"\n\t\t}\n\t},\n}\n",
        ),
        (
            "{\"mcpServers\":{\"x\":{}}}",
            "{\"mcpServers\":{\"x\":{}, \"toolgate\": {\"url\": \"http://127.0.0.1:4001/mcp\"}}}",
        ),
        (
            "{\n  \"mcpServers\": {\n    \"toolgate\": {\"url\": \"old\"}, // here\n    \"z\": {}\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    \"toolgate\": {\n      \"url\": \"http://127.0.0.1:4001/mcp\"\n    }, // here\n    \"z\": {}\n  }\n}\n",
        ),
    ] {
        assert_eq!(cursor(before), after);
    }
}

#[test]
fn line_ends_and_the_byte_order_mark_stay() {
    let text = "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"x\": {}\r\n  }\r\n}\r\n";
    let edited = cursor(text);
    assert!(edited.starts_with("\u{feff}{\r\n"), "{edited:?}");
    assert_eq!(edited.matches('\n').count(), edited.matches("\r\n").count(), "{edited:?}");
    let removed = disconnect(McpClient::Cursor, &edited, "toolgate").unwrap().unwrap();
    assert_eq!(removed, text);
}

#[test]
fn what_was_connected_can_be_disconnected() {
    let files = [
        "{\n  \"mcpServers\": {\n    // first\n    \"x\": {}\n  },\n  \"theme\": \"dark\"\n}\n",
        "{\n  \"mcpServers\": {\n    \"x\": {}, // trailing\n  },\n}\n",
        "{\"mcpServers\":{\"x\":{}}}",
    ];
    for text in files {
        let removed = disconnect(McpClient::Cursor, &cursor(text), "toolgate").unwrap().unwrap();
        assert_eq!(removed, text);
    }
    assert_eq!(disconnect(McpClient::Cursor, "{}", "toolgate"), Ok(None));
    let first = "{\n  \"mcpServers\": {\n    \"toolgate\": {},\n    \"x\": {}\n  }\n}\n";
    let removed = disconnect(McpClient::Cursor, first, "toolgate").unwrap().unwrap();
    assert_eq!(removed, "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n");
}

#[test]
fn toml_keeps_comments_and_order() {
    let text = "# mine\nmodel = \"o4\" # the model\n\n[mcp_servers.x]\ncommand = \"x\"\n\n[tui]\ntheme = \"dark\"\n";
    let edited = connect(McpClient::Codex, text, "toolgate", &entry(McpClient::Codex)).unwrap();
    for line in text.lines().filter(|line| !line.is_empty()) {
        assert!(edited.contains(line), "{line}: {edited}");
    }
    assert!(
        edited.contains("[mcp_servers.toolgate]\nurl = \"http://127.0.0.1:4001/mcp\""),
        "{edited}"
    );
    let removed = disconnect(McpClient::Codex, &edited, "toolgate").unwrap().unwrap();
    assert_eq!(removed, text);
    let new = connect(McpClient::Codex, "", "toolgate", &entry(McpClient::Codex)).unwrap();
    assert_eq!(new, "[mcp_servers.toolgate]\nurl = \"http://127.0.0.1:4001/mcp\"\n");
}

#[test]
fn every_client_has_its_own_shape() {
    let with_token = |client: McpClient| {
        client.entry(&ClientEntry {
            url: "http://127.0.0.1:4001/mcp".to_owned(),
            authorization: Some("Bearer t".to_owned()),
            command: vec!["toolgate".to_owned(), "run".to_owned(), "--gateway".to_owned()],
        })
    };
    for (client, expected) in [
        (
            McpClient::ClaudeCode,
            r#"{"type": "http", "url": "http://127.0.0.1:4001/mcp", "headers": {"Authorization": "Bearer t"}}"#,
        ),
        (McpClient::ClaudeDesktop, r#"{"command": "toolgate", "args": ["run", "--gateway"]}"#),
        (
            McpClient::Cursor,
            r#"{"url": "http://127.0.0.1:4001/mcp", "headers": {"Authorization": "Bearer t"}}"#,
        ),
        (
            McpClient::VsCode,
            r#"{"type": "http", "url": "http://127.0.0.1:4001/mcp", "headers": {"Authorization": "Bearer t"}}"#,
        ),
        (
            McpClient::Windsurf,
            r#"{"serverUrl": "http://127.0.0.1:4001/mcp", "headers": {"Authorization": "Bearer t"}}"#,
        ),
        (
            McpClient::Codex,
            r#"{"url": "http://127.0.0.1:4001/mcp", "http_headers": {"Authorization": "Bearer t"}}"#,
        ),
        (
            McpClient::Gemini,
            r#"{"httpUrl": "http://127.0.0.1:4001/mcp", "headers": {"Authorization": "Bearer t"}}"#,
        ),
        (
            McpClient::Cline,
            r#"{"type": "streamableHttp", "url": "http://127.0.0.1:4001/mcp", "headers": {"Authorization": "Bearer t"}}"#,
        ),
        (
            McpClient::Zed,
            r#"{"url": "http://127.0.0.1:4001/mcp", "headers": {"Authorization": "Bearer t"}}"#,
        ),
    ] {
        let entry = with_token(client);
        assert_eq!(entry.to_string(), expected, "{client:?}");
        let text = connect(client, "", "toolgate", &entry).unwrap();
        assert_eq!(entry_of(client, &text, "toolgate").unwrap(), Some(entry), "{client:?}");
    }
}

#[test]
fn a_broken_file_is_refused() {
    let broken = connect(McpClient::Cursor, "{\n  \"a\": }", "toolgate", &FileValue::Null);
    assert_eq!(
        broken.unwrap_err().to_string(),
        "line 2, column 8: expected a value; correct the file first"
    );
    for text in ["[]", "{\"mcpServers\": 1}"] {
        let refused = connect(McpClient::Cursor, text, "toolgate", &FileValue::Null);
        assert!(matches!(refused, Err(NotEdited::NotAnObject(_))), "{text}");
    }
    assert!(connect(McpClient::Codex, "a = ", "toolgate", &FileValue::Null).is_err());
}
