//! The data folder of a file that has errors.

use std::path::{Path, PathBuf};

use crate::source::decode;
use crate::syntax::{self, Kind};

/// The value of `data`, whatever else is wrong with the file: for commands that must find a running
/// gateway. `None` if the file does not set it.
pub fn data_of(bytes: &[u8], file: &Path) -> Option<PathBuf> {
    let named = decode(file.to_owned(), bytes).ok().and_then(|source| {
        let root = syntax::parse(&source, &mut Vec::new())?;
        let Kind::Map { entries, .. } = root.kind else { return None };
        let data = entries.into_iter().find(|entry| entry.key.text == "data")?;
        match data.value.kind {
            Kind::Scalar(scalar) => Some(scalar.text),
            _ => None,
        }
    });
    let named = named.or_else(|| line(&String::from_utf8_lossy(bytes)))?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(folder.unwrap_or(Path::new(".")).join(named).components().collect())
}

/// The value of a line `data: VALUE` in a file that is not valid YAML.
fn line(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| {
        let line = line.trim_start_matches('\u{feff}');
        let rest = ["data", "\"data\"", "'data'"].iter().find_map(|key| line.strip_prefix(key))?;
        rest.trim_start().strip_prefix(':').filter(|rest| rest.starts_with([' ', '\t']))
    })?;
    let value = value.trim();
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            return rest.split_once(quote).map(|(value, _)| value.to_owned());
        }
    }
    let value = value.split_once(" #").map_or(value, |(value, _)| value).trim();
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_is_found_whatever_is_wrong() {
        let cases = [
            ("version: 1\ndata: ./d\n", Some("/x/d")),
            ("version: 1\ndata: /abs/d # there\nlisten: [", Some("/abs/d")),
            ("version: 1\nlisten: { mcp: 1\ndata: ./d\n", Some("/x/d")),
            ("versoin: 1\ndata: './d e'\ngrants: {{", Some("/x/d e")),
            ("{version: 2, data: d}", Some("/x/d")),
            ("\tdata: d\n\t}", None),
            ("version: 1\ndatabase: d\n a: [", None),
            ("version: 1\n", None),
            ("data:\n  nested: d\n", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let found = data_of(text.as_bytes(), Path::new("/x/toolgate.yaml"));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{text}");
        }
    }
}
