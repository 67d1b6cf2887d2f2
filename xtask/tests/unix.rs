//! What only Unix has is called in the crate `os` alone (decision 62).
//!
//! Tests may use it, and so may crates that are only for tests.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

/// Only Unix has these.
const UNIX: [&str; 10] = [
    "std::os::",
    "os::unix",
    "os::fd",
    "rustix",
    "libc::",
    "nix::",
    "signal::unix",
    "net::Unix",
    "process_wrap",
    "cfg(unix)",
];
/// The crate that may name them, and those that are not in the binary.
const LEFT_OUT: [&str; 3] = ["os", "testkit", "dice"];

#[test]
fn only_the_crate_os_names_what_only_unix_has() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
    let mut complaints = Vec::new();
    for folder in folder(&crates) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        for file in sources(&folder.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            complaints.extend(found(&text).map(|(line, what)| {
                let file = file.strip_prefix(&crates).unwrap().display();
                format!("{file}:{line} names `{what}`; call it in `crates/os`")
            }));
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The lines of a file that name a Unix-only API, without its tests and comments.
fn found(text: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let is_product = |line: &&str| !line.starts_with("mod tests {");
    let code = text.lines().take_while(is_product).enumerate();
    let code = code.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let what = |line: &str| UNIX.into_iter().find(|name| line.contains(name));
    code.filter_map(move |(at, line)| Some((at + 1, what(line)?))).collect::<Vec<_>>().into_iter()
}

/// The files of a crate, without those of tests.
fn sources(src: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in folder(src) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match path.is_dir() {
            _ if name == "tests" => {}
            true => files.extend(sources(&path)),
            false if path.extension().is_some_and(|end| end == "rs") => files.push(path),
            false => {}
        }
    }
    files
}

fn folder(path: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn comments_and_tests_are_left_out() {
    let text = "// rustix\nuse rustix::fs;\nlet a = 1;\nuse std::os::fd::AsFd;\n\
                #[cfg(test)]\nmod tests {\nuse rustix::fs;\n}\n";
    assert_eq!(found(text).collect::<Vec<_>>(), [(2, "rustix"), (4, "std::os::")]);
}
