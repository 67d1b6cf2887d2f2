//! Names on `/mcp`: how tools, prompts and resources of many servers are told apart.
//!
//! A tool or prompt `read` of the server `files` is shown as `files__read`, unless the server is
//! configured `names: bare`. A resource `demo://a` is shown as `files+demo://a`: still a URI, with
//! everything after its scheme unchanged. A `ui://` resource keeps its scheme, because clients look
//! at it: `ui://files+widget`.
//!
//! Invariant: a shown name identifies its server; [`Naming::own_name`] and [`Naming::own_uri`]
//! return exactly the server's own name. A server name has no `_` and no `+`, so both are
//! unambiguous.

use toolgate_admission::list_kind::Kind;

/// Separates a server from its tool.
const SEPARATOR: &str = "__";
const UI: &str = "ui://";
/// A URI scheme begins with a letter, a server name may begin with a digit. No server name has a dot.
const LETTER: &str = "s.";

/// How the names of one server are shown on `/mcp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    server: String,
    /// The prefix of a tool's own name; empty for bare names.
    prefix: String,
    scheme: String,
}

impl Naming {
    /// The naming of `server`; bare names are shown unchanged.
    pub fn new(server: &str, bare: bool) -> Self {
        let letter = if server.starts_with(|c: char| c.is_ascii_digit()) { LETTER } else { "" };
        Self {
            server: server.to_owned(),
            prefix: if bare { String::new() } else { format!("{server}{SEPARATOR}") },
            scheme: format!("{letter}{server}+"),
        }
    }

    /// Whether names are shown unchanged.
    pub fn is_bare(&self) -> bool {
        self.prefix.is_empty()
    }

    /// How the tool or prompt `own` is shown.
    pub(crate) fn shown_name(&self, own: &str) -> String {
        format!("{}{own}", self.prefix)
    }

    /// How the resource or template `own` is shown.
    pub fn shown_uri(&self, own: &str) -> String {
        match own.strip_prefix(UI) {
            Some(rest) => format!("{UI}{}+{rest}", self.server),
            None => format!("{}{own}", self.scheme),
        }
    }

    /// How the server's own name `own` is shown.
    pub fn shown(&self, kind: Kind, own: &str) -> String {
        match kind {
            Kind::Tools | Kind::Prompts => self.shown_name(own),
            Kind::Resources | Kind::Templates => self.shown_uri(own),
        }
    }

    /// The server's own name of `shown`, if it belongs to this server.
    pub fn own_name<'a>(&self, shown: &'a str) -> Option<&'a str> {
        shown.strip_prefix(&self.prefix)
    }

    /// The server's own URI of `shown`, if it belongs to this server.
    pub fn own_uri(&self, shown: &str) -> Option<String> {
        match shown.strip_prefix(UI) {
            Some(rest) => {
                let rest = rest.strip_prefix(self.server.as_str())?.strip_prefix('+')?;
                Some(format!("{UI}{rest}"))
            }
            None => shown.strip_prefix(&self.scheme).map(str::to_owned),
        }
    }
}

/// The server in a prefixed name.
pub fn server_of_name(shown: &str) -> Option<&str> {
    shown.split_once(SEPARATOR).map(|(server, _)| server)
}

/// The server in a shown URI.
pub fn server_of_uri(shown: &str) -> Option<&str> {
    let rest = shown.strip_prefix(UI).unwrap_or(shown);
    let (server, _) = rest.split_once('+')?;
    Some(server.strip_prefix(LETTER).unwrap_or(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (server, own, shown) in [
            ("files", "read", "files__read"),
            ("files", "_read", "files___read"),
            ("a-1", "b__c", "a-1__b__c"),
            ("1c", "закрыть", "1c__закрыть"),
        ] {
            let naming = Naming::new(server, false);
            assert_eq!(naming.shown_name(own), shown);
            assert_eq!(naming.own_name(shown), Some(own));
            assert_eq!(server_of_name(shown), Some(server));
            assert!(Naming::new("other", false).own_name(shown).is_none());
        }
        let bare = Naming::new("files", true);
        assert_eq!(bare.shown_name("read"), "read");
        assert_eq!(bare.own_name("read"), Some("read"));
    }

    #[test]
    fn uris_come_back() {
        for (server, own, shown) in [
            ("files", "demo://a/1", "files+demo://a/1"),
            ("files", "file:///a+b", "files+file:///a+b"),
            ("files", "git+ssh://x", "files+git+ssh://x"),
            ("files", "demo://resource/{id}", "files+demo://resource/{id}"),
            ("files", "", "files+"),
            ("1c", "urn:a", "s.1c+urn:a"),
            ("s-1c", "urn:a", "s-1c+urn:a"),
            ("files", "ui://widget/x", "ui://files+widget/x"),
            ("1c", "ui://+", "ui://1c++"),
        ] {
            for bare in [false, true] {
                let naming = Naming::new(server, bare);
                assert_eq!(naming.shown_uri(own), shown);
                assert_eq!(naming.own_uri(shown).as_deref(), Some(own));
                assert_eq!(server_of_uri(shown), Some(server));
            }
            assert!(Naming::new("file", false).own_uri(shown).is_none(), "{shown}");
        }
        assert_eq!(server_of_uri("demo://a"), None);
    }
}
