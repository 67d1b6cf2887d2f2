//! A request as it is decided, counted and recorded: who sends it, to whom, and what it is about.
//!
//! `describe.rs` makes a [`CallContext`] from an agent's request.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_audit::{CallId, Hash};
use toolgate_policy::{
    Approval, Call, Class, Identity, Outcome, SessionFacts, UNUSED, Usage, Verdict, decide,
    may_hold,
};
use toolgate_session::CallTarget;

use crate::access::{Access, Grant};
use crate::reserved::{SESSIONS, TOOLGATE};

/// The sender of a request, and the endpoint it arrived on.
#[derive(Debug, Clone)]
pub struct Sender {
    /// The grant.
    pub grant: Arc<Grant>,
    /// The id of the agent session, as the audit shows it.
    pub agent_session: Arc<str>,
    /// The name that the client gives itself.
    pub client: Option<Arc<str>>,
    /// The endpoint, `stdio`, or `cli` if a person calls with the rights of the grant.
    pub via: Arc<str>,
    /// That person.
    pub person: Option<Arc<str>>,
}

/// A request that needs a permit.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The sender.
    pub sender: Sender,
    /// The server it is for, or a reserved name.
    pub server: Arc<str>,
    /// What it is about.
    pub subject: CallSubject,
    /// Further names of the tool that policies match.
    pub aliases: Arc<[Arc<str>]>,
    /// The fingerprint of the tool's definition, if that is known.
    pub fingerprint: Option<Hash>,
    /// The session called, for session tools.
    pub session: Option<CalledSession>,
    /// Its method.
    pub method: Arc<str>,
    /// The raw arguments object.
    pub arguments: String,
    /// The id of the call in the audit.
    pub call_id: CallId,
    pub(crate) began: Timestamp,
}

/// The session of a call, as policies and the audit see it.
#[derive(Debug, Clone)]
pub struct CalledSession {
    pub(crate) id: Arc<str>,
    kind: String,
    infobase_name: String,
    host_id: String,
}

/// The subject of a request, under the server's own name.
#[derive(Debug, Clone)]
pub enum CallSubject {
    /// A tool, and its risk class.
    Tool(Arc<str>, Class),
    /// A prompt.
    Prompt(Arc<str>),
    /// The URI of a resource or template.
    Resource(Arc<str>),
    /// Any other method.
    Method(Arc<str>),
}

// === impl CallContext ===

impl CallContext {
    /// The same request under the current access; a removed grant has no policy any more.
    pub(crate) fn under(self: &Arc<Self>, access: &Access) -> Arc<Self> {
        let held = &self.sender.grant;
        if access.generation.is_none() {
            return Arc::clone(self);
        }
        let current = match access.of_label(&held.label) {
            Some(current) if Arc::ptr_eq(current, held) => return Arc::clone(self),
            Some(current) => Arc::clone(current),
            None => Arc::new(Grant { label: Arc::clone(&held.label), ..Grant::default() }),
        };
        let sender = Sender { grant: current, ..self.sender.clone() };
        Arc::new(Self { sender, ..Self::clone(self) })
    }

    /// The freeze that stops the request, as a sentence.
    pub(crate) fn frozen(&self, access: &Access) -> Option<String> {
        let session = self.session.as_ref().map(|session| &*session.id);
        access.frozen.stops_call(&self.sender.grant.label, &self.server, session)
    }

    /// Whether the server or session of the request is within the reach of `grant`. A removed grant
    /// passes this check; its missing policy denies.
    pub(crate) fn is_within(&self, grant: &Grant) -> bool {
        match &self.session {
            Some(session) => {
                grant.sessions.allows(&session.id, &session.kind, &session.infobase_name)
            }
            None => {
                [SESSIONS, TOOLGATE, ""].contains(&&*self.server) || grant.may_reach(&self.server)
            }
        }
    }

    /// The verdict on the name, whatever the arguments are.
    pub(crate) fn verdict_on_name(&self, now: Timestamp) -> Verdict {
        self.decide(None, &UNUSED, now)
    }

    pub(crate) fn decide(
        &self,
        arguments: Option<&str>,
        usage: &dyn Usage,
        now: Timestamp,
    ) -> Verdict {
        self.decide_with(arguments, Approval::None, usage, now)
    }

    /// The same, with the answer of people.
    pub(crate) fn decide_with(
        &self,
        arguments: Option<&str>,
        approval: Approval,
        usage: &dyn Usage,
        now: Timestamp,
    ) -> Verdict {
        let (name, _) = self.subject.name();
        let Some(active) = &self.sender.grant.policy else { return Verdict::no_policy(name) };
        match &self.subject {
            CallSubject::Prompt(name) => active.policy.decide_prompt(name, now),
            CallSubject::Resource(uri) => active.policy.decide_resource(uri, now),
            CallSubject::Method(method) => active.policy.decide_method(method, now),
            CallSubject::Tool(tool, class) => {
                let call = Call { approval, ..self.call(tool, *class, arguments) };
                decide(&active.policy, &call, usage, now)
            }
        }
    }

    /// Whether a rule may hold the request for a person.
    pub fn may_be_held(&self) -> bool {
        match (&self.sender.grant.policy, &self.subject) {
            (Some(active), CallSubject::Tool(tool, class)) => {
                may_hold(&active.policy, &self.call(tool, *class, None))
            }
            _ => false,
        }
    }

    /// Whether the result may assign or end an owned id.
    pub fn watches_result(&self) -> bool {
        match (&self.sender.grant.policy, &self.subject) {
            (Some(active), CallSubject::Tool(tool, class)) => {
                active.policy.watches_result(&self.call(tool, *class, None))
            }
            _ => false,
        }
    }

    /// The ids that a result assigns or ends.
    pub fn ownership(&self, result: &str) -> Outcome {
        match (&self.sender.grant.policy, &self.subject) {
            (Some(active), CallSubject::Tool(tool, class)) => {
                let call = self.call(tool, *class, Some(&self.arguments));
                active.policy.outcome(&call, result)
            }
            _ => Outcome::default(),
        }
    }

    /// The call as the policy sees it.
    pub(crate) fn call<'a>(
        &'a self,
        tool: &'a str,
        class: Class,
        arguments: Option<&'a str>,
    ) -> Call<'a> {
        Call {
            aliases: &self.aliases,
            session: self.session.as_ref().map(CalledSession::facts),
            target: self.session.as_ref().map_or("", |session| &session.id),
            fingerprint: self.fingerprint.as_ref().map_or(&[], |hash| &hash.0),
            arguments,
            ..self.sender.call(&self.server, tool, class)
        }
    }
}

// === impl Sender ===

impl Sender {
    /// A call of this sender as the policy sees it, without arguments.
    pub fn call<'a>(&'a self, server: &'a str, tool: &'a str, class: Class) -> Call<'a> {
        let Self { grant, agent_session, client, .. } = self;
        Call {
            grant: &grant.label,
            identity: grant.identity.as_ref().map(|name| Identity { name, groups: &grant.groups }),
            client: client.as_deref(),
            server,
            tool,
            class,
            agent_session: Some(agent_session),
            ..Call::default()
        }
    }
}

// === impl CalledSession ===

impl CalledSession {
    /// The session of a call target.
    pub fn of(target: &CallTarget) -> Self {
        Self {
            id: Arc::clone(&target.session_id),
            kind: target.kind.clone(),
            infobase_name: target.infobase_name.clone(),
            host_id: target.host_id.clone(),
        }
    }

    fn facts(&self) -> SessionFacts<'_> {
        SessionFacts {
            kind: Some(&self.kind),
            infobase_name: Some(&self.infobase_name),
            host_id: Some(&self.host_id),
        }
    }
}

// === impl CallSubject ===

impl CallSubject {
    /// Its name, and the risk class of a tool.
    pub fn name(&self) -> (&Arc<str>, Option<Class>) {
        match self {
            Self::Tool(name, class) => (name, Some(*class)),
            Self::Prompt(name) | Self::Resource(name) | Self::Method(name) => (name, None),
        }
    }
}
