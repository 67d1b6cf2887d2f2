//! The conformance fixture as a process: what it speaks in each era.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail at any step")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";
const SESSIONFUL: &str = "2025-11-25";

/// The first answer of the fixture to a request over stdio.
fn answer(era: &str, request: &Value) -> Value {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate-conformance"))
        .args(["stdio", "--era", era])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{request}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    drop(stdin);
    child.wait().unwrap();
    serde_json::from_str(&line).expect(&line)
}

fn initialize() -> Value {
    let params = json!({"protocolVersion": SESSIONFUL, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

fn discover() -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}})
}

#[test]
fn each_era_is_spoken_or_refused() {
    for (era, sessionful, sessionless) in
        [("both", true, true), ("sessionful", true, false), ("sessionless", false, true)]
    {
        let initialized = answer(era, &initialize());
        let version = &initialized["result"]["protocolVersion"];
        assert_eq!(*version == SESSIONFUL, sessionful, "{era}: {initialized}");
        let discovered = answer(era, &discover());
        let versions = discovered["result"]["supportedVersions"].as_array();
        let speaks = versions.is_some_and(|versions| versions.contains(&json!(MODERN)));
        assert_eq!(speaks, sessionless, "{era}: {discovered}");
        let old = versions.is_some_and(|versions| versions.contains(&json!(SESSIONFUL)));
        assert_eq!(old, sessionful && sessionless, "{era}: {discovered}");
    }
}
