//! Every file that a configuration is read from is watched, wherever it is and whenever it appears;
//! only regular files are read, and never more of them than the limit.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use crate::agent::{Agent, NEWEST, initialize_with};
use crate::api::Api;
use crate::gate::{Gate, Home, LISTEN, eventually};
use crate::peer::{Peer, gate_with_peer};

const ALLOW: &str = "version: '1'\ndefault: allow\n";
const DENY: &str = "version: '1'\ndefault: deny\n";
const TOKEN: &str = "a-token-of-more-than-20-characters";

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Puts a file into the place of another in one step, with this mode.
fn replace(path: &Path, text: &str, bits: u32) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    mode(&new, bits);
    fs::rename(new, path).unwrap();
}

/// Replaces a file by a pipe that a writer holds open and never writes to.
fn replace_by_pipe(path: &Path) -> File {
    let new = path.with_extension("pipe");
    mknodat(CWD, &new, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::rename(&new, path).unwrap();
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

fn until_mode(agent: &Agent, mode: &str) {
    eventually(&format!("the server runs in mode `{mode}`"), || {
        (agent.says("mode") == mode).then_some(())
    });
}

#[test]
fn a_refused_file_is_read_again_when_its_mode_is_right() {
    let (gate, peer) = gate_with_peer("", "before", "");
    let agent = Agent::open(&gate, "peer");
    let text = format!("version: 1\n{LISTEN}\nservers:\n{}", peer.entry("after", ""));
    replace(&gate.home.file(), &text, 0o666);
    gate.log.wait_for("the previous one stays active");
    assert_eq!(agent.says("mode"), "before");
    mode(&gate.home.file(), 0o644);
    until_mode(&agent, "after");
}

#[test]
fn a_secret_that_appears_later_is_read() {
    let (gate, peer) = gate_with_peer("", "before", "");
    let agent = Agent::open(&gate, "peer");
    let env = "env: { WORD: 'file:run/secrets/word' }";
    gate.configure(&format!("servers:\n{}", peer.entry("after", env)));
    gate.log.wait_for("the previous one stays active");
    fs::create_dir_all(gate.home.path("run/secrets")).unwrap();
    replace(&gate.home.path("run/secrets/word"), "created later", 0o600);
    until_mode(&agent, "after");
    assert!(agent.says("env").contains("WORD=created later"));
    replace(&gate.home.path("run/secrets/word"), "changed later", 0o600);
    eventually("the changed secret is used", || {
        agent.says("env").contains("WORD=changed later").then_some(())
    });
}

#[test]
fn a_link_is_watched_where_it_leads() {
    let home = Home::new();
    let peer = Peer::new(&home, "peer");
    let text = |mode| format!("version: 1\n{LISTEN}\nservers:\n{}", peer.entry(mode, ""));
    // As Kubernetes mounts a ConfigMap: the folder behind `..data` is replaced as a whole.
    let volume = home.path("volume");
    for (folder, mode) in [("..1", "before"), ("..2", "after")] {
        fs::create_dir_all(volume.join(folder)).unwrap();
        fs::write(volume.join(folder).join("toolgate.yaml"), text(mode)).unwrap();
    }
    symlink("..1", volume.join("..data")).unwrap();
    symlink("..data/toolgate.yaml", volume.join("toolgate.yaml")).unwrap();
    symlink("volume/toolgate.yaml", home.file()).unwrap();
    let command = home.command(&["serve", "--ready-json"]);
    let gate = Gate::run(home, command).unwrap_or_else(|(_, log)| panic!("{log}"));
    let agent = Agent::open(&gate, "peer");
    assert_eq!(agent.says("mode"), "before");
    symlink("..2", volume.join("..data_tmp")).unwrap();
    fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    until_mode(&agent, "after");
}

#[test]
fn policy_folders_are_watched_whenever_they_appear() {
    let home = Home::new();
    fs::write(home.path("token"), TOKEN).unwrap();
    let gate = Gate::start_in(home, "");
    let api = Api::admin(&gate);
    let config = |folder: &str| {
        format!(
            "policies: {{ p: {{ file: {folder}/p.yaml }} }}\n\
             grants: [{{ label: g, token: 'file:token', policy: p }}]"
        )
    };
    let document = |expected: &str| {
        eventually(&format!("the policy is {expected}"), || {
            let items = api.get("policies");
            let has =
                |name: &str| items["items"].as_array().unwrap().iter().any(|it| it["name"] == name);
            (has("p") && api.get("policies/p")["document"] == expected).then_some(())
        });
    };

    // A folder that a reload names for the first time.
    fs::create_dir(gate.home.path("rules")).unwrap();
    fs::write(gate.home.path("rules/p.yaml"), ALLOW).unwrap();
    gate.configure(&config("rules"));
    document(ALLOW);
    replace(&gate.home.path("rules/p.yaml"), DENY, 0o644);
    document(DENY);

    // A folder that is created after the file that names it.
    gate.configure(&config("later/rules"));
    gate.log.wait_for("the previous one stays active");
    fs::create_dir(gate.home.path("later")).unwrap();
    fs::create_dir(gate.home.path("later/rules")).unwrap();
    replace(&gate.home.path("later/rules/p.yaml"), ALLOW, 0o644);
    document(ALLOW);

    // A folder that is replaced as a whole.
    fs::create_dir_all(gate.home.path("next/rules")).unwrap();
    fs::write(gate.home.path("next/rules/p.yaml"), DENY).unwrap();
    fs::rename(gate.home.path("later/rules"), gate.home.path("later/old")).unwrap();
    fs::rename(gate.home.path("next/rules"), gate.home.path("later/rules")).unwrap();
    document(DENY);
}

#[test]
fn pipes_are_not_read_and_delay_no_stop() {
    for name in ["toolgate.yaml", "p.yaml", "token"] {
        let home = Home::new();
        fs::write(home.path("p.yaml"), ALLOW).unwrap();
        fs::write(home.path("token"), TOKEN).unwrap();
        let config = "policies: { p: { file: p.yaml } }\n\
                      grants: [{ label: g, token: 'file:token', policy: p }]";
        let mut gate = Gate::start_in(home, config);
        let path = gate.home.path(name);
        let _writer = replace_by_pipe(&path);
        gate.signal(Signal::HUP);
        gate.log.line_with(&[&path.display().to_string(), "is not a regular file"]);
        let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
        assert_eq!(initialize_with(&gate, "/mcp", NEWEST, &bearer).status, 200, "{name}");
        assert_eq!(gate.stop().0, Some(0), "{name}");

        let output = gate.home.run(&["serve", "--ready-json"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        assert!(stderr.contains("is not a regular file"), "{name}: {stderr}");
    }
}

#[test]
fn devices_and_files_above_the_limit_are_not_read() {
    let home = Home::new();
    let endless = |name: &str| {
        symlink("/dev/zero", home.path(name)).unwrap();
        home.path(name)
    };
    let large = home.path("large.yaml");
    // A sparse file: its head alone is a valid configuration.
    fs::write(&large, "version: 1\n").unwrap();
    OpenOptions::new().write(true).open(&large).unwrap().set_len(9 << 20).unwrap();
    let cases = [
        (endless("endless.yaml"), "is not a regular file"),
        (large, "is larger than 8 MiB, the limit for such a file"),
    ];
    for (path, why) in cases {
        for verb in ["serve", "audit"] {
            let words: &[&str] = if verb == "serve" { &["serve"] } else { &["audit", "list"] };
            let output = home.command(words).arg("--config").arg(&path).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{verb}: {stderr}");
            assert!(stderr.contains(why), "{verb}: {stderr}");
        }
    }
}
