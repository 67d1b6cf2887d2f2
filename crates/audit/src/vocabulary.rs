//! The closed sets of values in a row. A released value never changes its meaning.

use std::fmt;

/// The text is not in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownValue;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All values of the set.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The value as stored in the row.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Parses a stored value.
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
    /// The kind of event that a row records.
    RowKind {
        /// A call was admitted and may now be sent.
        Intent = "intent",
        /// The outcome of an admitted call.
        Outcome = "outcome",
        /// A call was refused; nothing was sent.
        Denied = "denied",
        /// A request was rejected: no valid token, or a foreign Host or Origin.
        Refused = "refused",
        /// A call waits for a person.
        Held = "held",
        /// A person answered, or the time to answer expired.
        Approval = "approval",
        /// A person changed something.
        Admin = "admin",
        /// A policy became active.
        Policy = "policy",
        /// A session was registered or ended.
        Session = "session",
        /// A server changed the definition of a tool.
        Drift = "drift",
    }
}

words! {
    /// The decision of the policy about a call.
    Decision {
        /// Send it.
        Allow = "allow",
        /// Refuse it.
        Deny = "deny",
        /// Refuse it as if the tool did not exist.
        Hide = "hide",
        /// Wait for a person.
        Hold = "hold",
        /// Sent, although the policy would have refused it: shadow mode.
        ShadowDeny = "shadow_deny",
        /// Sent, although the policy would have held it: shadow mode.
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
        /// The agent cancelled the call, or a round was not continued in time.
        Cancelled = "cancelled",
        /// It was never sent.
        Unavailable = "unavailable",
        /// The server requires input: ends a round, not the call.
        InputRequired = "input_required",
        /// Unknown: toolgate exited or lost track of the call before it ended.
        Unknown = "unknown",
    }
}

words! {
    /// Whether the tool may have run.
    Effect {
        /// It has not run: nothing was sent. Counters are refunded.
        NotStarted = "not_started",
        /// It may have run.
        Unknown = "unknown",
        /// It has run.
        Done = "done",
    }
}
