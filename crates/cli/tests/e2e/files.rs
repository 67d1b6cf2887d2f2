//! Files that another user can have written are not trusted, and nothing is written through a link.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::agent::{NEWEST, initialize};
use crate::api::Api;
use crate::gate::{Gate, Home, LISTEN};

/// Some user that is neither this one nor root.
const OTHER: u32 = 65_534;
const TOKEN: &str = "a-token-in-a-file-of-its-own";

const CONFIG: &str = "policies: { p: { file: p.yaml } }\n\
                      grants: [{ label: g, token: 'file:g.token', policy: p }]\n";

/// A home with everything that a configuration may name, and a data folder that was used once.
fn furnished() -> Home {
    let home = Home::new();
    fs::write(home.path("p.yaml"), "version: '1'\ndefault: allow\n").unwrap();
    fs::write(home.path("g.token"), TOKEN).unwrap();
    let mut gate = Gate::start_in(home, CONFIG);
    assert_eq!(gate.stop().0, Some(0));
    gate.into_home()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The stderr of a start that must fail.
#[track_caller]
fn refused(home: &Home) -> String {
    let output = home.run(&["serve", "--ready-json"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(output.stdout.is_empty());
    printed
}

fn trusted(home: &Home) -> Vec<(&'static str, PathBuf)> {
    let data = home.path(".local/share/toolgate");
    vec![
        ("configuration", home.file()),
        ("policy", home.path("p.yaml")),
        ("token", home.path("g.token")),
        ("data folder", data.clone()),
        ("admin token", data.join("admin.token")),
        ("signing key", data.join("audit.key")),
        ("hashing key", data.join("hash.key")),
        ("database", data.join("toolgate.db")),
    ]
}

#[test]
fn files_that_others_can_write_are_refused_with_what_to_type() {
    let home = furnished();
    for (what, path) in trusted(&home) {
        let before = fs::metadata(&path).unwrap().permissions();
        mode(&path, before.mode() | 0o002);
        let printed = refused(&home);
        let typed = format!("chmod o-w {}", path.display());
        assert!(printed.contains(&typed), "{what}: {printed}");
        fs::set_permissions(&path, before).unwrap();
    }
    let mut gate = Gate::start_in(home, CONFIG);
    assert_eq!(gate.stop().0, Some(0));
}

#[test]
fn files_of_another_user_are_refused_with_what_to_type() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give a file away; others are covered by the modes above.
        return;
    }
    let home = furnished();
    for (what, path) in trusted(&home) {
        chown(&path, Some(OTHER), None).unwrap();
        let printed = refused(&home);
        let typed = format!("chown 0 {}", path.display());
        assert!(printed.contains(&typed), "{what}: {printed}");
        chown(&path, Some(0), None).unwrap();
    }
    // A link that another user can turn elsewhere.
    fs::rename(home.file(), home.path("real.yaml")).unwrap();
    symlink("real.yaml", home.file()).unwrap();
    rustix::fs::chownat(
        rustix::fs::CWD,
        home.file(),
        Some(rustix::fs::Uid::from_raw(OTHER)),
        None,
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
    )
    .unwrap();
    assert!(refused(&home).contains("is a link that the user 65534 has made"));
}

#[test]
fn nothing_is_imported_that_others_can_write() {
    let home = Home::new();
    for (name, text) in [("v8project.yaml", "mcp: {}\n"), ("tools_cache.json", "{}")] {
        let path = home.path(name);
        fs::write(&path, text).unwrap();
        mode(&path, 0o666);
        let output = home.run(&["import", path.to_str().unwrap()]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(&format!("chmod o-w {}", path.display())), "{printed}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_link_of_ones_own_is_judged_by_its_target() {
    let home = furnished();
    fs::rename(home.file(), home.path("real.yaml")).unwrap();
    symlink("real.yaml", home.file()).unwrap();
    mode(&home.path("real.yaml"), 0o666);
    assert!(refused(&home).contains("chmod o-w"));
    mode(&home.path("real.yaml"), 0o644);
    let command = home.command(&["serve", "--ready-json"]);
    let mut gate = Gate::run(home, command).unwrap_or_else(|(_, printed)| panic!("{printed}"));
    assert_eq!(gate.stop().0, Some(0));
}

#[test]
fn a_group_that_can_write_is_worth_a_warning() {
    let home = furnished();
    mode(&home.path("p.yaml"), 0o664);
    let gate = Gate::start_in(home, CONFIG);
    gate.log.line_with(&["WARN", "can write to", "chmod g-w", "p.yaml"]);
}

#[test]
fn a_file_that_became_writable_is_not_read_again() {
    let home = furnished();
    let gate = Gate::start_in(home, CONFIG);
    let api = Api::admin(&gate);
    let opens = |token: &str| {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        crate::agent::initialize_with(&gate, "/mcp", NEWEST, &bearer).status
    };
    assert_eq!(opens(TOKEN), 200);
    for path in [gate.home.file(), gate.home.path("g.token"), gate.home.path("p.yaml")] {
        mode(&path, 0o666);
        let before = gate.log.text().len();
        gate.signal(Signal::HUP);
        let printed = crate::gate::eventually("the file is refused", || {
            let printed = gate.log.text().split_off(before);
            printed.contains("the previous one stays active").then_some(printed)
        });
        crate::gate::eventually("with what to type", || {
            gate.log.text().split_off(before).contains("chmod o-w").then_some(())
        });
        assert!(!printed.contains("configuration reloaded"), "{printed}");
        assert_eq!(opens(TOKEN), 200);
        mode(&path, 0o644);
    }
    // Also if its text is another.
    let with_more = format!("version: 1\n{LISTEN}\n{CONFIG}local: off\npeople: []\n");
    fs::write(gate.home.file(), with_more).unwrap();
    gate.log.wait_for("configuration reloaded");
    assert_eq!(api.get("people")["items"].as_array().unwrap().len(), 1);
    assert_eq!(initialize(&gate, "none", NEWEST).status, 401);
}

#[test]
fn verbs_trust_no_folder_of_others_either() {
    let mut gate = Gate::start("");
    let data = gate.home.path(".local/share/toolgate");
    for path in [gate.home.file(), data.clone(), data.join("admin.token"), data.join("serve.json")]
    {
        let before = fs::metadata(&path).unwrap().permissions();
        mode(&path, before.mode() | 0o002);
        let output = gate.home.run(&["freeze", "--all"]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{}: {printed}", path.display());
        assert!(printed.contains(&format!("chmod o-w {}", path.display())), "{printed}");
        fs::set_permissions(&path, before).unwrap();
    }
    assert_eq!(gate.home.run(&["freeze", "--all"]).status.code(), Some(0));
    assert_eq!(gate.stop().0, Some(0));
}

#[test]
fn new_files_are_private_and_never_made_through_a_link() {
    let home = Home::new();
    let data = home.path("data");
    fs::create_dir(&data).unwrap();
    mode(&data, 0o755);
    let precious = home.path("precious");
    fs::write(&precious, "precious").unwrap();
    for name in ["admin.token.new", "serve.json.new", "serve.json"] {
        symlink(&precious, data.join(name)).unwrap();
    }
    symlink(home.path("nowhere"), data.join("admin.token")).unwrap();
    let mut gate = Gate::start_in(home, "data: ./data");
    for entry in fs::read_dir(&data).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let bits = fs::symlink_metadata(entry.path()).unwrap().permissions().mode() & 0o777;
        let expected = match name.as_str() {
            "audit.pub" => 0o644,
            "owners" => 0o700,
            _ => 0o600,
        };
        assert_eq!(bits, expected, "{name}");
    }
    assert_eq!(gate.stop().0, Some(0));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert!(!gate.home.path("nowhere").exists());

    // A link in the place of the lock would have its target cut.
    fs::remove_file(data.join("serve.lock")).unwrap();
    symlink(&precious, data.join("serve.lock")).unwrap();
    assert!(refused(&gate.home).contains("serve.lock"));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
}

#[test]
fn results_are_not_written_through_a_link_of_another_user() {
    let home = Home::new();
    fs::write(home.path("v8project.yaml"), "session_manager:\n  ws_port: 4000\n").unwrap();
    fs::write(home.path("target"), "theirs").unwrap();
    symlink("target", home.path("out.yaml")).unwrap();
    if rustix::process::geteuid().is_root() {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let other = Some(rustix::fs::Uid::from_raw(OTHER));
        rustix::fs::chownat(rustix::fs::CWD, home.path("out.yaml"), other, None, flags).unwrap();
        let policy = home.path("pl.json");
        fs::write(&policy, r#"{"version":"1","default":"allow"}"#).unwrap();
        let output = home.run(&["policy", "import", "--write", "out.yaml", "pl.json"]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains("is a link that the user 65534 has made"), "{printed}");
        assert_eq!(fs::read_to_string(home.path("target")).unwrap(), "theirs");
    }
}

#[test]
fn a_token_is_not_sent_to_another_program_on_the_old_address() {
    let mut gate = Gate::start("");
    gate.signal(Signal::KILL);
    gate.wait();
    let data = gate.home.path(".local/share/toolgate");
    assert!(data.join("serve.json").exists(), "it was killed");
    let somebody = std::net::TcpListener::bind(gate.admin()).unwrap();
    somebody.set_nonblocking(true).unwrap();
    let output = gate.home.run(&["freeze", "--all"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("no gateway runs on the data folder"), "{printed}");
    assert!(somebody.accept().is_err(), "nothing was sent there");
}
