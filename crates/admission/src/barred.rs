//! The reasons not to start a process of a server for a grant.

/// Why no process may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Barred {
    /// The grant may call nothing of this server.
    MayNothing,
    /// A person has stopped it; what, in words.
    Frozen(String),
}

impl Barred {
    /// For people: why the server was not started.
    pub fn why(&self) -> String {
        match self {
            Self::MayNothing => "it is not started for a grant that may call nothing".to_owned(),
            Self::Frozen(what) => format!("it is not started: {what}"),
        }
    }
}
