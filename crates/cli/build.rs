//! Sets `TOOLGATE_BUILD` for `--version`: commit and date of a release build.
//!
//! Needs no network and no repository: `TOOLGATE_BUILD` of the environment has precedence, and a
//! source archive without git is a build of an unknown commit. Other profiles do not name the
//! commit, so that a commit does not rebuild the binary.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=TOOLGATE_BUILD");
    let given = std::env::var("TOOLGATE_BUILD").ok().filter(|build| !build.is_empty());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let build = match given {
        Some(build) => build,
        None if is_release => commit().unwrap_or_else(|| "unknown commit".to_owned()),
        None => "development build".to_owned(),
    };
    println!("cargo:rustc-env=TOOLGATE_BUILD={build}");
}

/// The commit and its date.
fn commit() -> Option<String> {
    // A new commit changes one of these files.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file]);
        // A path that does not exist would run this script in every build.
        if let Some(path) = path.filter(|path| std::path::Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["log", "-1", "--format=%h %cs"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
