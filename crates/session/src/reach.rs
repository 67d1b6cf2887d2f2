//! Which sessions a grant may reach, and which sessions a token may register.

use toolgate_policy::Glob;

/// Which sessions a grant may reach: those that match every list; `None` matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Reach {
    /// Globs for the infobase name.
    pub infobase_name: Option<Vec<Glob>>,
    /// Globs for the kind.
    pub kind: Option<Vec<Glob>>,
    /// Globs for the session id.
    pub session_id: Option<Vec<Glob>>,
}

impl Reach {
    /// Whether a session may be reached, seen, and named in an error.
    pub fn allows(&self, session_id: &str, kind: &str, infobase_name: &str) -> bool {
        fits(self.session_id.as_ref(), session_id)
            && fits(self.kind.as_ref(), kind)
            && fits(self.infobase_name.as_ref(), infobase_name)
    }

    /// Whether something is visible of which only the kind is known.
    pub(crate) fn allows_kind_alone(&self, kind: &str) -> bool {
        self.session_id.is_none() && self.infobase_name.is_none() && fits(self.kind.as_ref(), kind)
    }
}

/// The token of a socket, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketToken {
    /// Identifies the token while it is configured; `None` if no token is required. Not a secret.
    pub id: Option<u32>,
    /// Kinds that may use it.
    pub kinds: Option<Vec<Glob>>,
    /// Infobase names that may use it.
    pub infobases: Option<Vec<Glob>>,
    /// Client uids that may use it.
    pub uids: Option<Vec<Glob>>,
}

impl SocketToken {
    /// The first field that is outside its bounds.
    pub(crate) fn outside(
        &self,
        uid: &str,
        kind: &str,
        infobase_name: &str,
    ) -> Option<&'static str> {
        let bounds = [
            ("kind", &self.kinds, kind),
            ("infobase_name", &self.infobases, infobase_name),
            ("client_uid", &self.uids, uid),
        ];
        bounds
            .into_iter()
            .find(|(_, globs, value)| !fits(globs.as_ref(), value))
            .map(|(field, ..)| field)
    }
}

fn fits(globs: Option<&Vec<Glob>>, text: &str) -> bool {
    globs.is_none_or(|globs| globs.iter().any(|glob| glob.matches(text)))
}
