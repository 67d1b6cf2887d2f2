//! Cursors on `/mcp`: the position where the next page begins, opaque to agents.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use toolgate_admission::list_kind::Kind;

/// The position where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) server: String,
    /// The index of the server's entry.
    pub(crate) entry: usize,
}

impl Cursor {
    /// The cursor for the agent; valid for lists of that kind only.
    pub(crate) fn encode(&self, kind: Kind) -> String {
        let plain = format!("{}/{}/{}", kind.member(), self.entry, self.server);
        HEXLOWER.encode(plain.as_bytes())
    }

    /// Decodes a cursor of an agent.
    pub(crate) fn decode(kind: Kind, given: &str) -> Option<Self> {
        let plain = HEXLOWER_PERMISSIVE.decode(given.as_bytes()).ok()?;
        let plain = String::from_utf8(plain).ok()?;
        let mut parts = plain.splitn(3, '/');
        let (Some(member), Some(entry), Some(server)) = (parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let entry = entry.parse().ok().filter(|_| member == kind.member())?;
        Some(Self { server: server.to_owned(), entry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_for_their_own_lists_only() {
        let cursor = Cursor { server: "a-1".to_owned(), entry: 17 };
        let given = cursor.encode(Kind::Tools);
        assert_eq!(Cursor::decode(Kind::Tools, &given), Some(cursor));
        assert_eq!(Cursor::decode(Kind::Prompts, &given), None);
        for other in ["", "zz", "6", "ff", "é", "746f6f6c73", "746f6f6c732f2d312f61"] {
            assert_eq!(Cursor::decode(Kind::Tools, other), None, "{other}");
        }
    }
}
