//! `docs/reference/error-codes.md` is generated from the table of error codes, and the table has
//! exactly the codes that the crates use.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use toolgate_audit::ERROR_CODES;

/// What every refusal has in common.
const SHAPE: &str = r#"
```json
{"content":[{"type":"text","text":"[POLICY DENIED] …"}],"isError":true,
 "_meta":{"error_code":"rate_limited","rule":"/tools/close/limits/close_rate","retry_after_s":12,"call_id":"…"}}
```

| `effect` | meaning | repeat the call? |
|---|---|---|
| `not_started` | nothing was sent to the server | yes, if the code permits it |
| `unknown` | the call was sent, and how it ended is not known | only after a check: the tool may have run |
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    let mut page = String::from(
        "# Error codes for agents\n\n\
         <!-- Generated from crates/audit/src/error_code.rs; regenerate with \
         `UPDATE=1 cargo test -p toolgate-audit`. -->\n\n\
         A refused or failed `tools/call` is a tool result with `isError: true`. Its \
         `_meta.error_code` is one of these codes, `_meta.call_id` is the call in the audit, and its \
         text tells the model what happened and whether it may retry. \
         `toolgate explain CODE` prints one entry; `toolgate audit list --code CODE` finds the calls.\n",
    );
    page.push_str(SHAPE);
    for code in ERROR_CODES {
        write!(page, "\n## `{}`\n\n{}\n\n", code.code, code.when).unwrap();
        if !code.prefix.is_empty() {
            writeln!(page, "* Text: begins with `{}`.", code.prefix).unwrap();
        }
        writeln!(page, "* Agents: {}\n* Operators: {}", code.agent, code.operator).unwrap();
    }
    page
}

#[test]
fn the_page_is_current() {
    let file = root().join("docs/reference/error-codes.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, page()).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap();
    assert_eq!(found, page(), "regenerate it with UPDATE=1 cargo test -p toolgate-audit");
}

#[test]
fn every_code_is_described_once_and_used() {
    let codes: BTreeSet<&str> = ERROR_CODES.iter().map(|code| code.code).collect();
    assert_eq!(codes.len(), ERROR_CODES.len(), "a code is described twice");
    let mut sources = String::new();
    for name in ["admission", "gateway", "policy", "session", "upstream"] {
        read_all(&root().join("crates").join(name).join("src"), &mut sources);
    }
    for code in &codes {
        assert!(sources.contains(&format!("\"{code}\"")), "no crate uses `{code}`");
    }
    // The functions that map failures to codes.
    for file in ["session/src/failure.rs", "upstream/src/failure.rs"] {
        let text = fs::read_to_string(root().join("crates").join(file)).unwrap();
        let body = text
            .split("fn error_code(")
            .nth(1)
            .unwrap_or_else(|| panic!("no fn error_code in {file}"));
        let body = body.split("\n    }\n").next().unwrap();
        let mapped: Vec<&str> =
            body.split("=> \"").skip(1).filter_map(|it| it.split('"').next()).collect();
        assert!(!mapped.is_empty(), "{file}");
        for code in mapped {
            assert!(codes.contains(code), "`{code}` of {file} is not described");
        }
    }
}

fn read_all(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, text);
        } else {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}
