//! Problems of a configuration file, and how they are shown.
//!
//! Invariant: a problem never carries a secret. Messages do not quote values that may be secret,
//! and the source line arrives here already masked (see `source.rs`).
//! Start at [`Problem`]; every code that may appear is in [`CODES`].

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use serde::Serialize;
use toolgate_policy::Severity;

/// One finding in a configuration file. `Display` renders it for a terminal, without colour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Stable code, one of [`CODES`].
    pub code: &'static str,
    /// Whether the file may still be used.
    pub severity: Severity,
    /// The file as the caller named it.
    #[serde(serialize_with = "file_as_text")]
    pub file: PathBuf,
    /// Line, from 1; 0 if the problem is the file as a whole.
    pub line: usize,
    /// Column in characters, from 1; 0 if the problem is the file as a whole.
    pub column: usize,
    /// What is wrong: lower case, no full stop, the user's input in backticks.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The source line with secrets masked, and the position of the caret.
    #[serde(skip)]
    pub snippet: Option<Snippet>,
}

/// The source line of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// The line, with secrets masked and without its line break.
    pub line: String,
    /// How many characters of `line` precede the caret.
    pub caret: usize,
    /// How many characters the caret underlines, at least 1.
    pub width: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, " {severity}[{}]: {}", self.code, self.message)?;
        if let Some(snippet) = &self.snippet {
            let number = self.line.to_string();
            let gutter = " ".repeat(number.len());
            let (before, under) = (" ".repeat(snippet.caret), "^".repeat(snippet.width));
            write!(f, "\n {number} | {}\n {gutter} | {before}{under}", snippet.line)?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// Renders problems one after another, an empty line between them, a line break at the end.
pub fn render(problems: &[Problem]) -> String {
    let mut text = String::new();
    for (index, problem) in problems.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "{gap}{problem}");
    }
    text
}

fn file_as_text<S: serde::Serializer>(file: &std::path::Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&file.display())
}

macro_rules! codes {
    ($($(#[doc = $meaning:literal])* $name:ident = $code:literal;)*) => {
        /// The codes by name.
        pub(crate) mod code {
            $($(#[doc = $meaning])* pub(crate) const $name: &str = $code;)*
        }
        /// Every code with its meaning, in order.
        pub const CODES: &[(&str, &str)] = &[$((code::$name, concat!($($meaning),*)),)*];
    };
}

codes! {
    /// the file cannot be read
    UNREADABLE = "TG1001";
    /// the file is too large, too deeply nested, or expands to too much
    TOO_LARGE = "TG1002";
    /// the file is not UTF-8
    ENCODING = "TG1003";
    /// the file is not valid YAML
    SYNTAX = "TG1004";
    /// YAML that toolgate does not support: tags, merge keys, several documents
    UNSUPPORTED_YAML = "TG1005";
    /// a duplicate key in one mapping
    DUPLICATE_KEY = "TG1006";
    /// a key that toolgate does not know
    UNKNOWN_KEY = "TG1007";
    /// a value of the wrong type
    WRONG_TYPE = "TG1008";
    /// a required key is missing
    MISSING_KEY = "TG1009";
    /// a value that does not have the required form
    INVALID_VALUE = "TG1010";
    /// a value that is too small or too large
    OUT_OF_RANGE = "TG1011";
    /// keys that do not go together
    CONFLICT = "TG1012";
    /// an invalid or reserved name
    INVALID_NAME = "TG1013";
    /// a label, name, address or token that is used twice
    NOT_UNIQUE = "TG1014";
    /// a reference to a variable or file that cannot be resolved
    UNRESOLVED = "TG1015";
    /// a literal secret in the file
    LITERAL_SECRET = "TG1016";
    /// a secret that is too short or malformed
    WEAK_SECRET = "TG1017";
    /// a name that this file does not define
    UNKNOWN_NAME = "TG1018";
    /// a setting that this version cannot honour
    UNSUPPORTED = "TG1019";
    /// a program that is not found
    NO_PROGRAM = "TG1020";
    /// a grant without a policy
    NO_POLICY = "TG1021";
    /// a listener that other machines can reach, without the protection that it needs
    EXPOSED = "TG1022";
}
