//! An existing installation of v8-session-manager, started as it is.

use std::fs;

use serde_json::{Value, json};

use super::{code, open, tool};
use crate::agent::{Agent, initialize_with};
use crate::gate::{Gate, Home, eventually};
use crate::golden;
use crate::program::{Card, Program};

const CACHE: &str = r#"{"version":1,"entries":[{"kind":"client","config_id":"УТ","tools":[{"name":"НайтиЗаказ","description":"Ищет","input_schema":{"type":"object"}}],"last_seen_at":"TIME"},{"kind":"server","config_id":"server","tools":[{"name":"execute_query","input_schema":{"type":"object"}}],"last_seen_at":"TIME"}]}"#;

fn start(home: Home, more: &str) -> Result<Gate, String> {
    let project = format!(
        "workPath: work\n\
         basePath: src\n\
         source-set: [{{ name: main, path: cf }}]\n\
         toolgate: {{ listen: {{ admin: off }} }}\n\
         mcp:\n  \
           session_manager: {{ bind_address: '127.0.0.1:0', path: /ws, idle_timeout_secs: 900, reconnection_grace_secs: 45 }}\n  \
           http: {{ bind_address: '127.0.0.1:0', path: /mcp, stateful_sessions: true, max_sessions: 7, idle_ttl_secs: 60{more} }}\n  \
           execution: {{ shutdown_grace_period_secs: 3 }}\n\
         tools_cache: {{ enabled: true, cache_life_period: 5days }}\n"
    );
    fs::write(home.path("v8project.yaml"), project).unwrap();
    fs::create_dir_all(home.path("work")).unwrap();
    let command = home.command(&["serve", "--ready-json", "--config", "v8project.yaml"]);
    Gate::run(home, command).map_err(|(_, log)| log)
}

fn cache(home: &Home) -> Value {
    serde_json::from_str(&fs::read_to_string(home.path("work/tools_cache.json")).unwrap()).unwrap()
}

#[test]
fn it_starts_as_it_is_and_shows_the_cached_tools_at_once() {
    let home = Home::new();
    fs::create_dir_all(home.path("work")).unwrap();
    let now = jiff::Timestamp::now().to_string();
    fs::write(home.path("work/tools_cache.json"), CACHE.replace("TIME", &now)).unwrap();
    let mut gate = start(home, "").unwrap();
    gate.log.wait_for("nothing is closed by it");
    let agent = open(&gate);
    for name in ["НайтиЗаказ", "execute_query"] {
        assert!(tool(&agent, name).is_some(), "{name}");
    }
    assert_eq!(code(&agent.call("execute_query", &json!({}))), "no_live_session");
    assert!(gate.ready()["sessions"].as_str().unwrap().ends_with("/ws"));
    // The first program of a kind takes the place of what was imported.
    let mut program = Program::dial(&gate);
    let params = Card::new("server-trade", "get_metadata").of("server", "trade").params();
    let answer = program.ask("session.register", &params);
    assert_eq!(answer["result"]["idle_timeout_secs"], 900, "as before");
    assert!(tool(&agent, "execute_query").is_none());
    eventually("the file is kept up to date", || {
        let file = cache(&gate.home);
        assert_eq!(file["version"], 1);
        file.to_string().contains("get_metadata").then_some(())
    });
    assert_eq!(gate.stop().0, Some(0));
    assert!(gate.home.path("work/toolgate").is_dir(), "the data folder is under workPath");
    // Again, without a connected session.
    let gate = start(gate.into_home(), "").unwrap();
    let agent = open(&gate);
    for (name, is_there) in [("НайтиЗаказ", true), ("get_metadata", true), ("execute_query", false)]
    {
        assert_eq!(tool(&agent, name).is_some(), is_there, "{name}");
    }
}

#[test]
fn its_token_becomes_a_grant_that_may_do_everything() {
    let gate = start(Home::new(), ", auth_token: SECRET-token").unwrap();
    let refused = initialize_with(&gate, "/mcp", "2025-11-25", "");
    assert_eq!(refused.status, 401);
    let agent = Agent::open_with(&gate, "sessions", "SECRET-token");
    assert_ne!(agent.call("session_list", &json!({}))["isError"], true);
    assert!(!gate.log.text().contains("SECRET"));
}

#[test]
fn a_cache_that_cannot_be_read_is_left_alone() {
    let home = Home::new();
    fs::create_dir_all(home.path("work")).unwrap();
    fs::write(home.path("work/tools_cache.json"), "{\"version\":7}").unwrap();
    let gate = start(home, "").unwrap();
    gate.log.wait_for("cannot read the tools cache");
    let _program = Program::register(&gate, &Card::new("u1", "find"));
    super::audited_in(&gate.home, "work/toolgate", "registered");
    assert_eq!(cache(&gate.home), json!({"version": 7}));
}

#[test]
fn masking_is_refused_and_not_ignored() {
    let home = Home::new();
    fs::write(home.path("v8project.yaml"), "workPath: .\nmcp: { masking: { enabled: true } }\n")
        .unwrap();
    let output = home.run(&["serve", "--config", "v8project.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.contains("v8project.yaml:2:") && printed.contains("`masking` is not supported yet"),
        "{printed}"
    );
}

#[test]
fn it_is_taken_over_for_good_with_its_tools() {
    let home = Home::new();
    fs::create_dir_all(home.path("work")).unwrap();
    let now = jiff::Timestamp::now().to_string();
    fs::write(home.path("work/tools_cache.json"), CACHE.replace("TIME", &now)).unwrap();
    let project = "workPath: work\n\
        mcp:\n  \
          session_manager: { bind_address: '127.0.0.1:0', path: /ws, idle_timeout_secs: 900, ws_ping_interval_ms: 5000 }\n  \
          http: { bind_address: '127.0.0.1:0', auth_token: SECRET-token }\n\
        tools_cache: { cache_life_period: 7days }\n\
        toolgate: { listen: { admin: off }, policies: { none: { version: '1', default: deny } }, grants: [{ label: none, token_sha256: 0000000000000000000000000000000000000000000000000000000000000000, policy: none }] }\n";
    fs::write(home.path("v8project.yaml"), project).unwrap();
    let output = home.run(&["import", "v8project.yaml"]);
    let (text, printed) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{printed}");
    golden::check("sessions/import-v8project.yaml", &text);
    assert!(
        printed.contains("nothing is closed by it")
            && printed.contains("preview: nothing was written")
            && printed.contains("2 tools into the showcase"),
        "{printed}"
    );
    assert!(!text.contains("SECRET") && !printed.contains("SECRET"));
    assert!(!home.path("work/toolgate").exists(), "a preview writes nothing");
    // Into a file, and then it is served.
    let output = home.run(&["import", "v8project.yaml", "--write", "toolgate.yaml"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(String::from_utf8(output.stderr).unwrap().contains("2 entries are new"));
    // Again: the file is unchanged, so it is replaced. An edited one is not.
    let again =
        |args: &[&str]| home.run(&[&["import", "v8project.yaml", "--write"], args].concat());
    assert_eq!(again(&[]).status.code(), Some(0));
    let written = fs::read_to_string(home.path("toolgate.yaml")).unwrap();
    fs::write(home.path("toolgate.yaml"), format!("{written}# mine\n")).unwrap();
    assert_eq!(again(&[]).status.code(), Some(2));
    assert_eq!(again(&["toolgate.yaml", "--force"]).status.code(), Some(0));
    assert!(fs::read_to_string(home.path("toolgate.yaml.bak")).unwrap().ends_with("# mine\n"));
    fs::remove_file(home.path("work/tools_cache.json")).unwrap();
    let command = home.command(&["serve", "--ready-json"]);
    let gate = Gate::run(home, command).map_err(|(_, log)| log).unwrap();
    let agent = Agent::open_with(&gate, "sessions", "SECRET-token");
    assert!(tool(&agent, "НайтиЗаказ").is_some() && tool(&agent, "execute_query").is_some());
    assert!(gate.ready()["sessions"].as_str().unwrap().ends_with("/ws"));
    let mut program = Program::dial(&gate);
    let answer = program.ask("session.register", &Card::new("u1", "find").params());
    assert_eq!(answer["result"]["idle_timeout_secs"], 900, "as before");
    // A running gateway would not see the import.
    let output =
        gate.home.run(&["import", "work/tools_cache.json", "--write", "--data", "work/toolgate"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_tools_cache_alone_goes_into_the_showcase() {
    let home = Home::new();
    let now = jiff::Timestamp::now().to_string();
    fs::write(home.path("tools_cache.json"), CACHE.replace("TIME", &now)).unwrap();
    for (file, text) in [("broken.json", "{\"version\":7}"), ("other.yaml", "version: 1\n")] {
        fs::write(home.path(file), text).unwrap();
        assert_eq!(home.run(&["import", file]).status.code(), Some(2), "{file}");
    }
    let output = home.run(&["import", "nosuch"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("no such file"), "{printed}");
    let output = home.run(&["import", "tools_cache.json", "--write"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let gate = Gate::start_in(home, "");
    assert!(tool(&open(&gate), "НайтиЗаказ").is_some());
}

#[test]
fn it_is_found_by_the_variable_of_the_other_manager_with_its_cache_elsewhere() {
    let home = Home::new();
    let now = jiff::Timestamp::now().to_string();
    fs::write(home.path("cache.json"), CACHE.replace("TIME", &now)).unwrap();
    let project = "workPath: work\n\
        toolgate: { listen: { admin: off } }\n\
        mcp:\n  \
          session_manager: { bind_address: '127.0.0.1:0', heartbeat_interval_ms: 9000, graceful_kill_grace_ms: 7, ws_ping_interval_ms: 0, ws_ping_timeout_ms: 60000 }\n  \
          http: { bind_address: '127.0.0.1:0' }\n\
        toolsCache: { enabled: true, cacheLifePeriod: 2days, storagePath: cache.json }\n";
    fs::write(home.path("v8project.yaml"), project).unwrap();
    fs::create_dir_all(home.path("work")).unwrap();
    let mut command = home.command(&["serve", "--ready-json"]);
    command.env("V8SM_CONFIG", "v8project.yaml");
    let gate = Gate::run(home, command).map_err(|(_, log)| log).unwrap();
    assert!(tool(&open(&gate), "НайтиЗаказ").is_some());
    let mut program = Program::dial(&gate);
    let answer = program.ask("session.register", &Card::new("u1", "find").params());
    assert_eq!(answer["result"]["heartbeat_interval_ms"], 9000);
    eventually("the file that was named is kept up to date", || {
        let file = fs::read_to_string(gate.home.path("cache.json")).unwrap();
        file.contains("\"find\"").then_some(())
    });
}
