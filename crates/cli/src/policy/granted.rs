//! What the policy of a grant makes of a call, with what the grant has used: asked of the running
//! gateway, or read from the data folder while none runs.
//!
//! Invariant: nothing is written and nothing is counted.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use http::Method;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_control::offline;
use toolgate_policy::{
    Amount, Call, Class, Effect, ExplainedRule, Explanation, Identity, Known, LimitState, Policy,
    SessionFacts, UNUSED, Usage, Verdict, explain, limits,
};
use toolgate_session::Reach;

use super::resolved::{Folder, Found, Reached, Resolved};
use super::source::Source;
use crate::admin_client::{AdminClient, part};
use crate::args::ExplainArgs;
use crate::data::{find_data, is_announced};
use crate::suggest::nearest;

/// An explanation, and the document it is of.
pub(super) struct Granted {
    pub(super) source: Source,
    pub(super) explanation: Explanation,
    pub(super) limits: Vec<LimitState>,
    pub(super) shadow: bool,
    pub(super) resolved: Resolved,
}

/// A call of a grant that is explained.
pub(super) struct GrantCall<'a> {
    pub(super) grant: &'a str,
    pub(super) server: Option<&'a str>,
    pub(super) tool: &'a str,
    pub(super) args: &'a ExplainArgs,
}

/// What the gateway is asked.
#[derive(Serialize)]
struct Question<'a> {
    grant: &'a str,
    server: Option<&'a str>,
    tool: &'a str,
    arguments: &'a RawValue,
    at: Option<String>,
    class: Option<Class>,
    client: Option<&'a str>,
    session: Session<'a>,
}

#[derive(Serialize)]
struct Session<'a> {
    kind: Option<&'a str>,
    infobase_name: Option<&'a str>,
    host_id: Option<&'a str>,
}

impl GrantCall<'_> {
    /// Asks the running gateway, or reads the data folder.
    pub(super) fn explain(&self) -> anyhow::Result<Granted> {
        let admin = self.args.gateway();
        let folder = find_data(admin.data.data.as_deref(), admin.data.config.as_deref())?;
        if admin.admin.is_some() || is_announced(&folder) {
            self.of_gateway(&AdminClient::new(&admin)?)
        } else {
            self.of_folder(&folder)
        }
    }

    fn of_gateway(&self, client: &AdminClient) -> anyhow::Result<Granted> {
        let grants = client.list("/api/v1/grants")?;
        let text = |item: &Value, key: &str| item.get(key)?.as_str().map(str::to_owned);
        let is_it = |item: &&Value| {
            ["id", "label"].iter().any(|key| text(item, key).as_deref() == Some(self.grant))
        };
        let labels = || grants.iter().filter_map(|item| item.get("label")?.as_str());
        let grant = grants.iter().find(is_it).ok_or_else(|| self.unknown(labels()))?;
        if text(grant, "revoked").is_some() {
            return Err(self.revoked());
        }
        let Some(policy) = text(grant, "policy") else { return Ok(self.without_policy()) };
        let path = format!("/api/v1/policies/{}", part(&policy));
        let document = text(&client.get(&path)?, "document").unwrap_or_default();
        let path = format!("{path}/explain");
        let answer = client.send_text(&Method::POST, &path, self.question()?)?;
        let (explanation, limits) = read(&answer)
            .context("the gateway answered with something that is not an explanation")?;
        let shadow = Policy::load(&policy, &document, &Known::default());
        let shadow = shadow.policy.is_some_and(|policy| policy.is_shadow(self.now()));
        let source = Source { file: policy, text: document };
        let resolved = Resolved::read(&answer);
        Ok(Granted { source, explanation, limits, shadow, resolved })
    }

    /// The question to the gateway; the arguments as they were typed.
    fn question(&self) -> anyhow::Result<String> {
        let args = self.args;
        Ok(serde_json::to_string(&Question {
            grant: self.grant,
            server: self.server,
            tool: self.tool,
            arguments: serde_json::from_str(&args.args)?,
            at: args.at.map(|at| at.to_string()),
            class: args.class,
            client: args.client.as_deref(),
            session: Session {
                kind: args.session_kind.as_deref(),
                infobase_name: args.session_infobase.as_deref(),
                host_id: args.session_host.as_deref(),
            },
        })?)
    }

    fn of_folder(&self, path: &Path) -> anyhow::Result<Granted> {
        let mut folder = Folder::read(path, self.args.config.as_deref())?;
        let known = offline::grant(&folder.file, &folder.snapshot, &folder.servers, self.grant);
        let known = known?.ok_or_else(|| {
            let of_file = folder.file.config.grants.iter().map(|grant| grant.label.as_str());
            let kept = folder.snapshot.grants.iter().map(|grant| &*grant.label);
            self.unknown(of_file.chain(kept))
        })?;
        if known.revoked {
            return Err(self.revoked());
        }
        let Some((in_force, document)) = known.policy.clone() else {
            return Ok(self.without_policy());
        };
        let facts = SessionFacts {
            kind: self.args.session_kind.as_deref(),
            infobase_name: self.args.session_infobase.as_deref(),
            host_id: self.args.session_host.as_deref(),
        };
        let sessions = Reach::clone(&known.sessions);
        let reached = Reached { servers: known.servers.as_deref(), sessions };
        let Found { resolved, class, aliases } = folder.find(self.server, self.tool, &reached);
        let class = self.args.class.unwrap_or(class);
        let identity = known.identity.as_deref();
        let call = Call {
            grant: &known.label,
            identity: identity.map(|name| Identity { name, groups: &known.groups }),
            client: self.args.client.as_deref(),
            session: Some(facts),
            aliases: &aliases,
            ..Call::new(&resolved.server, &resolved.tool, class, &self.args.args)
        };
        let policy = &in_force.policy;
        let explain = |usage: &dyn Usage, now: Timestamp| {
            let now = self.args.at.unwrap_or(now);
            let explanation = explain(policy, &call, usage, now);
            (explanation, limits(policy, &call, usage, now), policy.is_shadow(now))
        };
        let unreadable = || format!("the data folder `{}` cannot be read", path.display());
        let (explanation, limits, shadow) = match &mut folder.store {
            Some(store) => store.read_usage(self.now(), explain).with_context(unreadable)?,
            None => explain(&UNUSED, self.now()),
        };
        let source = Source { file: policy.name().to_owned(), text: document };
        Ok(Granted { source, explanation, limits, shadow, resolved })
    }

    fn now(&self) -> Timestamp {
        self.args.at.unwrap_or_else(Timestamp::now)
    }

    /// Without a policy every call is denied.
    fn without_policy(&self) -> Granted {
        let verdict = Verdict::no_policy(self.tool);
        let rule = verdict.rule.map(|rule| rule.to_string()).unwrap_or_default();
        let class = self.args.class.unwrap_or_else(|| Class::by_name(self.tool));
        let rules = vec![ExplainedRule { rule: rule.clone(), effect: verdict.effect }];
        let (effect, message) = (verdict.effect, verdict.message);
        let explanation = Explanation { effect, rule, message, rules, class };
        let source = Source { file: "(no policy)".to_owned(), text: String::new() };
        let resolved = Resolved { tool: self.tool.to_owned(), ..Resolved::default() };
        Granted { source, explanation, limits: Vec::new(), shadow: false, resolved }
    }

    fn unknown<'n>(&self, labels: impl IntoIterator<Item = &'n str>) -> anyhow::Error {
        let hint = nearest(self.grant, labels).map_or_else(
            || "see `toolgate grant list`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        anyhow!("there is no grant `{}`; {hint}", self.grant)
    }

    fn revoked(&self) -> anyhow::Error {
        anyhow!("the grant `{}` is revoked: every call of it is refused", self.grant)
    }
}

/// What the gateway explains.
fn read(answer: &Value) -> anyhow::Result<(Explanation, Vec<LimitState>)> {
    let text = |of: &Value, key: &str| match of.get(key).and_then(Value::as_str) {
        Some(text) => Ok(text.to_owned()),
        None => bail!("there is no `{key}`"),
    };
    let list = |key: &str| answer.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let rule = |item: &Value| {
        anyhow::Ok(ExplainedRule { rule: text(item, "rule")?, effect: effect(item)? })
    };
    let amount = |item: &Value, key: &str| {
        let number = item.get(key).map(Value::to_string).unwrap_or_default();
        Amount::parse(&number).map_err(|_| anyhow!("`{key}` is not an amount"))
    };
    let limit = |item: &Value| {
        anyhow::Ok(LimitState {
            counter: text(item, "counter")?,
            used: amount(item, "used")?,
            max: amount(item, "max")?,
            window: text(item, "window")?,
            resets_at: text(item, "resets_at").ok().and_then(|at| at.parse().ok()),
        })
    };
    let explanation = Explanation {
        effect: effect(answer)?,
        rule: text(answer, "rule")?,
        message: text(answer, "message")?,
        rules: list("rules").iter().map(rule).collect::<anyhow::Result<_>>()?,
        class: Class::parse(&text(answer, "class")?).unwrap_or_default(),
    };
    Ok((explanation, list("limits").iter().map(limit).collect::<anyhow::Result<_>>()?))
}

fn effect(of: &Value) -> anyhow::Result<Effect> {
    let word = of.get("effect").and_then(Value::as_str).unwrap_or_default();
    match word {
        "allow" => Ok(Effect::Allow),
        "deny" => Ok(Effect::Deny),
        "hide" => Ok(Effect::Hide),
        "hold" => Ok(Effect::Hold),
        _ => bail!("`{word}` is not an effect"),
    }
}
