use std::io;
use std::path::{Path, PathBuf};

use super::*;
use crate::surroundings::Surroundings;

struct Fake;

impl Surroundings for Fake {
    fn env(&self, name: &str) -> Option<String> {
        match name {
            "KEY" => Some("k-1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("conf/key.txt") => Ok(b"from file\r\n".to_vec()),
            Some("conf/lines.txt") => Ok(b"a\n\n".to_vec()),
            Some("conf/binary") => Ok(vec![0xff]),
            Some("conf/huge") => Ok(vec![b'x'; MAX_FILE + 1]),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn reader() -> Reader<'static> {
    let (findings, listeners) = (Vec::new(), Vec::new());
    Reader { findings, text: "", folder: PathBuf::from("conf"), surroundings: &Fake, listeners }
}

/// The value, or the messages of what was reported.
fn expanded(text: &str, scope: Scope) -> Result<String, String> {
    let mut reader = reader();
    let value = expand(text, Span::default(), scope, &mut reader);
    let messages: Vec<_> = reader.findings.into_iter().map(|finding| finding.message).collect();
    assert_eq!(value.is_none(), !messages.is_empty(), "{text}: none if and only if reported");
    value.map(|value| value.expose().to_owned()).ok_or(messages.join("; "))
}

#[test]
fn references_resolve() {
    for (text, value) in [
        ("plain", "plain"),
        ("", ""),
        ("env:KEY", "k-1"),
        ("env:KEY more", "env:KEY more"),
        ("environment", "environment"),
        ("file:key.txt", "from file"),
        ("file:lines.txt", "a\n"),
        ("file:///etc/x", "file:///etc/x"),
        ("Bearer ${KEY}", "Bearer k-1"),
        ("${KEY}${env:KEY}", "k-1k-1"),
        ("${NONE:-d}", "d"),
        ("${NONE:-}", ""),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY}", ""),
        ("${KEY:-d}", "k-1"),
        ("$${KEY}", "${KEY}"),
        ("$KEY $$ $", "$KEY $$ $"),
    ] {
        assert_eq!(expanded(text, Scope::Value), Ok(value.to_owned()), "{text}");
    }
}

#[test]
fn a_program_keeps_its_own_file_names() {
    assert_eq!(expanded("file:key.txt", Scope::Program), Ok("file:key.txt".to_owned()));
    assert_eq!(expanded("env:KEY", Scope::Program), Ok("k-1".to_owned()));
}

#[test]
fn what_cannot_be_resolved_is_named() {
    for (text, message) in [
        ("env:NONE", "the environment variable `NONE` is not set"),
        (
            "${NONE} ${OTHER}",
            "the environment variable `NONE` is not set; the environment variable `OTHER` is not set",
        ),
        ("${input:key}", "`${input:key}` is not a reference"),
        ("${a b:-s3cret}", "`${a b}` is not a reference"),
        ("${KEY", "`${` is not closed"),
        ("file:none", "cannot read the file `none`: no such file"),
        (
            "file:binary",
            "cannot read the file `binary`: it is not UTF-8; save it as UTF-8 in the editor",
        ),
        ("file:huge", "cannot read the file `huge`: it is larger than 64 KiB"),
    ] {
        assert_eq!(expanded(text, Scope::Value), Err(message.to_owned()), "{text}");
    }
}

#[test]
fn an_expanded_text_prints_as_written() {
    let mut reader = reader();
    let mut expand = |text| expand(text, Span::default(), Scope::Value, &mut reader).unwrap();
    let text = expand("${KEY}");
    assert_eq!(format!("{text} {text:?} {}", text.written()), "${KEY} \"${KEY}\" ${KEY}");
    for (text, referenced) in
        [("env:KEY", true), ("a ${KEY}", true), ("a", false), ("$${KEY}", false)]
    {
        assert_eq!(expand(text).has_reference(), referenced, "{text}");
    }
}
