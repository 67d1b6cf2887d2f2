//! The operator's settings for single tools, of servers and of sessions.

use std::time::Duration;

use crate::problem::code;
use crate::reader::{At, KeyRule, Named, Reader, section};
use crate::tree::Key;
use crate::value::{Period, Whole, within, words};

/// The bounds of every timeout of a call.
pub(crate) const TIMEOUTS: (Period, Period) = (Period::millis(1), Period::days(7));

/// The operator's settings for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolConfig {
    /// The tool's own name.
    pub name: String,
    /// Its deadline, if it differs from that of its server or kind.
    pub timeout: Option<Duration>,
    /// Its risk class, if it differs from the derived one.
    pub class: Option<RiskClass>,
    /// How many calls may run at once; only for tools of sessions.
    pub concurrency: Option<u64>,
}

words! {
    /// The risk class of a tool.
    pub enum RiskClass {
        /// Reads data.
        Read = "read",
        /// Changes data.
        Write = "write",
        /// Runs code or programs.
        Execute = "execute",
        /// Destroys data.
        Destructive = "destructive",
        /// Moves money.
        Financial = "financial",
        /// Anything else.
        Other = "other",
    }
}

section! {
    /// The operator's settings for one tool.
    #[schemars(rename = "Tool")]
    struct RawTool {
        /// Deadline of its calls. Default: that of the server.
        timeout: Period,
        /// Risk class; overrides the class derived from name and annotations.
        class: RiskClass,
    }
}

section! {
    /// The operator's settings for one tool of sessions.
    #[schemars(rename = "SessionTool")]
    struct RawSessionTool {
        /// Deadline of its calls. Default: as the tool declares, else that of the kind.
        timeout: Period,
        /// Risk class; overrides the class derived from name and annotations.
        class: RiskClass,
        /// Calls of the tool that one session may run at once. Default: as the tool declares, else 1.
        concurrency: Whole,
    }
}

impl From<RawTool> for RawSessionTool {
    fn from(raw: RawTool) -> Self {
        let RawTool { timeout, class, unreadable } = raw;
        Self { timeout, class, concurrency: None, unreadable }
    }
}

/// Tool names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolName;

impl KeyRule for ToolName {
    const PATTERN: &'static str = "^.{1,256}$";

    fn check(key: &Key, reader: &mut Reader<'_>) {
        if key.text.is_empty() || key.text.len() > 256 || key.text.contains(char::is_control) {
            let hint = "1 to 256 characters, no control characters";
            reader.error_hint(code::INVALID_NAME, key.span, "not the name of a tool", hint);
        }
    }
}

/// The tools of a section in the order of the file.
pub(crate) fn lower_tools<T: Into<RawSessionTool>>(
    tools: Option<At<Named<ToolName, T>>>,
    reader: &mut Reader<'_>,
) -> Vec<ToolConfig> {
    let entries = tools.map(|at| at.value.entries).unwrap_or_default();
    let tools = entries.into_iter().map(|(name, raw)| {
        let RawSessionTool { timeout, class, concurrency, .. } = raw.into();
        ToolConfig {
            name: name.value,
            timeout: timeout.map(|at| within(Some(at), TIMEOUTS, TIMEOUTS.0, reader).0),
            class: class.map(|at| at.value),
            concurrency: concurrency
                .map(|at| within(Some(at), (Whole(1), Whole(1000)), Whole(1), reader).0),
        }
    });
    tools.collect()
}
