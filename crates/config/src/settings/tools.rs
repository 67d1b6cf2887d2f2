//! The operator's settings for single tools, of servers and of sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use toolgate_policy::Class;
use toolgate_session::ToolSettings;

use crate::problem::code;
use crate::reader::{At, KeyRule, Named, Reader, section};
use crate::syntax::Key;
use crate::value::{Keyword, Period, Whole, Word, within};

/// The bounds of every timeout of a call.
pub(crate) const TIMEOUTS: (Period, Period) = (Period::millis(1), Period::days(7));

/// The operator's settings for one tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolConfig {
    /// The tool's own name.
    pub name: String,
    /// Its deadline, if it differs from that of its server.
    pub timeout: Option<Duration>,
    /// Its risk class, if it differs from the derived one.
    pub class: Option<Class>,
}

impl Keyword for Class {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("read", Self::Read),
        ("write", Self::Write),
        ("execute", Self::Execute),
        ("destructive", Self::Destructive),
        ("financial", Self::Financial),
        ("other", Self::Other),
    ];
}

section! {
    /// The operator's settings for one tool.
    #[schemars(rename = "Tool")]
    struct RawTool {
        /// Deadline of its calls. Default: that of the server.
        timeout: Period,
        /// Risk class; overrides the class derived from name and annotations.
        class: Word<Class>,
    }
}

section! {
    /// The operator's settings for one tool of sessions.
    #[schemars(rename = "SessionTool")]
    struct RawSessionTool {
        /// Deadline of its calls. Default: as the tool declares, else that of the kind.
        timeout: Period,
        /// Risk class; overrides the class derived from name and annotations.
        class: Word<Class>,
        /// Calls of the tool that one session may run at once. Default: as the tool declares, else 1.
        concurrency: Whole,
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

/// The tools of a server, in the order of the file.
pub(crate) fn lower_tools(
    tools: Option<At<Named<ToolName, RawTool>>>,
    reader: &mut Reader<'_>,
) -> Vec<ToolConfig> {
    let entries = tools.map(|at| at.value.entries).unwrap_or_default();
    let tools = entries.into_iter().map(|(name, RawTool { timeout, class, .. })| ToolConfig {
        name: name.value,
        timeout: timeout.map(|at| within(Some(at), TIMEOUTS, TIMEOUTS.0, reader).0),
        class: class.map(|at| at.value.0),
    });
    tools.collect()
}

/// The tools of sessions, laid over `base` key by key.
pub(crate) fn lower_session_tools(
    tools: Option<At<Named<ToolName, RawSessionTool>>>,
    mut base: BTreeMap<String, ToolSettings>,
    reader: &mut Reader<'_>,
) -> BTreeMap<String, ToolSettings> {
    let many = (Whole(1), Whole(1000));
    let entries = tools.map(|at| at.value.entries).unwrap_or_default();
    for (name, RawSessionTool { timeout, class, concurrency, .. }) in entries {
        let tool = base.entry(name.value).or_default();
        if timeout.is_some() {
            tool.timeout = Some(within(timeout, TIMEOUTS, TIMEOUTS.0, reader).0);
        }
        if concurrency.is_some() {
            let calls = within(concurrency, many, Whole(1), reader).0;
            tool.concurrency = Some(u32::try_from(calls).unwrap_or(u32::MAX));
        }
        tool.class = class.map(|at| at.value.0).or(tool.class);
    }
    base
}
