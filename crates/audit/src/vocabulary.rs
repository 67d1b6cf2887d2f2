//! The closed lists of words in a row. A word never changes its meaning once it was written.

use std::fmt;

/// A word that is in none of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownValue;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// Every word of the list.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As it stands in the row.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The one that a row means.
            pub fn parse(word: &str) -> Result<Self, UnknownValue> {
                match word { $($word => Ok(Self::$variant),)* _ => Err(UnknownValue) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// What a row tells of.
    RowKind {
        /// A call was admitted and may now be sent.
        Intent = "intent",
        /// What became of an admitted call.
        Outcome = "outcome",
        /// A call was refused; nothing was sent.
        Denied = "denied",
        /// Somebody was not let in: no valid token, a foreign Host or Origin.
        Refused = "refused",
        /// A call waits for a person.
        Held = "held",
        /// A person answered, or the time to answer ran out.
        Approval = "approval",
        /// A person changed something.
        Admin = "admin",
        /// A policy became active.
        Policy = "policy",
        /// A session came or went.
        Session = "session",
        /// A server changed the definition of a tool.
        Drift = "drift",
    }
}

words! {
    /// What the policy said of a call.
    Decision {
        /// Send it.
        Allow = "allow",
        /// Refuse it.
        Deny = "deny",
        /// Refuse it as if the tool did not exist.
        Hide = "hide",
        /// Ask a person.
        Hold = "hold",
        /// Sent, although the policy would have refused it: it is in shadow.
        ShadowDeny = "shadow_deny",
        /// Sent, although the policy would have asked a person: it is in shadow.
        ShadowHold = "shadow_hold",
    }
}

words! {
    /// How an admitted call ended.
    Outcome {
        /// The tool answered.
        Ok = "ok",
        /// The tool answered that it failed.
        ToolError = "tool_error",
        /// The server answered with a protocol error.
        ProtocolError = "protocol_error",
        /// No answer in time.
        Timeout = "timeout",
        /// The agent gave up, or a leg was not continued in time.
        Cancelled = "cancelled",
        /// It was never sent.
        Unavailable = "unavailable",
        /// The server asks for more: ends a leg, not the call.
        InputRequired = "input_required",
        /// Nobody knows: toolgate ended, or lost sight of the call, before it did.
        Unknown = "unknown",
    }
}

words! {
    /// Whether the tool may have run.
    Effect {
        /// It has not: nothing was sent. Counters are given back.
        NotStarted = "not_started",
        /// It may have.
        Unknown = "unknown",
        /// It has.
        Done = "done",
    }
}
