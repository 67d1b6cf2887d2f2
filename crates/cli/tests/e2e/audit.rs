//! The audit as people read it, while the gateway runs and after it stopped.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::gate::{GUARD, Gate, Home, configuration, eventually};
use crate::peer::{Peer, gate_with_peer};

const DATA: &str = ".local/share/toolgate";
const POLICY: &str = "version: '1'\ndefault: deny\ntools:\n  echo: { action: allow, limits: \
                      [{ counter: c, max: 9, window: 30d, scope: grant }] }\n";

fn run(home: &Home, words: &[&str]) -> (Option<i32>, String, String) {
    let output = home.run(&[&["audit"], words].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn rows(home: &Home) -> Vec<Value> {
    let (code, out, err) = run(home, &["list", "--after", "0", "-o", "jsonl"]);
    assert_eq!(code, Some(0), "{err}");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A gateway that was asked for `echo`, which passed, and for `pid`, which did not.
fn used() -> Gate {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let file = home.path("policy.yaml");
    fs::write(&file, POLICY).unwrap();
    let gate = Gate::start_as(home, &format!("servers:\n{}", peer.entry("", "")), |command| {
        command.arg("--policy").arg(file);
    });
    let agent = Agent::open(&gate, "files");
    agent.call("echo", &json!({}));
    eventually("the outcome is written", || {
        rows(&gate.home).iter().any(|row| row["kind"] == "outcome").then_some(())
    });
    agent.call("pid", &json!({}));
    gate
}

#[test]
fn it_is_read_while_the_gateway_runs_and_after() {
    let mut gate = used();
    for stopped in [false, true] {
        if stopped {
            assert_eq!(gate.stop().0, Some(0));
        }
        let all = rows(&gate.home);
        let count = all.len();
        let verified = run(&gate.home, &["verify", "-o", "json"]);
        let expected = json!({"ok": true, "rows": count, "first_bad": null});
        let found: Value = serde_json::from_str(&verified.1).unwrap();
        assert_eq!((verified.0, found), (Some(0), expected));
        let denied =
            run(&gate.home, &["list", "-o", "json", "--tool", "pid", "--decision", "deny"]);
        let denied: Value = serde_json::from_str(&denied.1).unwrap();
        assert_eq!(denied["items"].as_array().unwrap().len(), 1, "{denied}");
        assert_eq!(
            (&denied["items"][0]["kind"], &denied["next"]),
            (&json!("denied"), &json!(null))
        );
        let first = run(&gate.home, &["list", "--after", "0", "-o", "json", "--limit", "1"]);
        let first: Value = serde_json::from_str(&first.1).unwrap();
        assert_eq!((&first["items"], &first["next"]), (&json!([all[0]]), &json!(1)));
        let (code, table, _) = run(&gate.home, &["tail"]);
        assert_eq!((code, table.lines().count()), (Some(0), count + 1), "{table}");

        let intent = all.iter().find(|row| row["kind"] == "intent").unwrap();
        let call = intent["call_id"].as_str().unwrap();
        let (code, story, _) = run(&gate.home, &["show", call]);
        assert_eq!(code, Some(0));
        for words in ["Grant local, through ", "echo of server files", "from 0 to 1", "Outcome: ok"]
        {
            assert!(story.contains(words), "{words}: {story}");
        }
    }
    let (code, _, err) = run(&gate.home, &["show", "ffff"]);
    assert!(code == Some(1) && err.contains("audit list"), "{err}");
}

#[test]
fn a_rule_is_shown_with_its_line() {
    let home = Home::new();
    let peer = Peer::new(&home, "files");
    let tokens = [("A", "a-token-of-a-grant-0123456789"), ("B", "b-token-of-a-grant-0123456789")];
    fs::write(
        home.path("strict.yaml"),
        "version: '1'\ntools:\n  echo: { action: deny }\ndefault: deny\n",
    )
    .unwrap();
    let config = format!(
        "policies:\n  strict: {{ file: strict.yaml }}\n  inline:\n    version: '1'\n    default: deny\n    tools:\n      \
         echo: {{ action: deny }}\ngrants:\n  - {{ label: a, token: env:A, policy: strict }}\n  \
         - {{ label: b, token: env:B, policy: inline }}\nservers:\n{}",
        peer.entry("", "")
    );
    let gate = Gate::start_as(home, &config, |command| {
        command.envs(tokens);
    });
    let refused = tokens.map(|(_, token)| {
        let result = Agent::open_with(&gate, "files", token).call("echo", &json!({}));
        result["_meta"]["call_id"].as_str().unwrap().to_owned()
    });
    let story = |call: &str, words: &[&str]| {
        let (code, story, err) = run(&gate.home, &[&["show", call], words].concat());
        assert_eq!(code, Some(0), "{err}");
        story
    };
    for (call, place) in refused.iter().zip(["strict.yaml:3:11)", "toolgate.yaml:9:15)"]) {
        let story = story(call, &[]);
        assert!(story.contains("deny by rule /tools/echo/action ("), "{story}");
        assert!(story.contains(place), "{place}: {story}");
    }
    // Another document of the same name does not lend its lines, and the change is in the audit.
    fs::write(gate.home.path("strict.yaml"), "version: '1'\n\ndefault: deny\ntools:\n  echo: {}\n")
        .unwrap();
    let edit = eventually("the edit is written down", || {
        let mut rows = rows(&gate.home).into_iter().rev();
        let text = "the configuration has another text for the policy `strict`";
        rows.find(|row| row["kind"] == "policy" && row["message"] == text)
    });
    assert_eq!((&edit["policy"], edit["policy_hash"].is_string()), (&json!("strict"), true));
    let changed = story(&refused[0], &[]);
    assert!(changed.contains("the policy has changed since"), "{changed}");
    let kept = gate.home.path("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(
        kept.join("strict.yaml"),
        "tools:\n  echo: { action: deny }\nversion: '1'\ndefault: deny\n",
    )
    .unwrap();
    let found = story(&refused[0], &["--policy", "kept/strict.yaml"]);
    assert!(found.contains("(kept/strict.yaml:2:11)"), "{found}");
}

/// The active policies are recorded once at the start, and edits made while stopped before they apply.
#[test]
fn policies_of_the_file_are_recorded_at_the_start() {
    let home = Home::new();
    let file = home.path("one.yaml");
    fs::write(&file, "version: '1'\ndefault: deny\n").unwrap();
    let both = "policies: { one: { file: one.yaml }, two: { version: '1', default: allow } }\n";
    let one = "policies: { one: { file: one.yaml } }\n";
    let reported = |home: &Home| -> Vec<(String, bool)> {
        let rows = rows(home).into_iter().filter(|row| row["kind"] == "policy");
        rows.map(|row| {
            let printed = row["message"].as_str().unwrap().trim_start_matches("the configuration ");
            (printed.to_owned(), row["policy_hash"].is_string())
        })
        .collect()
    };
    let mut expected = vec![
        ("has a new policy `one`".to_owned(), true),
        ("has a new policy `two`".to_owned(), true),
    ];
    let again = |mut gate: Gate, config: &str| {
        assert_eq!(gate.stop().0, Some(0));
        Gate::start_in(gate.into_home(), config)
    };
    let gate = Gate::start_in(home, both);
    assert_eq!(reported(&gate.home), expected, "before it was ready");
    let gate = again(gate, both);
    assert_eq!(reported(&gate.home), expected, "nothing has changed");
    // While it runs, and while it does not.
    fs::write(&file, "version: '1'\ndefault: allow\n").unwrap();
    let other = ("has another text for the policy `one`".to_owned(), true);
    expected.push(other.clone());
    eventually("the edit is written down", || (reported(&gate.home) == expected).then_some(()));
    let mut gate = again(gate, both);
    assert_eq!(reported(&gate.home), expected, "it was written down");
    assert_eq!(gate.stop().0, Some(0));
    fs::write(&file, "version: '1'\ndefault: deny\n").unwrap();
    let gate = Gate::start_in(gate.into_home(), one);
    expected.extend([other, ("no longer has the policy `two`".to_owned(), false)]);
    assert_eq!(reported(&gate.home), expected);
    let gate = again(gate, one);
    assert_eq!(reported(&gate.home), expected, "it was written down");
}

#[test]
fn an_edit_is_found_and_named() {
    let mut gate = used();
    assert_eq!(gate.stop().0, Some(0));
    let file = gate.home.path(DATA).join("toolgate.db");
    let edit = rusqlite::Connection::open(&file).unwrap();
    edit.execute("UPDATE audit SET tool = 'other' WHERE seq = 2", []).unwrap();
    drop(edit);
    let (code, out, err) = run(&gate.home, &["verify", "-o", "json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, found), (Some(1), json!({"ok": false, "rows": 2, "first_bad": 2})));
    assert!(err.contains("broken at row 2: its hash"), "{err}");
    fs::write(&file, "this is no database, whatever its name says").unwrap();
    let (code, _, err) = run(&gate.home, &["verify"]);
    assert!(code == Some(2) && err.contains("cannot read the audit"), "{err}");
}

#[test]
fn checkpoints_elsewhere_show_what_was_cut_off() {
    let config = "audit: { checkpoints: { rows: 1, file: elsewhere.jsonl } }";
    let (mut gate, _peer) = gate_with_peer(config, "", "");
    Agent::open(&gate, "peer").call("echo", &json!({}));
    assert_eq!(gate.stop().0, Some(0));
    let home = gate.into_home();
    let written = fs::read_to_string(home.path("elsewhere.jsonl")).unwrap();
    assert!(written.lines().count() >= 1, "{written}");
    let verify = |words: &[&str]| run(&home, &[&["verify"], words].concat());
    let elsewhere = ["--checkpoints", "elsewhere.jsonl"];
    assert_eq!(verify(&elsewhere).0, Some(0));

    // An attacker with the folder truncates rows and checkpoints.
    let database = rusqlite::Connection::open(home.path(DATA).join("toolgate.db")).unwrap();
    let last: i64 = database.query_row("SELECT max(seq) FROM audit", [], |row| row.get(0)).unwrap();
    database.execute("DELETE FROM audit WHERE seq = ?1", [last]).unwrap();
    database.execute("DELETE FROM checkpoint WHERE seq >= ?1", [last]).unwrap();
    drop(database);
    assert_eq!(verify(&[]).0, Some(0), "the folder alone cannot tell");
    let (code, _, printed) = verify(&elsewhere);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains(&format!("row {last}")), "{printed}");
    fs::write(home.path("elsewhere.jsonl"), "{}\n").unwrap();
    assert_eq!(verify(&elsewhere).0, Some(2));
}

#[test]
fn checkpoints_are_sent_to_syslog() {
    let home = Home::new();
    let socket = UnixDatagram::bind(home.path("log")).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(GUARD)).unwrap();
    udp.set_read_timeout(Some(GUARD)).unwrap();
    let path = home.path("log").display().to_string();
    let address = format!("udp://{}", udp.local_addr().unwrap());
    let mut home = home;
    for (name, place) in [("one", path), ("two", address)] {
        let peer = Peer::new(&home, name);
        let config = format!(
            "audit: {{ checkpoints: {{ rows: 1, syslog: '{place}' }} }}\nservers:\n{}",
            peer.entry("", "")
        );
        let mut gate = Gate::start_in(home, &config);
        Agent::open(&gate, name).call("echo", &json!({}));
        let pid = gate.pid();
        assert_eq!(gate.stop().0, Some(0));
        home = gate.into_home();
        let mut bytes = [0; 2048];
        let received = if name == "one" { socket.recv(&mut bytes) } else { udp.recv(&mut bytes) };
        let message = std::str::from_utf8(&bytes[..received.unwrap()]).unwrap();
        // RFC 5424: priority and version, time, host, program, process, kind, no structured data.
        let parts: Vec<_> = message.splitn(8, ' ').collect();
        assert_eq!(parts[0], "<109>1");
        parts[1].parse::<jiff::Timestamp>().unwrap();
        let pid = pid.to_string();
        assert_eq!(parts[2..7], ["-", "toolgate", &pid, "checkpoint", "-"]);
        let reported: Value = serde_json::from_str(parts[7]).unwrap();
        assert!(reported["seq"].as_u64().unwrap() >= 1, "{reported}");
        // What a daemon has written is good for verifying.
        let line = format!("2026-11-16T00:00:00+00:00 host toolgate[{pid}]: {}\n", parts[7]);
        fs::write(home.path("syslog"), line).unwrap();
        assert_eq!(run(&home, &["verify", "--checkpoints", "syslog"]).0, Some(0));
    }
}

#[test]
fn a_syslog_that_is_not_there_ends_the_start() {
    let home = Home::new();
    home.configure(&configuration("audit: { checkpoints: { syslog: /no/such/socket } }"));
    let output = home.run(&["serve"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("cannot write checkpoints to `syslog at /no/such/socket`"),
        "{printed}"
    );
}

#[test]
fn a_folder_without_an_audit() {
    for verb in [&["verify"][..], &["list"], &["tail"], &["show", "ab"]] {
        let home = Home::new();
        let (code, out, err) = run(&home, verb);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(err.contains("there is no audit in") && err.contains("--data"), "{err}");
        assert!(!home.path(DATA).exists());
    }
}

/// A folder that cannot be looked into is not one without an audit.
#[test]
fn a_folder_that_cannot_be_read() {
    let home = Home::new();
    let folder = "x".repeat(300);
    for verb in ["verify", "list", "tail"] {
        let output = home.run(&["audit", verb, "--data", &folder]);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("File name too long") && !err.contains("there is no"), "{err}");
    }
}

/// Rows that are gone, moved, doubled or cut off, and a page that is spoilt: each is a finding that
/// names its row, never an error.
#[test]
fn every_kind_of_damage_is_a_finding() {
    let mut gate = used();
    assert_eq!(gate.stop().0, Some(0));
    let file = gate.home.path(DATA).join("toolgate.db");
    let sql = rusqlite::Connection::open(&file).unwrap();
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let page = "SELECT rootpage FROM sqlite_schema WHERE name = 'audit'";
    let page: i64 = sql.query_row(page, [], |row| row.get(0)).unwrap();
    drop(sql);
    let untouched = fs::read(&file).unwrap();
    let swap = "UPDATE audit SET seq = -1 WHERE seq = 1; UPDATE audit SET seq = 1 WHERE seq = 2; \
                UPDATE audit SET seq = 2 WHERE seq = -1";
    let spoil = "a spoilt page";
    for (damage, bad) in [
        ("DELETE FROM audit WHERE seq = 2", 2),
        (swap, 1),
        ("UPDATE audit SET seq = 9 WHERE seq = 3", 3),
        ("DELETE FROM audit WHERE seq > 1", 2),
        ("UPDATE audit SET time = 'x', hash = x'00' WHERE seq = 2", 2),
        (spoil, 1),
    ] {
        if damage == spoil {
            let start = usize::try_from(page - 1).unwrap() * 4096;
            let mut bytes = untouched.clone();
            bytes[start..start + 512].fill(0xa5);
            fs::write(&file, bytes).unwrap();
        } else if rusqlite::Connection::open(&file).unwrap().execute_batch(damage).is_err() {
            // The schema knows what a time is.
            fs::write(&file, &untouched).unwrap();
            continue;
        }
        let (code, out, err) = run(&gate.home, &["verify", "-o", "json"]);
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (code, &found["ok"], &found["first_bad"]),
            (Some(1), &json!(false), &json!(bad))
        );
        assert!(err.contains(&format!("broken at row {bad}: ")), "{damage}: {err}");
        fs::write(&file, &untouched).unwrap();
    }
    assert_eq!(run(&gate.home, &["verify"]).0, Some(0));
}

/// `--follow` shows what is there, then every row as it comes, over a restart of the gateway too,
/// until it is interrupted.
#[test]
fn a_follower_sees_every_row_as_it_comes() {
    let mut gate = used();
    let mut command = gate.home.command(&["audit", "tail", "--follow", "-o", "jsonl"]);
    let mut follower = command.spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next =
        move || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let before = rows(&gate.home);
    for row in &before {
        assert_eq!(next(), *row);
    }
    let agent = Agent::open(&gate, "files");
    agent.call("pid", &json!({}));
    let denied = next();
    assert_eq!((&denied["kind"], &denied["tool"]), (&json!("denied"), &json!("pid")));
    agent.call("echo", &json!({}));
    assert_eq!(
        (next()["kind"].clone(), next()["kind"].clone()),
        (json!("intent"), json!("outcome"))
    );
    assert_eq!(gate.stop().0, Some(0));
    let (file, config) = (gate.home.path("policy.yaml"), gate.home.file());
    let config = fs::read_to_string(config).unwrap();
    let config = config.replace("version: 1\n", "");
    let gate = Gate::start_as(gate.into_home(), &config, |command| {
        command.arg("--policy").arg(file);
    });
    Agent::open(&gate, "files").call("echo", &json!({}));
    assert_eq!(
        (next()["seq"].clone(), next()["kind"].clone()),
        (json!(before.len() + 4), json!("outcome"))
    );
    kill_process(Pid::from_child(&follower), Signal::INT).unwrap();
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

/// The reader is gone: it ends by itself, silently.
#[test]
fn a_follower_ends_when_its_reader_is_gone() {
    let gate = used();
    let mut command = gate.home.command(&["audit", "tail", "--follow"]);
    let mut follower = command.spawn().unwrap();
    let mut output = BufReader::new(follower.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    drop(output);
    let agent = Agent::open(&gate, "files");
    let status = eventually("the follower ends", || {
        agent.call("pid", &json!({}));
        follower.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(0));
    let mut printed = String::new();
    follower.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "");
}
