//! Clearances: without one, no message is written to a server.
//!
//! A [`Clearance`] is a permit, which only the store creates, or the proof that the message is on the
//! closed list of messages that need none ([`Closed`]). An [`Outbound`] is a message together with
//! its clearance; a channel sends nothing else.
//!
//! Invariant: no [`Outbound`] exists without a clearance. The clearance of a closed-list message is
//! compared with the bytes that are sent, so that the two cannot disagree.
//! Invariant: a permit writes one message once: neither the permit nor its message can be cloned.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use toolgate_audit::CallId;
use toolgate_mcp::{Incoming, Limits, Message, method, parse_agent};
use toolgate_store::Permit;

use crate::list_kind::Kind;

/// The right to send a message.
#[derive(Debug)]
pub enum Clearance {
    /// The store has recorded and counted it.
    Permit(Permit),
    /// It is a further round of a call that had a permit.
    Round(Round),
    /// It needs no permit.
    Closed(Closed),
}

/// Proof that a message is on the closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed(Form);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Request,
    Notification,
    Answer,
}

/// Proof that the call was admitted, for a request that continues it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round(CallId);

/// A message to a server, and what cleared it.
#[derive(Debug)]
pub struct Outbound {
    body: Bytes,
    expects_answer: bool,
    heads: Heads,
    cleared: Cleared,
    /// Runs immediately before the first byte is written.
    final_check: Option<FinalCheck>,
}

/// What cleared a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleared {
    /// The permit of this call.
    Permit(CallId),
    /// Its method is on the closed list, or it is a response.
    Closed,
    /// An agent sends it to a gateway, which decides it.
    ByGateway,
}

/// A message that is not on the closed list had no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("toolgate has no permit for this message, so it was not sent")]
pub struct Uncleared;

/// Whether a message may still be written as it was decided. If not, it fails with
/// `SendError::Withheld`.
#[derive(Clone)]
pub struct FinalCheck(Arc<dyn Fn() -> bool + Send + Sync>);

impl FinalCheck {
    /// `check` must not wait.
    pub fn new(check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Whether it may be written.
    pub fn allows(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for FinalCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinalCheck").finish_non_exhaustive()
    }
}

/// Names of headers, in lower case, and their values.
pub type Heads = Vec<(Cow<'static, str>, String)>;

// === impl Clearance ===

impl Clearance {
    /// Whether the message may be written again, because it has no effect.
    pub fn may_repeat(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Clears the message that follows this one: a further round of the same call, the same call if
    /// it was withheld, or another message that needs no permit.
    #[must_use]
    pub fn once_more(&self) -> Self {
        match self {
            Self::Permit(permit) => Self::Round(Round(permit.call_id())),
            Self::Round(round) => Self::Round(*round),
            Self::Closed(closed) => Self::Closed(*closed),
        }
    }

    /// The message is answered without a write to the server.
    pub fn spend(self) {
        if let Self::Permit(permit) = self {
            tracing::trace!(call = %permit.call_id(), "answered without a write");
        }
    }
}

// === impl Closed ===

impl Closed {
    /// For `initialize`. The compiler compares these constants with the closed list.
    pub const INITIALIZE: Self = Self::known(method::INITIALIZE);
    /// For `server/discover`.
    pub const DISCOVER: Self = Self::known(method::DISCOVER);
    /// For `subscriptions/listen`.
    pub const LISTEN: Self = Self::known(method::LISTEN);
    /// For `logging/setLevel`.
    pub const SET_LEVEL: Self = Self::known(method::LOGGING_SET_LEVEL);
    /// For `notifications/initialized`.
    pub const INITIALIZED: Self = Self::known(method::INITIALIZED);
    /// For `notifications/cancelled`.
    pub const CANCELLED: Self = Self::known(method::CANCELLED);
    const TOOLS: Self = Self::known(method::TOOLS_LIST);
    const PROMPTS: Self = Self::known(method::PROMPTS_LIST);
    const RESOURCES: Self = Self::known(method::RESOURCES_LIST);
    const TEMPLATES: Self = Self::known(method::RESOURCES_TEMPLATES_LIST);

    #[expect(clippy::panic, reason = "runs at compile time only")]
    const fn known(name: &str) -> Self {
        if begins(name.as_bytes(), method::NOTIFICATIONS.as_bytes()) {
            return Self(Form::Notification);
        }
        let mut rest: &[&str] = &method::CLOSED;
        while let [closed, others @ ..] = rest {
            if closed.len() == name.len() && begins(name.as_bytes(), closed.as_bytes()) {
                return Self(Form::Request);
            }
            rest = others;
        }
        panic!("the method is not on the closed list")
    }

    /// The proof for a list.
    pub fn list(kind: Kind) -> Self {
        match kind {
            Kind::Tools => Self::TOOLS,
            Kind::Prompts => Self::PROMPTS,
            Kind::Resources => Self::RESOURCES,
            Kind::Templates => Self::TEMPLATES,
        }
    }

    /// The proof for a request; `None` if its method needs a permit.
    pub fn request(method: &str) -> Option<Self> {
        method::CLOSED.contains(&method).then_some(Self(Form::Request))
    }

    /// The proof for a notification; `None` if it is a request without an id.
    pub fn notification(method: &str) -> Option<Self> {
        method::is_notification(method).then_some(Self(Form::Notification))
    }

    /// The proof for a response to a request of the server.
    pub fn answer() -> Self {
        Self(Form::Answer)
    }

    /// Whether the proof is for this message.
    fn covers(self, body: &[u8]) -> bool {
        // The depth was checked when the agent's message was received.
        let limits = Limits { depth: usize::MAX, ..Limits::default() };
        match (self.0, parse_agent(body, &limits)) {
            (Form::Request, Ok(Incoming::One(Message::Request(request)))) => {
                Self::request(&request.method).is_some()
            }
            (Form::Notification, Ok(Incoming::One(Message::Notification(notification)))) => {
                Self::notification(&notification.method).is_some()
            }
            (Form::Answer, Ok(Incoming::One(Message::Response(_)))) => true,
            _ => false,
        }
    }
}

const fn begins(mut text: &[u8], mut with: &[u8]) -> bool {
    while let [first, others @ ..] = with {
        match text {
            [same, rest @ ..] if *same == *first => text = rest,
            _ => return false,
        }
        with = others;
    }
    true
}

// === impl Outbound ===

impl Outbound {
    /// A request.
    pub fn request(body: Bytes, heads: Heads, clearance: Clearance) -> Result<Self, Uncleared> {
        Self::new(body, true, heads, clearance)
    }

    /// A notification or a response, which never has a permit.
    pub fn notification(body: Bytes, heads: Heads, closed: Closed) -> Result<Self, Uncleared> {
        Self::new(body, false, heads, Clearance::Closed(closed))
    }

    fn new(
        body: Bytes,
        expects_answer: bool,
        heads: Heads,
        clearance: Clearance,
    ) -> Result<Self, Uncleared> {
        let cleared = match clearance {
            Clearance::Permit(permit) => Cleared::Permit(permit.call_id()),
            Clearance::Round(Round(call_id)) => Cleared::Permit(call_id),
            Clearance::Closed(closed) => {
                if expects_answer != (closed.0 == Form::Request) || !closed.covers(&body) {
                    tracing::error!("message without a permit rejected; it was not sent");
                    return Err(Uncleared);
                }
                Cleared::Closed
            }
        };
        Ok(Self { body, expects_answer, heads, cleared, final_check: None })
    }

    /// Adds the check that runs immediately before the write.
    #[must_use]
    pub fn with_final_check(self, final_check: Option<FinalCheck>) -> Self {
        Self { final_check, ..self }
    }

    /// A message on the closed list, from any sender.
    pub fn closed(body: Bytes) -> Result<Self, Uncleared> {
        let forms = [Form::Request, Form::Notification, Form::Answer];
        let form = forms.into_iter().find(|form| Closed(*form).covers(&body)).ok_or(Uncleared)?;
        let clearance = Clearance::Closed(Closed(form));
        Self::new(body, form == Form::Request, Heads::new(), clearance)
    }

    /// A message of a program that is itself an agent (`toolgate tool`, `toolgate run --gateway`):
    /// the gateway that it is sent to decides it. Never for a message to a server.
    pub fn of_agent(body: Bytes, expects_answer: bool) -> Self {
        Self::of_agent_with(body, expects_answer, Heads::new())
    }

    /// The same with headers that repeat parts of it.
    pub fn of_agent_with(body: Bytes, expects_answer: bool, heads: Heads) -> Self {
        Self { body, expects_answer, heads, cleared: Cleared::ByGateway, final_check: None }
    }

    /// The same message again; `None` if its clearance allows only one write.
    #[must_use]
    pub fn again(&self) -> Option<Self> {
        let Self { body, expects_answer, heads, cleared, final_check } = self;
        (*cleared == Cleared::Closed).then(|| Self {
            body: body.clone(),
            expects_answer: *expects_answer,
            heads: heads.clone(),
            cleared: *cleared,
            final_check: final_check.clone(),
        })
    }

    /// The message, one JSON text.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether this is a request, so that an exchange without a response is a failure.
    pub fn expects_answer(&self) -> bool {
        self.expects_answer
    }

    /// The HTTP headers that repeat parts of it; only messages of protocol 2026-07-28 have them.
    pub fn heads(&self) -> &Heads {
        &self.heads
    }

    /// The check that runs immediately before the first byte is written.
    pub fn final_check(&self) -> Option<&FinalCheck> {
        self.final_check.as_ref()
    }

    /// What cleared it.
    pub fn cleared(&self) -> Cleared {
        self.cleared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(body: &'static str, proof: Option<Closed>) -> bool {
        let Some(proof) = proof else { return false };
        let expects = proof.0 == Form::Request;
        Outbound::new(Bytes::from(body), expects, Heads::new(), Clearance::Closed(proof)).is_ok()
    }

    #[test]
    fn policy_and_protocol_have_the_same_closed_list() {
        assert_eq!(toolgate_policy::METHODS_WITHOUT_PERMISSION, method::CLOSED);
    }

    #[test]
    fn proof_and_message_cannot_disagree() {
        let ping = || Closed::request("ping");
        let note = || Closed::notification("notifications/x");
        let answer = || Some(Closed::answer());
        for (body, proof, is_cleared) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, ping(), true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, ping(), true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, ping(), false),
            (r#"{"jsonrpc":"2.0","id":1,"method":"\u0074ools/call"}"#, ping(), false),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#, ping(), false),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, ping(), false),
            (r#"{"jsonrpc":"2.0","method":"ping"}"#, ping(), false),
            (r#"{"jsonrpc":"2.0","method":"ping"}"#, note(), false),
            (r#"{"jsonrpc":"2.0","method":"tools/call"}"#, note(), false),
            (r#"{"jsonrpc":"2.0","method":"notifications/y"}"#, note(), true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"notifications/y"}"#, note(), false),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, answer(), true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, answer(), false),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"tools/call"}"#, answer(), false),
        ] {
            assert_eq!(closed(body, proof), is_cleared, "{body}");
        }
    }

    #[test]
    fn no_other_method_has_a_proof() {
        for method in ["tools/call", "tasks/list", "x", "", "PING", "ping ", "tools/list/x"] {
            assert_eq!(Closed::request(method), None, "{method}");
        }
        for method in
            ["tools/call", "ping", "", "Notifications/x", "notifications", " notifications/x"]
        {
            assert_eq!(Closed::notification(method), None, "{method}");
        }
    }
}
