//! `toolgate preflight`: whether tools can be called, as an exit code.
//!
//! Invariant: nothing is called and nothing is counted.

mod stops;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_control::visible;
use toolgate_policy::Effect;

use super::granted::{GrantCall, Granted};
use crate::admin_client::AdminClient;
use crate::args::{AdminArgs, ExplainArgs, ExplainOutput, OneOutput, PreflightArgs};
use crate::data::{find_data, is_announced};
use crate::exit::Done;
use crate::listing::text;
use crate::{print, tool};

/// Shown instead of a rule.
const FROZEN: &str = "(frozen)";

/// What would happen to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outlook {
    Callable,
    Denied,
    Held,
    Unknown,
    Quarantined,
}

impl Outlook {
    fn code(self) -> u8 {
        match self {
            Self::Callable => 0,
            Self::Denied => 10,
            Self::Held => 11,
            Self::Unknown | Self::Quarantined => 12,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Callable => "callable",
            Self::Denied => "denied",
            Self::Held => "held",
            Self::Unknown => "unknown",
            Self::Quarantined => "quarantined",
        }
    }
}

/// One tool, what would happen, and the rule.
struct Verdict<'a> {
    tool: &'a str,
    /// Empty if it is not known.
    server: String,
    outlook: Outlook,
    rule: String,
}

pub(crate) fn run(args: &PreflightArgs) -> anyhow::Result<Done> {
    let mut verdicts = match &args.grant {
        Some(grant) => of_grant(args, grant)?,
        None => as_agent(args)?,
    };
    let (quarantined, stops) = (quarantined(args), stops::read(args)?);
    for verdict in &mut verdicts {
        if verdict.outlook != Outlook::Unknown && stops.stop(&verdict.server) {
            (verdict.outlook, verdict.rule) = (Outlook::Denied, FROZEN.to_owned());
        }
        if quarantined.iter().any(|name| name == verdict.tool) {
            verdict.outlook = Outlook::Quarantined;
        }
    }
    let code = verdicts.iter().map(|verdict| verdict.outlook.code()).max().unwrap_or_default();
    print::out(&match args.output {
        OneOutput::Json => {
            let tools: Vec<Value> = verdicts
                .iter()
                .map(|it| {
                    let (state, code) = (it.outlook.as_str(), it.outlook.code());
                    json!({"name": it.tool, "state": state, "rule": it.rule, "code": code})
                })
                .collect();
            format!("{}\n", json!({"ok": code == 0, "code": code, "tools": tools}))
        }
        OneOutput::Table => {
            let line = |it: &Verdict<'_>| {
                let state = it.outlook.as_str();
                visible(&format!("{state:<12} {}  {}", it.tool, it.rule)).trim_end().to_owned()
                    + "\n"
            };
            verdicts.iter().map(line).collect()
        }
    });
    Ok(if code == 0 { Done::Ok } else { Done::Code(code) })
}

/// Under the policy of a grant, with or without a running gateway.
fn of_grant<'a>(args: &'a PreflightArgs, grant: &str) -> anyhow::Result<Vec<Verdict<'a>>> {
    let verdict = |tool: &'a String| {
        let question = question(args, tool);
        let asked = GrantCall { grant, server: None, tool, args: &question };
        let Granted { explanation, shadow, resolved, .. } = asked.explain()?;
        let outlook = match explanation.effect {
            _ if resolved.unknown.is_some() => Outlook::Unknown,
            _ if shadow => Outlook::Callable,
            Effect::Allow => Outlook::Callable,
            Effect::Hold => Outlook::Held,
            Effect::Deny | Effect::Hide => Outlook::Denied,
        };
        Ok(Verdict { tool, server: resolved.server, outlook, rule: explanation.rule })
    };
    args.tools.iter().map(verdict).collect()
}

fn question(args: &PreflightArgs, tool: &str) -> ExplainArgs {
    ExplainArgs {
        policy: None,
        of_grant: args.grant.clone(),
        data: args.agent.data.data.clone(),
        admin: args.agent.admin.clone(),
        config: args.agent.data.config.clone(),
        tool: tool.to_owned(),
        args: args.args.clone(),
        server: None,
        class: None,
        label: String::new(),
        identity: None,
        groups: Vec::new(),
        client: None,
        session_kind: None,
        session_infobase: None,
        session_host: None,
        at: None,
        output: ExplainOutput::Json,
    }
}

fn admin(args: &PreflightArgs) -> AdminArgs {
    AdminArgs { admin: args.agent.admin.clone(), data: args.agent.data.clone() }
}

/// As the agent sees itself: `my_permissions` lists every tool that it may see.
fn as_agent(args: &PreflightArgs) -> anyhow::Result<Vec<Verdict<'_>>> {
    let none = RawValue::from_string("{}".to_owned())?;
    let result: Value =
        serde_json::from_str(tool::call_as(&args.agent, "my_permissions", &none)?.get())?;
    let code = result.pointer("/_meta/error_code").and_then(Value::as_str);
    let tools = result.pointer("/structuredContent/tools").and_then(Value::as_array);
    let shadow =
        result.pointer("/structuredContent/mode").and_then(Value::as_str) == Some("shadow");
    let verdict = |name: &'_ String| {
        let known =
            tools.into_iter().flatten().find(|tool| text(tool, "name") == Some(name.as_str()));
        let effect = known.and_then(|tool| text(tool, "effect"));
        let outlook = match effect {
            _ if code.is_some() => Outlook::Denied,
            Some(_) if shadow => Outlook::Callable,
            Some("allow") => Outlook::Callable,
            Some("hold") => Outlook::Held,
            Some(_) => Outlook::Denied,
            None => Outlook::Unknown,
        };
        let rule = known.and_then(|tool| text(tool, "rule")).or(code).unwrap_or_default();
        (outlook, rule.to_owned())
    };
    let verdicts = args.tools.iter().map(|tool| {
        let (outlook, rule) = verdict(tool);
        let server = tool.split_once("__").map(|(server, _)| server.to_owned());
        Verdict { tool, server: server.unwrap_or_default(), outlook, rule }
    });
    Ok(verdicts.collect())
}

/// Names of tools whose definition is not approved, as far as a gateway runs.
fn quarantined(args: &PreflightArgs) -> Vec<String> {
    let (admin, data) = (admin(args), &args.agent.data);
    let folder = find_data(data.data.as_deref(), data.config.as_deref()).ok();
    if admin.admin.is_none() && !folder.is_some_and(|folder| is_announced(&folder)) {
        return Vec::new();
    }
    // Without the right to list them, the call itself will be refused.
    let Ok(client) = AdminClient::new(&admin) else { return Vec::new() };
    let tools = client.list("/api/v1/tools").unwrap_or_default();
    let names = tools.iter().filter(|tool| text(tool, "state") == Some("quarantined"));
    let names = names.filter_map(|tool| {
        let (server, name) = (text(tool, "server")?, text(tool, "name")?);
        Some([name.to_owned(), format!("{server}__{name}")])
    });
    names.flatten().collect()
}
