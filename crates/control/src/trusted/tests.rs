use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn trust_depends_on_who_can_write() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("it's.yaml");
    fs::write(&file, "text").unwrap();
    for (bits, fine) in
        [(0o600, true), (0o644, true), (0o664, true), (0o666, false), (0o602, false)]
    {
        mode(&file, bits);
        assert_eq!(read(&file).is_ok(), fine, "{bits:o}");
        assert_eq!(check(&file).is_ok(), fine, "{bits:o}");
        assert_eq!(append(&file).is_ok(), fine, "{bits:o}");
    }
    let why = read(&file).unwrap_err().to_string();
    assert!(
        why.ends_with(&format!("chmod o-w '{}/it'\\''s.yaml'", temp.path().display())),
        "{why}"
    );
    mode(&file, 0o600);
    let link = temp.path().join("link");
    symlink("it's.yaml", &link).unwrap();
    assert_eq!(read(&link).unwrap(), b"text");
    mode(&file, 0o666);
    assert!(read(&link).is_err(), "the target is judged");
    mode(temp.path(), 0o777);
    assert!(check(temp.path()).is_err());
    mode(temp.path(), 0o1777);
    assert!(check(temp.path()).is_err(), "others can plant files there");
}

#[test]
fn nothing_is_made_through_a_link() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    fs::write(at("theirs"), "theirs").unwrap();
    for name in ["made", "put", "put.new"] {
        symlink("theirs", at(name)).unwrap();
    }
    symlink("nowhere", at("dangling")).unwrap();
    assert!(create(&at("made")).is_err());
    assert!(create(&at("dangling")).is_err());
    put(&at("put"), b"ours").unwrap();
    assert!(append(&at("dangling")).is_err());
    assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(at("put")).unwrap(), "ours");
    assert!(!fs::symlink_metadata(at("put")).unwrap().is_symlink());
    assert!(!at("nowhere").exists());
    let mode = fs::metadata(at("put")).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

#[test]
fn only_regular_files_within_the_limit_are_read() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let pipe = at("pipe");
    let own = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, own, 0).unwrap();
    symlink("/dev/zero", at("endless")).unwrap();
    for path in [pipe, at("endless"), "/dev/null".into()] {
        let why = read(&path).unwrap_err().to_string();
        assert!(why.ends_with("is not a regular file; name one"), "{why}");
    }
    assert_eq!(read_named(Path::new("/dev/null")).unwrap(), "");
    assert_eq!(read(temp.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    for (size, fits) in [(MAX_READ, true), (MAX_READ + 1, false)] {
        File::create(at("large")).unwrap().set_len(size).unwrap();
        match read(&at("large")) {
            Ok(bytes) => assert!(fits && u64::try_from(bytes.len()).unwrap() == size),
            Err(why) => assert!(!fits && why.to_string().contains("larger than 8 MiB")),
        }
    }
    let why = read_named(&at("endless")).unwrap_err().to_string();
    assert!(why.contains("larger than 8 MiB"), "{why}");
    let endless = temp_loop();
    assert_eq!(read(&endless.path().join("a")).unwrap_err().raw_os_error(), Some(40));
}

fn temp_loop() -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    symlink("b", temp.path().join("a")).unwrap();
    symlink("a", temp.path().join("b")).unwrap();
    temp
}
