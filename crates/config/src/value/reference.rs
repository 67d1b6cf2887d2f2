//! References to values outside the file: `env:NAME`, `file:PATH`, `${NAME}`.
//!
//! `env:` and `file:` are references only as the whole value. `${NAME}`, `${env:NAME}` and
//! `${NAME:-default}` may appear anywhere in a text, as in MCP clients; `$${` is a literal `${`.
//!
//! Invariant: reports name the variable or the file, never a value.
//! Start at [`expand`].

use std::fmt;
use std::io::ErrorKind;

use crate::finding::Span;
use crate::problem::code;
use crate::reader::Reader;
use crate::source::not_utf8;

/// The largest file that a reference may name.
const MAX_FILE: usize = 64 * 1024;

/// A text with its references resolved. Displayed as written, so that no resolved value is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Expanded {
    written: String,
    value: String,
    referenced: bool,
}

impl Expanded {
    /// The resolved value. It may contain secrets: keep it out of logs, errors and metrics.
    pub fn expose(&self) -> &str {
        &self.value
    }

    /// As written in the file.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether the text has a reference in it.
    pub(crate) fn has_reference(&self) -> bool {
        self.referenced
    }
}

impl fmt::Debug for Expanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

impl fmt::Display for Expanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// The position of a text, which decides whether `file:` is a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A header, variable or URL.
    Value,
    /// A command or argument: to many programs `file:x.db` is a name of their own.
    Program,
}

/// Resolves the references in `text`; `None` after reporting those that cannot be resolved.
pub(crate) fn expand(
    text: &str,
    span: Span,
    scope: Scope,
    reader: &mut Reader<'_>,
) -> Option<Expanded> {
    let (value, referenced) = match whole_reference(text, scope) {
        Some(reference) => (resolve(&reference, span, reader)?, true),
        None => expand_inside(text, span, reader)?,
    };
    if value.contains('\0') {
        reader.error(code::INVALID_VALUE, span, "the value contains a zero character");
        return None;
    }
    Some(Expanded { written: text.to_owned(), value, referenced })
}

/// A value that is exactly one reference.
pub(crate) enum Reference<'a> {
    Env(&'a str),
    File(&'a str),
}

/// `text` as one whole reference, if it is one.
pub(crate) fn whole_reference(text: &str, scope: Scope) -> Option<Reference<'_>> {
    if let Some(name) = text.strip_prefix("env:").filter(|name| is_variable(name)) {
        return Some(Reference::Env(name));
    }
    let path = text.strip_prefix("file:").filter(|path| !path.is_empty())?;
    let readable = scope == Scope::Value && !path.starts_with("//");
    readable.then_some(Reference::File(path))
}

/// The value of a reference; `None` after reporting what is missing.
pub(crate) fn resolve(
    reference: &Reference<'_>,
    span: Span,
    reader: &mut Reader<'_>,
) -> Option<String> {
    match reference {
        Reference::Env(name) => {
            let value = reader.surroundings.env(name);
            if value.is_none() {
                unset(name, span, reader);
            }
            value
        }
        Reference::File(path) => read_file(path, span, reader),
    }
}

fn unset(name: &str, span: Span, reader: &mut Reader<'_>) {
    let message = format!("the environment variable `{name}` is not set");
    let hint = format!("set it before starting toolgate: `export {name}=…`");
    reader.error_hint(code::UNRESOLVED, span, message, hint);
}

fn read_file(path: &str, span: Span, reader: &mut Reader<'_>) -> Option<String> {
    match String::from_utf8(read_bytes(path, span, reader)?) {
        Ok(text) => {
            let text = text.strip_suffix('\n').unwrap_or(&text);
            Some(text.strip_suffix('\r').unwrap_or(text).to_owned())
        }
        Err(error) => unreadable(path, not_utf8(error.as_bytes()), span, reader),
    }
}

/// The content of a file; `None` after reporting why it is not available.
pub(crate) fn read_bytes(path: &str, span: Span, reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let fault = match reader.surroundings.read(&reader.path(path)) {
        Ok(bytes) if bytes.len() > MAX_FILE => "it is larger than 64 KiB".to_owned(),
        Ok(bytes) => return Some(bytes),
        Err(error) => why(&error),
    };
    unreadable(path, &fault, span, reader)
}

/// Why a file cannot be read.
pub(crate) fn why(error: &std::io::Error) -> String {
    match (error.kind(), error.get_ref()) {
        (ErrorKind::NotFound, _) => "no such file".to_owned(),
        // The reader's own explanation is better than the system's.
        (_, Some(why)) => why.to_string(),
        (kind, None) => kind.to_string(),
    }
}

/// Reports a file that cannot be read.
pub(crate) fn unreadable<T>(
    path: &str,
    fault: &str,
    span: Span,
    reader: &mut Reader<'_>,
) -> Option<T> {
    let full = reader.path(path);
    let message = format!("cannot read the file `{path}`: {fault}");
    let hint =
        format!("looked for `{}`; relative paths start at the folder of this file", full.display());
    reader.error_hint(code::UNRESOLVED, span, message, hint);
    None
}

/// Replaces every `${…}`, and returns whether there was one; reports all that cannot be replaced.
fn expand_inside(text: &str, span: Span, reader: &mut Reader<'_>) -> Option<(String, bool)> {
    let (mut value, mut rest) = (String::new(), text);
    let (mut complete, mut referenced) = (true, false);
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            value = value + before + "${";
            rest = after;
            continue;
        }
        value += before;
        let Some((inside, next)) = after.split_once('}') else {
            malformed("`${` is not closed", span, reader);
            return None;
        };
        (rest, referenced) = (next, true);
        match variable(inside, span, reader) {
            Some(found) => value += &found,
            None => complete = false,
        }
    }
    complete.then(|| (value + rest, referenced))
}

/// `NAME`, `env:NAME`, either with `:-default` for a variable that is unset or empty.
fn variable(inside: &str, span: Span, reader: &mut Reader<'_>) -> Option<String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    if !is_variable(name) {
        // The default may be a secret, so only what precedes it is shown.
        malformed(&format!("`${{{name}}}` is not a reference"), span, reader);
        return None;
    }
    match (reader.surroundings.env(name), default) {
        (Some(value), None) => Some(value),
        (Some(value), Some(_)) if !value.is_empty() => Some(value),
        (_, Some(default)) => Some(default.to_owned()),
        (None, None) => {
            unset(name, span, reader);
            None
        }
    }
}

fn malformed(message: &str, span: Span, reader: &mut Reader<'_>) {
    let hint = "write `${NAME}` or `${NAME:-default}`; `$${` is a literal `${`";
    reader.error_hint(code::UNRESOLVED, span, message, hint);
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
