//! Cursors on `/mcp`: where the next page begins, in a form that says nothing to an agent.

use std::fmt::Write;

use toolgate_admission::list_kind::Kind;

/// The place where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) server: String,
    /// Which of the server's entries.
    pub(crate) entry: usize,
}

impl Cursor {
    /// As the agent is given it; good for lists of that kind only.
    pub(crate) fn encode(&self, kind: Kind) -> String {
        let plain = format!("{}/{}/{}", kind.member(), self.entry, self.server);
        plain.bytes().fold(String::new(), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _infallible = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// What the agent gives back.
    pub(crate) fn decode(kind: Kind, given: &str) -> Option<Self> {
        let digits: Vec<u8> = given
            .chars()
            .map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()))
            .collect::<Option<_>>()?;
        let (pairs, rest) = digits.as_chunks::<2>();
        let plain = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        let plain = String::from_utf8(plain).ok().filter(|_| rest.is_empty())?;
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
