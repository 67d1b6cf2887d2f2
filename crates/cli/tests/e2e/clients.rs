//! `toolgate client` and `toolgate import`, with files as MCP clients write them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::gate::{Gate, Home};
use crate::peer::Peer;

/// The clients, their fixtures, and where their files are in a home.
const CLIENTS: [(&str, &str, &str); 9] = [
    ("claude-code", "claude-code.json", ".claude.json"),
    ("claude-desktop", "claude-desktop.json", ".config/Claude/claude_desktop_config.json"),
    ("cursor", "cursor.json", ".cursor/mcp.json"),
    ("vscode", "vscode.json", ".config/Code/User/mcp.json"),
    ("windsurf", "windsurf.json", ".codeium/windsurf/mcp_config.json"),
    ("codex", "codex.toml", ".codex/config.toml"),
    ("gemini", "gemini.json", ".gemini/settings.json"),
    (
        "cline",
        "cline.json",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    ("zed", "zed.json", ".config/zed/settings.json"),
];

const SECRETS: [&str; 3] = ["ghp_a1b2c3d4e5f6g7h8i9j0", "abcdefghijklmnop", "s3cr3t-value"];

/// Puts the fixture of a client into its place.
fn install(home: &Home, peer: &Peer, fixture: &str, place: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/clients");
    let [script, records] = peer.arguments();
    let text = fs::read_to_string(folder.join(fixture)).unwrap();
    let text = text.replace("@SCRIPT@", &script).replace("@FOLDER@", &records);
    let path = home.path(place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn run(home: &Home, words: &[&str]) -> (Option<i32>, String, String) {
    let output = home.run(words);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn import_connect_and_call_for_every_client() {
    for (client, fixture, place) in CLIENTS {
        let home = Home::new();
        let peer = Peer::new(&home, "peer");
        let file = install(&home, &peer, fixture, place);
        let before = fs::read_to_string(&file).unwrap();

        let (code, preview, notes) = run(&home, &["import", file.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{client}: {notes}");
        assert!(!home.file().exists(), "{client}: a preview writes nothing");
        for secret in SECRETS {
            assert!(
                !preview.contains(secret) && !notes.contains(secret),
                "{client}: {preview}{notes}"
            );
        }
        let words = ["import", file.to_str().unwrap(), "--write", "toolgate.yaml", "--yes"];
        let (code, _, notes) = run(&home, &words);
        assert_eq!(code, Some(0), "{client}: {notes}");
        let config = fs::read_to_string(home.file()).unwrap();
        assert!(!SECRETS.iter().any(|secret| config.contains(secret)), "{client}: {config}");

        let config = format!(
            "{config}\nlisten: {{ mcp: 127.0.0.1:0, sessions: off, admin: 127.0.0.1:0 }}\n"
        );
        let config = config.replace("version: 1\n", "");
        let gate = Gate::start_as(home, &config, |command| {
            command.env("PEER_KEY", "k").env("PEER_API_KEY", "s3cr3t-value");
        });
        let words = ["client", "connect", client, "--yes"];
        let (code, diff, notes) = run(&gate.home, &words);
        assert_eq!(code, Some(0), "{client}: {notes}");
        let url = format!("http://{}/mcp", gate.mcp());
        assert!(diff.contains(&url) && diff.lines().any(|line| line.starts_with('+')), "{diff}");
        let after = fs::read_to_string(&file).unwrap();
        assert!(after.contains(&url), "{client}: {after}");
        let backup = PathBuf::from(format!("{}.bak", file.display()));
        assert_eq!(fs::read_to_string(backup).unwrap(), before, "{client}");

        let list = gate.home.run(&["tool", "list", "--url", &url, "-o", "jsonl"]);
        let tools = String::from_utf8(list.stdout).unwrap();
        let echo = tools.lines().find_map(|line| {
            let tool: Value = serde_json::from_str(line).unwrap();
            tool["name"].as_str().filter(|name| name.ends_with("__echo")).map(str::to_owned)
        });
        let echo = echo.unwrap_or_else(|| panic!("{client}: no echo in {tools}"));
        let words = ["tool", "call", &echo, r#"{"text": "привет"}"#, "--url", &url, "-o", "json"];
        let (code, result, notes) = run(&gate.home, &words);
        assert_eq!(code, Some(0), "{client}: {result}{notes}");
        assert!(result.contains("привет"), "{client}: {result}");

        let (code, _, notes) = run(&gate.home, &["client", "disconnect", client, "--yes"]);
        assert_eq!(code, Some(0), "{client}: {notes}");
        assert_eq!(fs::read_to_string(&file).unwrap(), before, "{client}: as it was");
    }
}

#[test]
fn secrets_are_moved_to_private_files() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let file = install(&home, &peer, "claude-desktop.json", "claude.json");
    let refused = run(&home, &["import", file.to_str().unwrap(), "--write", "toolgate.yaml"]);
    assert_eq!(refused.0, Some(2), "there is no terminal to ask on: {}", refused.2);
    assert!(refused.2.contains("--yes") && !home.file().exists());
    let words = ["import", file.to_str().unwrap(), "--write", "toolgate.yaml", "--yes"];
    assert_eq!(run(&home, &words).0, Some(0));
    let secret = home.path("secrets/peer-GITHUB-PERSONAL-ACCESS-TOKEN");
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRETS[0]);
    assert_eq!((mode(&secret), mode(&home.path("secrets"))), (0o600, 0o700));
    assert_eq!(run(&home, &["config", "check"]).0, Some(0));

    let file = install(&home, &peer, "gemini.json", "gemini.json");
    let words = ["import", file.to_str().unwrap(), "--write", "other.yaml", "--yes"];
    assert_eq!(run(&home, &words).0, Some(0));
    let config = fs::read_to_string(home.path("other.yaml")).unwrap();
    assert!(config.contains("${PEER_API_KEY}"), "{config}");
    let variables = home.path("toolgate.env");
    assert_eq!(fs::read_to_string(&variables).unwrap(), "PEER_API_KEY='s3cr3t-value'\n");
    assert_eq!(mode(&variables), 0o600);
}

/// Also a file that had no servers at all, whatever its format.
#[test]
fn disconnect_restores_what_was_there() {
    for (client, place, text) in [
        ("cursor", ".cursor/mcp.json", ""),
        ("cursor", ".cursor/mcp.json", "{}"),
        ("gemini", ".gemini/settings.json", "{\r\n\t\"ui\": {} // dark\r\n}"),
        ("codex", ".codex/config.toml", "model = \"x\" # mine"),
    ] {
        let home = Home::new();
        let file = home.path(place);
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        assert_eq!(run(&home, &["client", "connect", client, "--yes"]).0, Some(0), "{text}");
        assert!(fs::read_to_string(&file).unwrap().contains("127.0.0.1:4001"), "{text}");
        assert_eq!(run(&home, &["client", "disconnect", client, "--yes"]).0, Some(0), "{text}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn a_link_to_a_file_that_does_not_exist_stays() {
    let home = Home::new();
    fs::create_dir(home.path(".cursor")).unwrap();
    let link = home.path(".cursor/mcp.json");
    symlink("nowhere", &link).unwrap();
    let (code, _, stderr) = run(&home, &["client", "connect", "cursor", "--yes"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("is a link to a file that does not exist"), "{stderr}");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && !link.exists());
}

/// Names in a file from elsewhere cannot control the terminal.
#[test]
fn names_of_imported_servers_are_shown_safely() {
    let home = Home::new();
    let name = "evil\u{1b}[2J\u{202e}\nwritten to /etc/passwd";
    let entry = json!({"command": "x\u{1b}[31m", "args": ["--token", "hidden"]});
    fs::write(home.path("c.json"), json!({"mcpServers": {name: entry}}).to_string()).unwrap();
    let (code, stdout, stderr) = run(&home, &["import", "c.json"]);
    assert_eq!(code, Some(0), "{stderr}");
    for text in [stdout, stderr] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && !text.contains("hidden"), "{text}");
    }
}

/// Two configurations in one folder: the secrets of the first stay.
#[test]
fn an_import_keeps_the_secrets_of_another_configuration() {
    let home = Home::new();
    let import = |secret: &str, argument: &str, to: &str, more: &[&str]| {
        let entry =
            json!({"command": "x", "args": ["--api-key", argument], "env": {"TOKEN": secret}});
        fs::write(home.path("c.json"), json!({"mcpServers": {"s": entry}}).to_string()).unwrap();
        run(&home, &[&["import", "c.json", "--write", to, "--yes"], more].concat())
    };
    let held = || {
        let text = |name: &str| fs::read_to_string(home.path(name)).unwrap();
        (text("secrets/s-TOKEN"), text("toolgate.env"))
    };
    let first = ("first-secret".to_owned(), "S_API_KEY='first-argument'\n".to_owned());
    assert_eq!(import("first-secret", "first-argument", "a.yaml", &[]).0, Some(0));
    for (secret, argument) in [("other", "first-argument"), ("first-secret", "other")] {
        let (code, _, stderr) = import(secret, argument, "b.yaml", &[]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("another configuration") && stderr.contains("--force"), "{stderr}");
        assert!(held() == first && !home.path("b.yaml").exists(), "nothing was written");
    }
    // The same configuration again, and a value that has changed in the client's file.
    assert_eq!(import("second-secret", "first-argument", "a.yaml", &[]).0, Some(0));
    assert_eq!(held(), ("second-secret".to_owned(), first.1));
    assert_eq!(import("third-secret", "other-argument", "b.yaml", &["--force"]).0, Some(0));
    assert_eq!(held(), ("third-secret".to_owned(), "S_API_KEY='other-argument'\n".to_owned()));
}

#[test]
fn nothing_is_written_without_consent() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let file = install(&home, &peer, "zed.json", ".config/zed/settings.json");
    let before = fs::read_to_string(&file).unwrap();
    let (code, _, stderr) = run(&home, &["client", "connect", "zed"]);
    assert_eq!(code, Some(2), "{stderr}");
    let (code, diff, _) = run(&home, &["client", "connect", "zed", "--dry-run"]);
    assert_eq!(code, Some(0));
    assert!(diff.contains("+      \"url\": \"http://127.0.0.1:4001/mcp\""), "{diff}");
    let (code, entry, _) = run(&home, &["client", "connect", "zed", "--print"]);
    assert_eq!(code, Some(0));
    let entry: Value = serde_json::from_str(&entry).unwrap();
    assert_eq!(entry["context_servers"]["toolgate"]["url"], "http://127.0.0.1:4001/mcp");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let only = fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(only, 1, "no backup without a change");

    fs::write(&file, "{ broken").unwrap();
    let (code, _, stderr) = run(&home, &["client", "connect", "zed", "--yes"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("line 1") && fs::read_to_string(&file).unwrap() == "{ broken");
    let (code, _, stderr) = run(&home, &["client", "connect", "zedd"]);
    assert_eq!(code, Some(64));
    assert!(stderr.contains("zed"), "{stderr}");
}

#[test]
fn links_modes_and_tokens() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let real = install(&home, &peer, "cursor.json", "dotfiles/mcp.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(home.path(".cursor")).unwrap();
    let link = home.path(".cursor/mcp.json");
    symlink(&real, &link).unwrap();
    assert_eq!(run(&home, &["client", "connect", "cursor", "--yes"]).0, Some(0));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link stays");
    assert!(fs::read_to_string(&real).unwrap().contains("127.0.0.1:4001"));
    assert_eq!(mode(&real), 0o640, "the mode stays");
    let again = run(&home, &["client", "connect", "cursor", "--yes"]);
    assert!(again.2.contains("connected already"), "{}", again.2);
    assert!(!again.2.contains("--grant"), "local mode needs no token: {}", again.2);

    let words = ["client", "connect", "cursor", "--grant", "desk", "--yes"];
    let (code, diff, stderr) = run(&home, &words);
    assert_eq!(code, Some(0), "{stderr}");
    let entry: Value = serde_json::from_str(&fs::read_to_string(&real).unwrap()).unwrap();
    let token = entry["mcpServers"]["toolgate"]["headers"]["Authorization"].as_str().unwrap();
    let token = token.strip_prefix("Bearer ").unwrap();
    assert!(token.len() >= 20 && !diff.contains(token) && !stderr.contains(token));
    assert_eq!(mode(&real), 0o600, "for its owner alone");

    // The bridge of Claude Desktop reads its token from a file.
    let words = ["client", "connect", "claude-desktop", "--grant", "desktop", "--yes"];
    let (code, _, stderr) = run(&home, &words);
    assert_eq!(code, Some(0), "{stderr}");
    let file = home.path(".config/Claude/claude_desktop_config.json");
    let entry: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let args = entry["mcpServers"]["toolgate"]["args"].clone();
    let reference = args[4].as_str().unwrap().strip_prefix("file:").unwrap().to_owned();
    assert_eq!((mode(Path::new(&reference)), mode(&file)), (0o600, 0o600));
    assert_eq!(args[0], "run");

    let (code, list, _) = run(&home, &["client", "list", "-o", "json"]);
    assert_eq!(code, Some(0));
    let list: Value = serde_json::from_str(&list).unwrap();
    let of = |id: &str| {
        list["items"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap().clone()
    };
    assert_eq!(
        (&of("cursor")["connected"], &of("cursor")["installed"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(of("zed")["connected"], json!(false));
    let (_, table, _) = run(&home, &["client", "list"]);
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("ID "), "{table}");
    assert!(lines.any(|line| line.starts_with("cursor ") && line.contains(".cursor/mcp.json")));

    let (_, _, stderr) = run(&home, &["client", "connect", "zed", "--yes"]);
    assert!(stderr.contains("refuses calls without a token: add --grant"), "{stderr}");

    // The grant is the first one, and its token opens the gateway.
    let gate = Gate::start_in(home, "");
    let url = format!("http://{}", gate.mcp());
    let mut command = gate.home.command(&["tool", "list", "--url", &url]);
    assert_eq!(command.output().unwrap().status.code(), Some(2), "local mode has ended");
    let mut command = gate.home.command(&["tool", "list", "--url", &url]);
    assert_eq!(command.env("TOOLGATE_TOKEN", token).output().unwrap().status.code(), Some(0));
}

#[test]
fn encodings_of_files_are_named() {
    let home = Home::new();
    let file = home.path(".cursor/mcp.json");
    fs::create_dir(home.path(".cursor")).unwrap();
    let text = "{\"mcpServers\": {\"сервер\": {\"command\": \"sh\"}}}";
    let utf16: Vec<u8> =
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let cp1251: Vec<u8> = text
        .chars()
        .map(|c| match u32::from(c) {
            code @ 0x410..=0x44f => u8::try_from(code - 0x410 + 0xc0).unwrap(),
            code => u8::try_from(code).unwrap(),
        })
        .collect();
    for (bytes, name) in [(utf16, "UTF-16"), (cp1251, "cp1251")] {
        fs::write(&file, &bytes).unwrap();
        for words in
            [vec!["client", "connect", "cursor", "--yes"], vec!["import", file.to_str().unwrap()]]
        {
            let (code, _, stderr) = run(&home, &words);
            assert_eq!(code, Some(2), "{stderr}");
            assert!(stderr.contains(name) && stderr.contains("iconv"), "{stderr}");
        }
        assert_eq!(fs::read(&file).unwrap(), bytes, "untouched");
    }
    fs::write(&file, format!("\u{feff}{text}")).unwrap();
    assert_eq!(run(&home, &["client", "connect", "cursor", "--yes"]).0, Some(0));
    assert!(fs::read_to_string(&file).unwrap().starts_with('\u{feff}'));
    assert_eq!(run(&home, &["import", file.to_str().unwrap()]).0, Some(0));
}
