//! Keys and tokens: of programs that dial in, of the audit, of servers that are added.

use std::fs;

use serde_json::{Value, json};

use crate::api::Api;
use crate::gate::{Gate, Home};
use crate::program::{Card, Program};

const DATA: &str = ".local/share/toolgate";

#[test]
fn a_token_for_programs_is_made_and_works() {
    let gate = Gate::start("");
    gate.log.wait_for("take over a live session");
    gate.log.wait_for("toolgate session token");
    let output = gate.home.run(&["session", "token", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    let token = made["token"].as_str().unwrap();
    assert!(token.len() >= 64, "256 bits");
    let url = format!("{}/{token}", gate.ready()["sessions"].as_str().unwrap());
    assert_eq!(made["launch"], format!("/C\"mcpMode=ws;manager_url={url};\""));
    assert_eq!(made["export"], format!("export TOOLGATE_SESSION_TOKEN={token}"));
    let config = made["config"].as_str().unwrap().to_owned();
    assert!(!gate.home.data_text().contains(token) && !gate.log.text().contains(token));

    let table = String::from_utf8(gate.home.run(&["session", "token"]).stdout).unwrap();
    assert!(!table.contains(token), "another one each time");
    assert!(table.contains("manager_url=ws://") && table.contains(&config), "{table}");

    let bound = Gate::start_as(Home::new(), &config, |command| {
        command.env("TOOLGATE_SESSION_TOKEN", token);
    });
    assert!(!bound.log.text().contains("take over a live session"));
    assert_eq!(Program::dial_at(&bound, "").unwrap().closed(), Some(1008));
    Program::register_at(&bound, &format!("/{token}"), &Card::new("u1", "ask"));
}

fn verify(home: &Home, words: &[&str]) -> (Option<i32>, String) {
    let words: Vec<&str> = ["audit", "verify"].iter().chain(words).copied().collect();
    let output = home.run(&words);
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

#[test]
fn the_audit_is_checked_by_a_key_from_elsewhere() {
    let mut gate = Gate::start("");
    let line = gate.log.line_with(&["audit key", "sha256:"]);
    let fingerprint = line.split_whitespace().last().unwrap().to_owned();
    let api = Api::admin(&gate);
    for label in ["a", "b", "c"] {
        api.expect(201, "POST", "grants", &json!({"label": label}).to_string());
    }
    assert_eq!(gate.stop().0, Some(0));
    let home = gate.into_home();
    let data = home.path(DATA);
    let key = fs::read_to_string(data.join("audit.pub")).unwrap().trim().to_owned();
    let kept = home.path("kept.pub");
    fs::write(&kept, &key).unwrap();
    let kept = kept.display().to_string();
    for given in [&key, &kept, &fingerprint] {
        let (code, printed) = verify(&home, &["--key", given]);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains(&fingerprint), "{printed}");
    }
    assert!(verify(&home, &[]).1.contains(&fingerprint));
    assert_eq!(verify(&home, &["--key", "nonsense"]).0, Some(64));

    // An attacker rewrites the whole audit and signs it with another key.
    let forged = Gate::start("");
    Api::admin(&forged).expect(201, "POST", "grants", r#"{"label":"harmless"}"#);
    let mut forged = forged;
    assert_eq!(forged.stop().0, Some(0));
    fs::remove_dir_all(&data).unwrap();
    fs::rename(forged.home.path(DATA), &data).unwrap();
    let (code, printed) = verify(&home, &[]);
    assert_eq!(code, Some(0), "by the folder alone it is whole: {printed}");
    for given in [&key, &kept, &fingerprint] {
        let (code, printed) = verify(&home, &["--key", given]);
        assert_eq!(code, Some(1), "{printed}");
        let (_, printed) = verify(&home, &["-o", "json", "--key", given]);
        assert!(printed.contains(r#""ok":false"#), "{printed}");
    }
    // Nor is it enough to take the checkpoints away.
    let sql = rusqlite::Connection::open(data.join("toolgate.db")).unwrap();
    sql.execute("DELETE FROM checkpoint", []).unwrap();
    drop(sql);
    assert_eq!(verify(&home, &["--key", &key]).0, Some(1));
    // The next start prints no key.
    let gate = Gate::start_in(home, "");
    assert!(!gate.log.text().contains("audit key"));
}

#[test]
fn no_secret_of_an_added_server_is_in_the_database() {
    let mut gate = Gate::start("");
    let api = Api::admin(&gate);
    let canary = "CANARY-hunter2";
    for entry in [
        json!({"name": "a", "command": "true", "env": {"API_KEY": canary}}),
        json!({"name": "a", "command": "true", "env": {"DB_PASSWORD": canary}}),
        json!({"name": "a", "command": "true", "env": {"MODE": "ghp_CANARY0123456789abcdef"}}),
        json!({"name": "a", "command": "true", "args": ["--token", canary]}),
        json!({"name": "a", "command": "true", "args": [format!("--api-key={canary}")]}),
        json!({"name": "a", "url": "http://127.0.0.1:1/", "headers": {"X-Tenant": canary}}),
        json!({"name": "a", "url": format!("http://127.0.0.1:1/?token={canary}")}),
    ] {
        let answer = api.ask("POST", "servers", &entry.to_string());
        assert_eq!(answer.status, 422, "{entry}: {answer:?}");
        assert!(answer.body.contains("env:NAME") && !answer.body.contains("CANARY"), "{answer:?}");
    }
    let output = gate.home.run(&["server", "add", "a", "--env", "API_KEY=CANARY-x", "--", "true"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("env.API_KEY") && !printed.contains("CANARY"), "{printed}");
    let harmless = json!({"name": "b", "command": "true", "env": {"NODE_ENV": "production", "PATHS": "/opt/x"}});
    api.expect(201, "POST", "servers", &harmless.to_string());
    fs::write(gate.home.path("key"), "CANARY-in-a-file").unwrap();
    let file = format!("file:{}", gate.home.path("key").display());
    let named = json!({"name": "c", "command": "true", "env": {"API_KEY": file}});
    api.expect(201, "POST", "servers", &named.to_string());
    assert!(!api.get("servers").to_string().contains("CANARY"));
    assert_eq!(gate.stop().0, Some(0));
    assert!(!gate.home.data_text().contains("CANARY"));
    assert!(!gate.log.text().contains("CANARY"));
}
