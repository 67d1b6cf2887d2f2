//! A call, as the policy sees it: caller, tool and raw arguments. Everything is borrowed.

use std::sync::Arc;

use toolgate_catalog::Class;

use crate::digest::Digest;

/// The identity behind a grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its groups.
    pub groups: &'a [String],
}

/// The session a call goes to, if it goes to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionFacts<'a> {
    /// What kind of program it is.
    pub kind: Option<&'a str>,
    /// The infobase it works in.
    pub infobase_name: Option<&'a str>,
    /// The machine it runs on.
    pub host_id: Option<&'a str>,
}

/// A person's answer to exactly this call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// No person was asked.
    #[default]
    None,
    /// A person was asked and has not answered: the call is held again and is not a repeat.
    Pending,
    /// Approved and not used up: lifts the hold once.
    Approved,
}

/// One `tools/call`, before it is decided.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// Label of the grant.
    pub grant: &'a str,
    /// The identity behind the grant.
    pub identity: Option<Identity<'a>>,
    /// The client's own name.
    pub client: Option<&'a str>,
    /// The server's name, `sessions` or `toolgate`.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// Further names under which it is published: the entries of all of them apply together.
    pub aliases: &'a [Arc<str>],
    /// Its risk class.
    pub class: Class,
    /// The session called, for session tools.
    pub session: Option<SessionFacts<'a>>,
    /// The agent session that sent it.
    pub agent_session: Option<&'a str>,
    /// The server or session called; the server if empty.
    pub target: &'a str,
    /// The raw arguments object. `None` decides on the name alone: conditions on arguments are
    /// left out, as for lists.
    pub arguments: Option<&'a str>,
    /// Digest of the arguments, if the caller has it; computed when a rule needs it.
    pub digest: Option<Digest>,
    /// Fingerprint of the tool's definition, for standing exceptions.
    pub fingerprint: &'a [u8],
    /// A person's answer to this very call.
    pub approval: Approval,
}

impl<'a> Call<'a> {
    /// A call with arguments; everything else is empty and can be set.
    pub fn new(server: &'a str, tool: &'a str, class: Class, arguments: &'a str) -> Self {
        Self { server, tool, class, arguments: Some(arguments), ..Self::default() }
    }

    /// Whether this is the built-in `my_permissions`, which is allowed unless the policy denies or
    /// hides it by name.
    pub fn is_my_permissions(&self) -> bool {
        self.server == "toolgate" && self.tool == "my_permissions"
    }

    /// Every name of the tool.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        std::iter::once(self.tool).chain(self.aliases.iter().map(|alias| &**alias))
    }

    pub(crate) fn target(&self) -> &'a str {
        if self.target.is_empty() { self.server } else { self.target }
    }
}
