//! Admission: every request that can do something is decided, counted and written down first.
//!
//! A [`Wanted`] request says who wants what; [`Admission::admit`] asks the store, which decides it
//! inside the transaction that takes its counters and writes its intent. Only what comes out of
//! that can be sent ([`crate::clearance::Clearance`]).
//!
//! Invariant: fail closed. Without a policy, without a written intent, with an error anywhere,
//! nothing is sent, and the agent is told why (`refused.rs`).
//! Invariant: argument values reach the audit only as far as its mode says, and never a log.
//!
//! Start at [`Admission::admit`].

mod judge;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::timeout;
use toolgate_audit::{ArgumentHashKey, ArgumentMode, CallId, Draft, RowKind, record_arguments};
use toolgate_policy::{
    Call, Class, Effect, Identity, Outcome, SessionFacts, UNUSED, Usage, Verdict, decide,
};
use toolgate_session::CallTarget;
use toolgate_store::{AdmitOutcome, AdmitRequest, Admitted, RoundKind, Store};

use crate::access::{Access, Grant, InForce};
use crate::barred::Barred;
use crate::denials::Strangers;
use crate::environment::{Clock, Ids};
use crate::refused::Refused;
use crate::reserved::{SESSIONS, TOOLGATE};
use crate::store_timeout::{PATIENCE, in_time, written_in_time};
use crate::task_book::{Book, MAX_OPEN};
use crate::turns::Turns;
use judge::Judged;

/// What admission is made of.
pub struct Admission {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    access: ArcSwap<Access>,
    writing: ArcSwap<Writing>,
    refresh: OnceLock<Box<Refresh>>,
    /// The tasks that admitted calls have created.
    pub tasks: Book,
    strangers: Strangers,
    /// For calls with large arguments.
    turns: Turns,
    /// For looks at what has been used.
    looks: Turns,
}

/// Makes [`Access`] anew of what the store holds now, and puts it in force.
pub type Refresh =
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync;

/// How often a call looks again at what is in force, when it keeps changing.
const LOOKS: usize = 8;

/// What of arguments is written down.
#[derive(Debug)]
pub struct Writing {
    /// How much.
    pub mode: ArgumentMode,
    /// The key of the `hashed` mode.
    pub secret: ArgumentHashKey,
}

/// Who sends a request, and by what way.
#[derive(Debug, Clone)]
pub struct Sender {
    /// Whose it is.
    pub grant: Arc<Grant>,
    /// The agent session's id.
    pub agent_session: Arc<str>,
    /// What the client calls itself.
    pub client: Option<Arc<str>>,
    /// The endpoint.
    pub via: Arc<str>,
}

/// A request that can do something.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Who sends it.
    pub sender: Sender,
    /// The server it is for, or a reserved name.
    pub server: Arc<str>,
    /// What it is about.
    pub what: What,
    /// Further names of the tool that policies match.
    pub aliases: Arc<[Arc<str>]>,
    /// The session called, for session tools.
    pub session: Option<Called>,
    /// Its method.
    pub method: Arc<str>,
    /// The raw arguments object.
    pub arguments: String,
    /// The id of the call in the audit.
    pub call_id: CallId,
    pub(crate) began: Timestamp,
}

/// A session that is called, as far as policies and the audit know it.
#[derive(Debug, Clone)]
pub struct Called {
    id: Arc<str>,
    kind: String,
    infobase_name: String,
    host_id: String,
}

/// What a request is about, under the server's own name.
#[derive(Debug, Clone)]
pub enum What {
    /// A tool, and its risk class.
    Tool(Arc<str>, Class),
    /// A prompt.
    Prompt(Arc<str>),
    /// The URI of a resource or template.
    Resource(Arc<str>),
    /// A method that is about none of these.
    Method(Arc<str>),
}

// === impl Admission ===

impl Admission {
    /// Admission through `store`. Nobody may do anything before [`Admission::set_access`].
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        writing: Writing,
    ) -> Self {
        let writing = ArcSwap::from_pointee(writing);
        let (access, refresh) = (ArcSwap::default(), OnceLock::new());
        let strangers = Strangers::new(Arc::clone(&store), Arc::clone(&clock));
        let (turns, looks, tasks) = (Turns::default(), Turns::default(), Book::default());
        Self { store, clock, ids, access, writing, refresh, tasks, strangers, turns, looks }
    }

    /// Tells of those who were not let in.
    pub fn strangers(&self) -> &Strangers {
        &self.strangers
    }

    /// How to find out what is in force after a change; to be told once.
    pub fn set_refresh(&self, refresh: Box<Refresh>) {
        if self.refresh.set(refresh).is_err() {
            tracing::error!("`set_refresh` called twice; keeping the first");
        }
    }

    /// Puts in force what the store holds now.
    pub async fn refresh(&self) -> Result<(), String> {
        match self.refresh.get() {
            Some(refresh) => refresh().await,
            None => Ok(()),
        }
    }

    /// Everything that is in force now.
    pub(crate) fn in_force(&self) -> Arc<Access> {
        self.access.load_full()
    }

    /// Whether this is still what is in force.
    pub(crate) fn is_in_force(&self, access: &Arc<Access>) -> bool {
        Arc::ptr_eq(&self.access.load(), access)
    }

    /// Whether the store has been changed, perhaps by another process, and that is not in force
    /// here yet.
    pub(crate) fn is_behind(&self) -> bool {
        self.generation().is_some_and(|known| known != self.store.generation())
    }

    /// The generation of the store that is in force.
    pub fn generation(&self) -> Option<u64> {
        self.access.load().generation
    }

    /// Puts something else in force, from the next request on.
    pub fn set_access(&self, access: Access) {
        self.access.store(Arc::new(access));
    }

    /// Writes down more or less of arguments, from the next request on.
    pub fn set_writing(&self, writing: Writing) {
        self.writing.store(Arc::new(writing));
    }

    /// Whose a request with this token, or without one, is.
    pub fn caller(&self, token: Option<&str>) -> Option<Arc<Grant>> {
        let now = self.clock.now();
        let grant = self.access.load().caller(token, now)?;
        if let Some(id) = grant.id.as_ref().filter(|_| grant.is_used_anew(now)) {
            self.store.touch(Arc::clone(id), now);
        }
        Some(grant)
    }

    /// What a grant may do now.
    pub fn current(&self, label: &str) -> Option<Arc<Grant>> {
        self.access.load().of_label(label).cloned()
    }

    /// Whether the token with which this grant was looked up is valid now.
    pub fn is_valid(&self, held: &Grant) -> bool {
        let (access, now) = (self.access.load(), self.clock.now());
        let current = access.current(held);
        current.is_some_and(|grant| grant.token == held.token && !grant.has_expired(now))
    }

    /// Whether a subscription that was admitted once would be so now.
    pub fn may_follow(&self, held: &Grant, server: &str, uri: &str) -> bool {
        let access = self.access.load();
        access.frozen.stops(&held.label, server).is_none() && self.may_know_of(held, server, uri)
    }

    /// Whether the policy lets this grant, looked up as it is now, know of changes of a resource.
    pub fn may_know_of(&self, held: &Grant, server: &str, uri: &str) -> bool {
        let access = self.access.load();
        let allows = |in_force: &Arc<InForce>| {
            in_force.policy.decide_resource(uri, self.clock.now()).effect == Effect::Allow
        };
        let may =
            |grant: &Grant| grant.may_reach(server) && grant.policy.as_ref().is_some_and(allows);
        access.current(held).is_some_and(may)
    }

    /// Why the answer of this grant to a question of a server must not be sent: it is frozen, or
    /// the server is out of its reach now.
    pub fn may_not_answer(&self, held: &Grant, server: &str) -> Option<String> {
        let access = self.access.load();
        let out_of_reach = || {
            let reaches = access.current(held).is_some_and(|grant| grant.may_reach(server));
            (!reaches).then(|| "the agent may not use this server any more".to_owned())
        };
        access.frozen.stops(&held.label, server).or_else(out_of_reach)
    }

    /// Why no process of a server may be started for this grant, which is looked up as it is now.
    pub fn barred(&self, held: &Grant, server: &str) -> Option<Barred> {
        let access = self.access.load();
        if let Some(what) = access.frozen.stops(&held.label, server) {
            return Some(Barred::Frozen(what));
        }
        let may_call = match access.of_label(&held.label) {
            _ if held.is_trial => true,
            Some(current) => current.may_call(server, self.clock.now()),
            // Where nothing can change, what was looked up once holds.
            None => access.generation.is_none() && held.may_call(server, self.clock.now()),
        };
        (!may_call).then_some(Barred::MayNothing)
    }

    /// Where calls are decided, counted and recorded.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The time by the wall clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The id of a call that begins now; none if there is no randomness to be had.
    pub(crate) fn call_id(&self, now: Timestamp) -> Option<CallId> {
        let millisecond = u64::try_from(now.as_millisecond()).unwrap_or_default();
        Some(CallId::new(millisecond, self.ids.call()?))
    }

    /// Random bytes, to be used once; none if there is no randomness to be had.
    pub fn random(&self) -> Option<[u8; 10]> {
        self.ids.call()
    }

    /// The secret of the data folder.
    pub fn secret(&self) -> ArgumentHashKey {
        self.writing.load().secret.clone()
    }

    /// Decides, counts and writes down. What was not admitted is not to be sent.
    ///
    /// The store admits only under the generation that is in force here: a revocation, a policy or
    /// a freeze of a moment ago, in whichever process, is looked up before the call is decided.
    pub async fn admit(&self, wanted: &Arc<Wanted>) -> Result<Admitted, Refused> {
        self.admit_leg(wanted, RoundKind::First).await
    }

    /// Decides the next leg of a call that was counted before.
    pub(crate) async fn admit_next(&self, wanted: &Arc<Wanted>) -> Result<Admitted, Refused> {
        self.admit_leg(wanted, RoundKind::Next).await
    }

    async fn admit_leg(&self, wanted: &Arc<Wanted>, leg: RoundKind) -> Result<Admitted, Refused> {
        let call_id = wanted.call_id;
        for _ in 0..LOOKS {
            let access = self.access.load_full();
            let wanted = wanted.under(&access);
            if let Some(what) = wanted.frozen(&access) {
                let refused = Refused::frozen(call_id, &what);
                self.write_denial(&wanted, &refused).await?;
                return Err(refused);
            }
            if !wanted.is_within(&wanted.sender.grant) {
                let refused = Refused::out_of_reach(call_id);
                self.write_denial(&wanted, &refused).await?;
                return Err(refused);
            }
            let Judged { draft, so_far } = self.judge(&wanted).await?;
            let asking = AdmitRequest {
                draft,
                round: leg,
                generation: access.generation,
                decide: Box::new({
                    let wanted = Arc::clone(&wanted);
                    move |usage, now| wanted.verdict(&so_far, usage, now)
                }),
            };
            let place = wanted.sender.grant.places.take().await;
            let answer = in_time(|| self.store.admit(asking), &self.clock).await;
            drop(place);
            match answer {
                Ok(AdmitOutcome::Admitted(admitted)) => return Ok(admitted),
                Ok(AdmitOutcome::Refused(verdict)) => {
                    return Err(Refused::by_policy(call_id, &verdict));
                }
                Ok(AdmitOutcome::Held(verdict)) => {
                    let refused = Refused::held(call_id, &verdict);
                    self.write_denial(&wanted, &refused).await?;
                    return Err(refused);
                }
                Ok(AdmitOutcome::Stale) => {
                    let refreshed = timeout(PATIENCE, self.refresh()).await;
                    let refreshed = refreshed.unwrap_or_else(|_| Err("it takes too long".into()));
                    refreshed.map_err(|why| Refused::not_audited(call_id, &why))?;
                }
                // A new call waits for nothing; a leg may have come too late.
                Ok(AdmitOutcome::NotWaiting) => break,
                Err(error) => return Err(Refused::not_audited(call_id, &error.to_string())),
            }
        }
        Err(Refused::not_audited(call_id, "what is in force changes too fast"))
    }

    /// Shows a grant what has been used so far; takes nothing. A grant looks once at a time.
    pub async fn look<T: Send + 'static>(
        &self,
        grant: &Arc<str>,
        look: impl FnOnce(&dyn Usage, Timestamp) -> T + Send + 'static,
    ) -> Result<T, String> {
        let _turn = self.looks.of(grant).await.map_err(|no| no.why().to_owned())?;
        let (tell, told) = oneshot::channel();
        // Whoever asked may be gone.
        let look = Box::new(|usage: &dyn Usage, now: Timestamp| drop(tell.send(look(usage, now))));
        let looked = timeout(PATIENCE, self.store.read_usage(self.clock.now(), look)).await;
        let slow = format!("the store has not answered for {} s", PATIENCE.as_secs());
        looked.map_err(|_| slow)?.map_err(|error| error.to_string())?;
        told.await.map_err(|_| "the store gave no answer".to_owned())
    }

    /// Whether the name alone is refused, so that the answer is the same whether it exists or not;
    /// if not, that it does not exist. Either way it is written down.
    pub async fn unknown(&self, wanted: Wanted, shown: &str) -> Refused {
        let call_id = wanted.call_id;
        let verdict = wanted.verdict_on_name(self.clock.now());
        let refused = match verdict.effect {
            Effect::Deny | Effect::Hide => Refused::by_policy(call_id, &verdict),
            Effect::Allow | Effect::Hold => match wanted.what {
                What::Prompt(_) => Refused::unknown_prompt(call_id, shown),
                _ => Refused::unknown_tool(call_id, shown),
            },
        };
        match self.write_denial(&wanted, &refused).await {
            Ok(()) => refused,
            Err(not_written) => not_written,
        }
    }

    /// Whether the name alone is refused, or the grant or the server is frozen.
    pub fn refuses_name(&self, wanted: &Wanted) -> bool {
        let (label, server) = (&wanted.sender.grant.label, &wanted.server);
        let verdict = wanted.verdict_on_name(self.clock.now());
        self.access.load().frozen.stops(label, server).is_some()
            || matches!(verdict.effect, Effect::Deny | Effect::Hide)
    }

    /// The grant has as many open tasks as it may have, so that no call of it may create another.
    /// The policy is asked about the name first; either way the refusal is recorded.
    pub async fn too_many_tasks(&self, wanted: &Wanted) -> Refused {
        let refused = Refused::too_many_tasks(wanted.call_id, MAX_OPEN);
        match self.unroutable(wanted, refused.code(), refused.said()).await {
            Ok(()) => refused,
            Err(other) => other,
        }
    }

    /// The call goes nowhere, for the reason given; that is written down. The policy has the first
    /// word on the name, so that the answer does not tell what there is.
    pub async fn unroutable(
        &self,
        wanted: &Wanted,
        code: &'static str,
        text: &str,
    ) -> Result<(), Refused> {
        let verdict = wanted.verdict_on_name(self.clock.now());
        if matches!(verdict.effect, Effect::Deny | Effect::Hide) {
            let refused = Refused::by_policy(wanted.call_id, &verdict);
            self.write_denial(wanted, &refused).await?;
            return Err(refused);
        }
        self.write_denial(wanted, &Refused::unroutable(wanted.call_id, code, text)).await
    }

    async fn write_denial(&self, wanted: &Wanted, refused: &Refused) -> Result<(), Refused> {
        let mut draft = self.draft_of(wanted).await?;
        draft.kind = RowKind::Denied;
        draft.error_code = Some(refused.code().into());
        draft.rule = refused.rule().cloned();
        draft.decision = refused.decision();
        draft.message = Some(refused.said().into());
        let _place = wanted.sender.grant.places.take().await;
        let written = written_in_time(self.store.deny(draft)).await;
        written.map_err(|error| Refused::not_audited(wanted.call_id, &error.to_string()))
    }
}

/// What a row says of a request before it is decided.
fn draft(writing: &Writing, wanted: &Wanted) -> Draft {
    let Sender { grant, agent_session, client, via } = &wanted.sender;
    let in_force = grant.policy.as_ref();
    let paths = in_force.map_or(&[][..], |policy| &policy.paths);
    let arguments = record_arguments(writing.mode, &wanted.arguments, paths, &writing.secret);
    let (name, class) = wanted.what.name();
    Draft {
        call_id: Some(wanted.call_id),
        method: Some(Arc::clone(&wanted.method)),
        grant: Some(Arc::clone(&grant.label)),
        identity: grant.identity.clone(),
        agent_session: Some(Arc::clone(agent_session)),
        client: client.clone(),
        via: Some(Arc::clone(via)),
        server: Some(Arc::clone(&wanted.server)),
        session_id: wanted.session.as_ref().map(|called| Arc::clone(&called.id)),
        tool: (!matches!(wanted.what, What::Method(_))).then(|| Arc::clone(name)),
        risk: class.map(|class| class.as_str().into()),
        policy: in_force.map(|policy| Arc::clone(&policy.name)),
        policy_version: in_force.and_then(|policy| policy.version),
        policy_hash: in_force.and_then(|policy| policy.hash),
        argument_keys: arguments.keys,
        arguments: arguments.values,
        ..Draft::new(RowKind::Intent, wanted.began)
    }
}

// === impl Wanted ===

impl Wanted {
    /// The same request under what is in force; a grant that is gone has no policy any more.
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

    /// What of it people have stopped, in words.
    pub(crate) fn frozen(&self, access: &Access) -> Option<String> {
        let session = self.session.as_ref().map(|called| &*called.id);
        access.frozen.stops_call(&self.sender.grant.label, &self.server, session)
    }

    /// Whether what it is sent to is within the reach of `grant`. One that is gone reaches what
    /// it asks for, and its missing policy denies.
    pub(crate) fn is_within(&self, grant: &Grant) -> bool {
        match &self.session {
            Some(called) => grant.sessions.allows(&called.id, &called.kind, &called.infobase_name),
            None => {
                [SESSIONS, TOOLGATE, ""].contains(&&*self.server) || grant.may_reach(&self.server)
            }
        }
    }

    /// What the policy says of the name, whatever the arguments are.
    fn verdict_on_name(&self, now: Timestamp) -> Verdict {
        self.decide(None, &UNUSED, now)
    }

    pub(crate) fn decide(
        &self,
        arguments: Option<&str>,
        usage: &dyn Usage,
        now: Timestamp,
    ) -> Verdict {
        let grant = &self.sender.grant;
        let (name, _) = self.what.name();
        let Some(in_force) = &grant.policy else { return Verdict::no_policy(name) };
        match &self.what {
            What::Prompt(name) => in_force.policy.decide_prompt(name, now),
            What::Resource(uri) => in_force.policy.decide_resource(uri, now),
            What::Method(method) => in_force.policy.decide_method(method, now),
            What::Tool(tool, class) => {
                decide(&in_force.policy, &self.call(tool, *class, arguments), usage, now)
            }
        }
    }

    /// Whether its result may give or end what somebody owns.
    pub fn watches_result(&self) -> bool {
        match (&self.sender.grant.policy, &self.what) {
            (Some(in_force), What::Tool(tool, class)) => {
                in_force.policy.watches_result(&self.call(tool, *class, None))
            }
            _ => false,
        }
    }

    /// What a result gives or ends.
    pub fn ownership(&self, result: &str) -> Outcome {
        match (&self.sender.grant.policy, &self.what) {
            (Some(in_force), What::Tool(tool, class)) => {
                let call = self.call(tool, *class, Some(&self.arguments));
                in_force.policy.outcome(&call, result)
            }
            _ => Outcome::default(),
        }
    }

    /// The call as the policy sees it.
    fn call<'a>(&'a self, tool: &'a str, class: Class, arguments: Option<&'a str>) -> Call<'a> {
        Call {
            aliases: &self.aliases,
            session: self.session.as_ref().map(Called::facts),
            target: self.session.as_ref().map_or("", |called| &called.id),
            arguments,
            ..self.sender.call(&self.server, tool, class)
        }
    }
}

// === impl Sender ===

impl Sender {
    /// A call of his as the policy sees it, whatever its arguments are.
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

// === impl Called ===

impl Called {
    /// What is known of the session that a call goes to.
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

// === impl What ===

impl What {
    /// Its name, and the risk class of a tool.
    pub fn name(&self) -> (&Arc<str>, Option<Class>) {
        match self {
            Self::Tool(name, class) => (name, Some(*class)),
            Self::Prompt(name) | Self::Resource(name) | Self::Method(name) => (name, None),
        }
    }
}
