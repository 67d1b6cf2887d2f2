//! Log levels of MCP, by severity.

/// From the least to the most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `debug`.
    Debug,
    /// `info`.
    Info,
    /// `notice`.
    Notice,
    /// `warning`.
    Warning,
    /// `error`.
    Error,
    /// `critical`.
    Critical,
    /// `alert`.
    Alert,
    /// `emergency`.
    Emergency,
}

impl Level {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// The level of that name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(level, name)| (name == word).then_some(level))
    }

    /// The name in the protocol.
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(level, _)| *level == self);
        found.map_or("", |(_, name)| name)
    }
}
