//! Protocol versions with a handshake, oldest first.

use std::fmt;

/// A version that `initialize` can agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP+SSE.
    V2024_11_05,
    /// Streamable HTTP, batches.
    V2025_03_26,
    /// Structured results, elicitation; batches removed.
    V2025_06_18,
    /// Tasks, URL elicitation, SSE polling.
    V2025_11_25,
}

impl Version {
    /// The newest one.
    pub const LATEST: Self = Self::V2025_11_25;

    /// All of them, oldest first.
    pub const ALL: [Self; 4] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// The version of this name; `None` if it is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn names_parse_back_and_sort_by_date() {
        for version in Version::ALL {
            assert_eq!(Version::parse(version.as_str()), Some(version));
        }
        let names = Version::ALL.map(Version::as_str);
        assert!(names.is_sorted() && Version::ALL.is_sorted());
        assert_eq!(Version::ALL.last(), Some(&Version::LATEST));
    }

    #[test]
    fn other_names_are_unknown() {
        for text in ["", "2026-07-28", "2025-11-25 ", "2025-11-2", "latest"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
