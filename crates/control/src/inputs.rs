//! The files that a configuration was read from, and what each held, so that a change of any of
//! them is noticed.
//!
//! Invariant: the recorded content is what the attempt used, whether the attempt succeeded or not.
//! A file that could not be read is recorded with the reason, so that it is tried again when the
//! reason changes.
//!
//! Start at [`Recording`] (records while a configuration is read) and [`Inputs::have_changed`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toolgate_audit::Hash;
use toolgate_config::{Surroundings, TlsFault};

/// How many links a path may lead through, as in the kernel.
const LINKS: usize = 40;

/// What each file held when it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs(BTreeMap<PathBuf, State>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Content(Hash),
    Unreadable(String),
}

impl Inputs {
    /// Records what reading a file returned.
    pub fn record(&mut self, path: &Path, read: &io::Result<Vec<u8>>) {
        self.0.insert(path.to_owned(), State::of(read));
    }

    /// Whether a file no longer is as it was recorded. A file that was readable and is gone is not
    /// a change: it is being replaced, or has served its purpose.
    pub fn have_changed(&self, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> bool {
        self.0.iter().any(|(path, before)| {
            let now = read(path);
            let is_gone = now.as_ref().is_err_and(|why| why.kind() == io::ErrorKind::NotFound);
            let was_readable = matches!(before, State::Content(_));
            !(is_gone && was_readable) && State::of(&now) != *before
        })
    }

    /// The folders in which a change of these files shows.
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        self.0.keys().flat_map(|path| folders_of(path)).collect()
    }
}

impl State {
    fn of(read: &io::Result<Vec<u8>>) -> Self {
        match read {
            Ok(bytes) => Self::Content(Hash::of(bytes)),
            Err(why) => Self::Unreadable(why.to_string()),
        }
    }
}

/// Surroundings that record every file that is read through them.
pub struct Recording<'a> {
    inner: &'a dyn Surroundings,
    inputs: RefCell<Inputs>,
}

impl<'a> Recording<'a> {
    /// Records what is read through `inner`.
    pub fn new(inner: &'a dyn Surroundings) -> Self {
        Self { inner, inputs: RefCell::default() }
    }

    /// What was read.
    pub fn into_inputs(self) -> Inputs {
        self.inputs.into_inner()
    }
}

impl Surroundings for Recording<'_> {
    fn env(&self, name: &str) -> Option<String> {
        self.inner.env(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let read = self.inner.read(path);
        self.inputs.borrow_mut().record(path, &read);
        read
    }

    fn has_program(&self, program: &str, path: Option<&str>, folder: &Path) -> bool {
        self.inner.has_program(program, path, folder)
    }

    fn check_tls(&self, cert: &[u8], key: &[u8]) -> Result<(), TlsFault> {
        self.inner.check_tls(cert, key)
    }
}

/// The folders in which a change of what `path` leads to shows: that of every link on the way, that
/// of the file itself, or the last one that exists on the way to it.
fn folders_of(path: &Path) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    let mut rest = parts(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    while let Some(part) = rest.pop() {
        let next = match at.parent() {
            Some(above) if part.as_os_str() == ".." => above.to_owned(),
            _ => at.join(&part),
        };
        match fs::symlink_metadata(&next) {
            Ok(found) if found.is_symlink() && links < LINKS => {
                links += 1;
                rest.extend(fs::read_link(&next).map(|target| parts(&target)).unwrap_or_default());
                folders.insert(at.clone());
            }
            // Not there yet, or a loop of links.
            Err(_) => {
                folders.insert(at);
                return folders;
            }
            Ok(_) => at = next,
        }
    }
    folders.extend(at.parent().map(Path::to_owned));
    folders
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_changes_and_what_does_not() {
        let held = |text: &str| -> io::Result<Vec<u8>> { Ok(text.as_bytes().to_vec()) };
        let refused = |why: &str| -> io::Result<Vec<u8>> {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned()))
        };
        let gone = || -> io::Result<Vec<u8>> { Err(io::ErrorKind::NotFound.into()) };
        let cases = [
            (held("a"), held("a"), false),
            (held("a"), held("b"), true),
            (held("a"), gone(), false),
            (held("a"), refused("mode"), true),
            (refused("mode"), refused("mode"), false),
            (refused("mode"), refused("owner"), true),
            (refused("mode"), held("a"), true),
            (gone(), gone(), false),
            (gone(), held("a"), true),
        ];
        for (before, now, expected) in cases {
            let mut inputs = Inputs::default();
            inputs.record(Path::new("file"), &before);
            let read = |_: &Path| match &now {
                Ok(bytes) => Ok(bytes.clone()),
                Err(why) => Err(io::Error::new(why.kind(), why.to_string())),
            };
            assert_eq!(inputs.have_changed(read), expected, "{before:?} -> {now:?}");
        }
    }

    #[test]
    fn folders_of_links_and_of_files_that_do_not_exist() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("volume/..1")).unwrap();
        fs::write(at("volume/..1/file"), "").unwrap();
        symlink("..1", at("volume/..data")).unwrap();
        symlink("..data/file", at("volume/file")).unwrap();
        symlink(at("volume/file"), at("link")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let cases: [(&str, &[&str]); 5] = [
            ("volume/..1/file", &["volume/..1"]),
            ("link", &["", "volume", "volume/..1"]),
            ("missing/deep/file", &[""]),
            ("volume/missing", &["volume"]),
            ("loop", &[""]),
        ];
        for (path, expected) in cases {
            let expected = expected.iter().map(|folder| at(folder).components().collect());
            let found: BTreeSet<PathBuf> = folders_of(&at(path));
            assert_eq!(found, expected.collect(), "{path}");
        }
    }
}
