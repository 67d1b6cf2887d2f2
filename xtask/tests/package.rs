//! The Debian package is built, installed, removed and purged in a root of its own, and the unit in it
//! is sound. A script replaces the binary; other tests build it.
//!
//! Needs dpkg and systemd-analyze, as the full tests need a Debian-like machine.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = "#!/bin/sh\necho toolgate\n";
/// The highest exposure that `systemd-analyze security` may find, times ten.
const MOST_EXPOSED: u32 = 25;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(command: &mut Command) -> Output {
    let program = command.get_program().to_owned();
    let output = command.output();
    output.unwrap_or_else(|error| panic!("{}: {error}; install it", program.display()))
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = run(command);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

/// `dpkg` for a root of its own. Scripts of the package run outside of it and see `DPKG_ROOT`.
fn dpkg(root: &Path) -> Command {
    let mut command = Command::new("dpkg");
    command.arg(format!("--root={}", root.display()));
    command.args(["--force-not-root", "--force-script-chrootless", "--force-depends"]);
    command.arg(format!("--log={}", root.join("log").display()));
    command
}

#[test]
fn the_debian_package_is_installed_and_removed() {
    let folder = folder("package");
    let at = |name: &str| folder.join(name);
    fs::write(at("program"), PROGRAM).unwrap();
    fs::set_permissions(at("program"), fs::Permissions::from_mode(0o755)).unwrap();
    let build = repository().join("deploy/debian/build.sh");
    let mut building = Command::new("sh");
    building.arg(build).arg(at("program")).arg(at("toolgate.deb"));
    succeed(building.env("TOOLGATE_DEB_COMPRESSION", "none"));

    let root = at("root");
    for part in ["info", "updates", "triggers"] {
        fs::create_dir_all(root.join("var/lib/dpkg").join(part)).unwrap();
    }
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    succeed(dpkg(&root).arg("-i").arg(at("toolgate.deb")));
    assert_eq!(succeed(&mut Command::new(root.join("usr/bin/toolgate"))), "toolgate\n");
    let unit = root.join("usr/lib/systemd/system/toolgate.service");
    let text = fs::read_to_string(&unit).unwrap();
    assert!(text.contains("ExecStart=/usr/bin/toolgate serve"), "{text}");
    let config = root.join("etc/toolgate/toolgate.yaml");
    fs::write(&config, "version: 1 # mine\n").unwrap();

    succeed(dpkg(&root).args(["-r", "toolgate"]));
    assert!(!root.join("usr/bin/toolgate").exists() && !unit.exists());
    assert!(fs::read_to_string(&config).unwrap().contains("mine"), "the configuration stays");
    succeed(dpkg(&root).args(["-P", "toolgate"]));
    assert!(!config.exists());
}

#[test]
fn the_unit_is_sound_and_not_exposed() {
    let folder = folder("unit");
    let program = folder.join("toolgate");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let text = fs::read_to_string(repository().join("deploy/systemd/toolgate.service")).unwrap();
    let text = text.replace("/usr/local/bin/toolgate", &program.display().to_string());
    let unit = folder.join("toolgate.service");
    fs::write(&unit, text).unwrap();
    let told = succeed(Command::new("systemd-analyze").arg("verify").arg(&unit));
    assert_eq!(told, "", "`systemd-analyze verify` has nothing to say");

    let mut security = Command::new("systemd-analyze");
    let told = succeed(security.args(["security", "--offline=true"]).arg(&unit));
    let (_, level) = told.rsplit_once("exposure level for toolgate.service: ").unwrap();
    let digits = level.split_whitespace().next().unwrap().replace('.', "");
    assert!(digits.parse::<u32>().unwrap() <= MOST_EXPOSED, "{level}");
}
