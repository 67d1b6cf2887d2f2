//! Risk classes of tools and their levels.

use serde::{Deserialize, Serialize};

/// The risk class of a tool.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Looks only.
    Read,
    /// Changes something that can be changed back.
    Write,
    /// Runs something.
    Execute,
    /// Destroys something.
    Destructive,
    /// Moves money.
    Financial,
    /// Unknown.
    #[default]
    Other,
}

/// How much harm a class can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Read and Other.
    Low,
    /// Write.
    Medium,
    /// Execute.
    High,
    /// Destructive and Financial.
    Critical,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 6] = [
        Class::Read,
        Class::Write,
        Class::Execute,
        Class::Destructive,
        Class::Financial,
        Class::Other,
    ];

    /// The name that policies use.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::Write => "write",
            Class::Execute => "execute",
            Class::Destructive => "destructive",
            Class::Financial => "financial",
            Class::Other => "other",
        }
    }

    /// The class of a name that policies use.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }

    /// The level of the class.
    pub fn level(self) -> Level {
        match self {
            Class::Read | Class::Other => Level::Low,
            Class::Write => Level::Medium,
            Class::Execute => Level::High,
            Class::Destructive | Class::Financial => Level::Critical,
        }
    }

    /// The higher of two classes. Other is above Read, because its tool may do more than read.
    #[must_use]
    pub fn raised(self, other: Self) -> Self {
        if other.height() > self.height() { other } else { self }
    }

    fn height(self) -> u8 {
        match self {
            Class::Read => 0,
            Class::Other => 1,
            Class::Write => 2,
            Class::Execute => 3,
            Class::Destructive => 4,
            Class::Financial => 5,
        }
    }
}

impl Level {
    /// All levels, the lowest first.
    pub const ALL: [Level; 4] = [Level::Low, Level::Medium, Level::High, Level::Critical];

    /// The name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Low => "low",
            Level::Medium => "medium",
            Level::High => "high",
            Level::Critical => "critical",
        }
    }
}
