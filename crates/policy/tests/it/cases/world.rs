//! What a file of cases may say, and how a case is run.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use toolgate_policy::{
    Approval, Call, Class, Effect, Exception, ExceptionFacts, Identity, Known, KnownTool, Ledger,
    Ownership, Policy, Question, Receipt, SessionFacts, Verdict, Window, Yielded, decide, explain,
    is_hidden,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[expect(dead_code, reason = "says which sentences the file is about")]
    about: String,
    #[serde(default)]
    policy: Option<String>,
    #[serde(default)]
    pub(crate) cases: Vec<Case>,
    #[serde(default)]
    pub(crate) conditions: Vec<super::condition::Row>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Case {
    pub(crate) name: String,
    policy: Option<String>,
    /// Names of configured servers.
    servers: Vec<String>,
    /// `server/tool class` of tools that servers list.
    tools: Option<Vec<String>>,
    /// Codes that must be reported, each `TG0005` or `TG0005 3:1`; nothing else may be.
    problems: Option<Vec<String>>,
    /// A fragment of some message or hint.
    hint: Option<String>,
    /// Two documents with the same meaning, or not.
    same_hash: Option<String>,
    other_hash: Option<String>,
    steps: Vec<Step>,
    step: Option<Step>,
    // A case of one call may say it without `steps`.
    tool: Option<String>,
    server: Option<String>,
    class: Option<String>,
    args: Option<Value>,
    raw: Option<String>,
    is: Option<String>,
    says: Option<String>,
    shadow: Option<String>,
    at: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    tool: Option<String>,
    server: Option<String>,
    class: Option<String>,
    args: Option<Value>,
    /// Arguments as they came, where spelling matters.
    raw: Option<String>,
    grant: Option<String>,
    identity: Option<String>,
    groups: Vec<String>,
    client: Option<String>,
    session: Option<Session>,
    target: Option<String>,
    agent_session: Option<String>,
    fingerprint: Option<String>,
    approval: Option<String>,
    /// Decide on the name alone.
    listed: Option<bool>,
    at: Option<String>,
    after: Option<String>,
    times: Option<u64>,
    /// The calls stay in flight.
    running: bool,
    /// Everything in flight ends before this call.
    ended: bool,
    /// The calls are never sent: what they took is given back.
    unsent: bool,
    /// A value the grant was given before.
    owns: Option<Owns>,
    /// A standing exception given before, with its constraints.
    exception: Option<String>,
    /// `effect [code] [rule]`.
    is: Option<String>,
    says: Option<String>,
    /// `effect rule` of what shadow would have done; `none`.
    shadow: Option<String>,
    retry: Option<u64>,
    /// `rule effect` of every rule that took part.
    rules: Option<Vec<String>>,
    /// Names of the counters to take.
    takes: Option<Vec<String>>,
    /// `people=2 expires=60 approvers=ops,dev`
    hold: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    method: Option<String>,
    /// Whether a list shows the resource or prompt.
    shown: Option<bool>,
    /// `effect rule` of the explanation.
    explained: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Session {
    kind: Option<String>,
    infobase_name: Option<String>,
    host_id: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Owns {
    kind: String,
    value: Value,
    grant: String,
    identity: Option<String>,
    shared: bool,
    by_identity: bool,
    conflict: bool,
    server: Option<String>,
}

/// Runs one case, or says what is wrong.
pub(crate) fn run_case(file: &File, case: &Case) -> Result<(), String> {
    let source = case.policy.as_ref().or(file.policy.as_ref()).ok_or("no policy")?;
    let known =
        Known { servers: case.servers.clone(), tools: known_tools(case)?, ..Known::default() };
    let loaded = Policy::load("p", source, &known);
    if let Some(wanted) = &case.problems {
        return check_problems(case, wanted, &loaded.problems);
    }
    let policy = loaded.policy.ok_or_else(|| format!("invalid: {:#?}", loaded.problems))?;
    if let Some(other) = case.same_hash.as_ref().or(case.other_hash.as_ref()) {
        let other = Policy::load("p", other, &known);
        let other = other.policy.ok_or_else(|| format!("invalid: {:#?}", other.problems))?;
        let same = policy.hash() == other.hash();
        return if same == case.same_hash.is_some() {
            Ok(())
        } else {
            Err(format!("same: {same}"))
        };
    }
    let mut world = World::new(&policy);
    let steps = if case.steps.is_empty() { vec![case.only_step()] } else { case.steps.clone() };
    for (index, step) in steps.iter().enumerate() {
        world.run(step).map_err(|why| format!("step {}: {why}", index + 1))?;
    }
    Ok(())
}

fn known_tools(case: &Case) -> Result<Option<Vec<KnownTool>>, String> {
    let Some(tools) = &case.tools else { return Ok(None) };
    let read = |text: &String| {
        let (path, class) = text.split_once(' ')?;
        let (server, name) = path.split_once('/')?;
        let class = Class::parse(class)?;
        Some(KnownTool { server: server.into(), name: name.into(), class })
    };
    tools.iter().map(|t| read(t).ok_or(format!("bad tool {t}"))).collect::<Result<_, _>>().map(Some)
}

fn check_problems(
    case: &Case,
    wanted: &[String],
    problems: &[toolgate_policy::Problem],
) -> Result<(), String> {
    let got: Vec<String> =
        problems.iter().map(|p| format!("{} {}:{}", p.code.as_str(), p.line, p.column)).collect();
    let fits = wanted.len() == got.len()
        && wanted.iter().zip(&got).all(|(w, g)| w == g || g.split(' ').next() == Some(w));
    let says = case
        .hint
        .as_ref()
        .is_none_or(|h| problems.iter().any(|p| p.hint.contains(h) || p.message.contains(h)));
    if fits && says {
        Ok(())
    } else {
        let texts: Vec<String> =
            problems.iter().map(|p| format!("{} — {}", p.message, p.hint)).collect();
        Err(format!("expected {wanted:?}, got {got:?}: {texts:?}"))
    }
}

impl Case {
    fn only_step(&self) -> Step {
        if let Some(step) = &self.step {
            return step.clone();
        }
        Step {
            tool: self.tool.clone(),
            server: self.server.clone(),
            class: self.class.clone(),
            args: self.args.clone(),
            raw: self.raw.clone(),
            is: self.is.clone(),
            says: self.says.clone(),
            shadow: self.shadow.clone(),
            at: self.at.clone(),
            ..Step::default()
        }
    }
}

/// A policy, its counters and a virtual clock.
struct World<'p> {
    policy: &'p Policy,
    ledger: Ledger,
    now: Timestamp,
    running: Vec<Receipt>,
}

impl<'p> World<'p> {
    fn new(policy: &'p Policy) -> Self {
        let now = "2026-01-05T00:00:00Z".parse().unwrap_or_default();
        Self { policy, ledger: Ledger::default(), now, running: Vec::new() }
    }

    fn run(&mut self, step: &Step) -> Result<(), String> {
        if let Some(at) = &step.at {
            self.now = at.parse().map_err(|e| format!("{e}"))?;
        }
        if let Some(after) = &step.after {
            let window = Window::parse(after).ok_or("bad `after`")?;
            self.now += window.length();
        }
        if step.ended {
            for receipt in self.running.drain(..) {
                self.ledger.settle(receipt);
            }
        }
        if let Some(owns) = &step.owns {
            self.own(owns, step.server.as_deref().unwrap_or("srv"))?;
        }
        if let Some(uri) = &step.resource {
            shown(step, self.policy.lists_resource(uri, self.now))?;
            return check(step, &self.policy.decide_resource(uri, self.now));
        }
        if let Some(name) = &step.prompt {
            shown(step, self.policy.lists_prompt(name, self.now))?;
            return check(step, &self.policy.decide_prompt(name, self.now));
        }
        if let Some(name) = &step.method {
            return check(step, &self.policy.decide_method(name, self.now));
        }
        for call in 0..step.times.unwrap_or(1) {
            self.call(step).map_err(|why| format!("call {}: {why}", call + 1))?;
        }
        Ok(())
    }

    fn own(&mut self, owns: &Owns, server: &str) -> Result<(), String> {
        let yielded = Yielded {
            server: owns.server.clone().unwrap_or_else(|| server.to_owned()),
            kind: owns.kind.clone(),
            value: owns.value.to_string(),
            keep: Window::DAY,
            shared: owns.shared,
            by_identity: owns.by_identity,
        };
        let got = self.ledger.own(&yielded, &owns.grant, owns.identity.as_deref(), self.now);
        let wanted = if owns.conflict { Ownership::Conflict } else { Ownership::Recorded };
        if got == wanted { Ok(()) } else { Err(format!("ownership {got:?}")) }
    }

    fn call(&mut self, step: &Step) -> Result<(), String> {
        let tool = step.tool.as_deref().ok_or("no tool")?;
        let server = step.server.as_deref().unwrap_or("srv");
        let arguments = match (&step.raw, &step.args) {
            (Some(raw), _) => raw.clone(),
            (None, Some(args)) => args.to_string(),
            (None, None) => "{}".to_owned(),
        };
        let class = match &step.class {
            Some(word) => Class::parse(word).ok_or("bad class")?,
            None => Class::by_name(tool),
        };
        let session = step.session.as_ref().map(|s| SessionFacts {
            kind: s.kind.as_deref(),
            infobase_name: s.infobase_name.as_deref(),
            host_id: s.host_id.as_deref(),
        });
        let call = Call {
            grant: step.grant.as_deref().unwrap_or("laptop"),
            identity: step.identity.as_deref().map(|name| Identity { name, groups: &step.groups }),
            client: step.client.as_deref(),
            session,
            agent_session: step.agent_session.as_deref(),
            target: step.target.as_deref().unwrap_or(""),
            fingerprint: step.fingerprint.as_deref().unwrap_or("f1").as_bytes(),
            arguments: (step.listed != Some(true)).then_some(arguments.as_str()),
            approval: match step.approval.as_deref() {
                None => Approval::None,
                Some("pending") => Approval::Pending,
                Some("approved") => Approval::Approved,
                Some(other) => return Err(format!("bad approval {other}")),
            },
            ..Call::new(server, tool, class, "{}")
        };
        if let Some(constraints) = &step.exception {
            self.except(&call, constraints)?;
        }
        let verdict = decide(self.policy, &call, &self.ledger, self.now);
        let again = decide(self.policy, &call, &self.ledger, self.now);
        if verdict != again {
            return Err("two decisions differ".to_owned());
        }
        let hidden = is_hidden(self.policy, server, tool, class, self.now);
        if hidden != (verdict.effect == Effect::Hide) {
            return Err(format!("list says hidden {hidden}, call says {:?}", verdict.effect));
        }
        check(step, &verdict)?;
        if let Some(wanted) = &step.explained {
            let explained = explain(self.policy, &call, &self.ledger, self.now);
            let got = format!("{:?} {}", explained.effect, explained.rule).to_lowercase();
            if got.trim() != wanted {
                return Err(format!("explained {got}"));
            }
        }
        if verdict.effect == Effect::Allow {
            let receipt = self
                .ledger
                .admit(&verdict.reservations, self.now)
                .map_err(|e| format!("allowed, but no room: {e:?}"))?;
            if step.unsent {
                self.ledger.give_back(receipt);
            } else if step.running {
                self.running.push(receipt);
            } else {
                self.ledger.settle(receipt);
            }
        }
        Ok(())
    }

    fn except(&mut self, call: &Call<'_>, constraints: &str) -> Result<(), String> {
        let facts = ExceptionFacts {
            id: "e1".to_owned(),
            grant: "laptop".to_owned(),
            server: call.server.to_owned(),
            session: call.target.to_owned(),
            tool: "pay".to_owned(),
            fingerprint: b"f1".to_vec(),
            policy_hash: self.policy.hash().to_owned(),
            question: Question { people: 1, ..Question::default() },
            expires: self.now + SignedDuration::from_hours(1),
        };
        let exception = Exception::new(facts, constraints).map_err(|e| format!("{e:?}"))?;
        self.ledger.except(exception);
        Ok(())
    }
}

/// Compares a verdict with what a step expects.
fn shown(step: &Step, got: bool) -> Result<(), String> {
    match step.shown {
        Some(wanted) if wanted != got => Err(format!("expected shown {wanted}, got {got}")),
        _ => Ok(()),
    }
}

fn check(step: &Step, verdict: &Verdict) -> Result<(), String> {
    let code = verdict.refusal.map(toolgate_policy::Refusal::as_str).unwrap_or_default();
    let rule = verdict.rule.as_deref().unwrap_or_default();
    let got = format!("{:?} {code} {rule}", verdict.effect).to_lowercase();
    let wrong = |what: &str, got: &str| Err(format!("{what}; got {got} — {}", verdict.message));
    if let Some(wanted) = &step.is {
        let mut words = wanted.splitn(2, ' ');
        let effect = words.next().unwrap_or_default();
        let rest = words.next().unwrap_or_default();
        let (wanted_code, wanted_rule) = match rest.split_once(' ') {
            Some((code @ ("rate_limited" | "policy_denied"), rule)) => (code, rule),
            _ if matches!(rest, "rate_limited" | "policy_denied") => (rest, ""),
            _ => ("", rest),
        };
        let fits = got.split(' ').next() == Some(effect)
            && (wanted_code.is_empty() || wanted_code == code)
            && (wanted_rule.is_empty() || wanted_rule == rule);
        if !fits {
            return wrong(&format!("expected {wanted}"), &got);
        }
    }
    if let Some(says) = &step.says
        && !verdict.message.contains(says.as_str())
    {
        return wrong(&format!("expected to say `{says}`"), &got);
    }
    if step.retry.is_some() && step.retry != verdict.retry_after {
        return wrong("wrong retry", &format!("{:?}", verdict.retry_after));
    }
    if let Some(wanted) = &step.shadow {
        let got = verdict.shadow.as_ref().map_or_else(
            || "none".to_owned(),
            |s| format!("{:?}", s.effect).to_lowercase() + " " + &s.rule,
        );
        if &got != wanted {
            return wrong(&format!("expected shadow {wanted}"), &got);
        }
    }
    if let Some(wanted) = &step.rules {
        let got: Vec<String> = verdict
            .rules
            .iter()
            .map(|c| format!("{} {}", c.rule, format!("{:?}", c.effect).to_lowercase()))
            .collect();
        if &got != wanted {
            return wrong("wrong rules", &format!("{got:?}"));
        }
    }
    if let Some(wanted) = &step.takes {
        let got: Vec<&str> = verdict.reservations.iter().map(|r| r.counter.as_str()).collect();
        if &got != wanted {
            return wrong("wrong reservations", &format!("{got:?}"));
        }
    }
    if let Some(wanted) = &step.hold {
        let got = verdict.hold.as_ref().map_or_else(String::new, |h| {
            format!(
                "people={} wait={} expires={} approvers={}{}",
                h.people,
                h.wait.map_or(0, Window::as_seconds),
                h.expires.as_seconds(),
                h.approvers.join(","),
                if h.no_common_group { " nobody" } else { "" }
            )
        });
        if &got != wanted {
            return wrong("wrong hold", &got);
        }
    }
    Ok(())
}
