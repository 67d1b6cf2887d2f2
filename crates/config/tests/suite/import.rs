//! Configurations of MCP clients become a `toolgate.yaml`.

use std::io;
use std::path::Path;

use toolgate_config::{Config, Problem, Surroundings, Transport};

struct File(&'static str);

impl Surroundings for File {
    fn env(&self, name: &str) -> Option<String> {
        Some(format!("value-of-{name}-0123456789abcdef"))
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new(".mcp.json") {
            return Ok(self.0.as_bytes().to_vec());
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

fn import(text: &'static str) -> Result<toolgate_config::Imported, Vec<Problem>> {
    Config::import(Path::new(".mcp.json"), &File(text))
}

#[test]
fn servers_of_a_client_are_converted() {
    let text = r#"{
        "mcpServers": {
            "files": { "command": "npx", "args": ["-y", "files-server", "/tmp"], "env": { "A": "b c" } },
            "My Server_2": { "type": "http", "url": "https://example.com/mcp" },
            "my-server-2": { "command": "uvx", "args": ["x"] }
        },
        "theme": "dark"
    }"#;
    let imported = import(text).unwrap();
    let names: Vec<_> = imported.loaded.config.servers.iter().map(|s| s.name.clone()).collect();
    assert_eq!(names, ["files", "my-server-2", "my-server-2-2"]);
    assert_eq!(imported.loaded.warnings.len(), 2, "{:?}", imported.loaded.warnings);
    // The text describes the same configuration.
    let again = Config::parse(&imported.text, Path::new("toolgate.yaml"), &File("")).unwrap();
    assert_eq!(again.config.servers.len(), 3, "{}", imported.text);
    let Transport::Stdio(files) = &again.config.servers[0].transport else { panic!("a child") };
    assert_eq!(files.env[0].1.expose(), "b c");
    assert_eq!(files.args.len(), 3);
}

#[test]
fn what_is_not_understood_is_named_in_the_original_file() {
    let problems =
        import("{\n \"mcpServers\": {\n  \"s\": { \"command\": \"x\", \"disabled\": true }\n }\n}")
            .unwrap_err();
    let shown = problems[0].to_string();
    assert!(shown.starts_with(".mcp.json:3:") && shown.contains("disabled"), "{shown}");
}

#[test]
fn a_file_that_is_missing_or_something_else_is_called_that() {
    let missing = Config::import(Path::new("nosuch"), &File("")).unwrap_err();
    assert_eq!(missing[0].to_string(), "nosuch: error[TG1001]: no such file\nhint: check the path");
    let other = import("version: 1\n").unwrap_err();
    assert!(other[0].message.contains("neither"), "{}", other[0]);
}
