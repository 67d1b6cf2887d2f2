//! `toolgate policy explain`: what a policy makes of one call, and every rule that took part.

use jiff::Timestamp;
use serde::Serialize;
use toolgate_policy::{
    Call, Class, Effect, Explanation, Identity, Known, LimitState, RECOMMENDED, SessionFacts,
    UNUSED, explain, limits,
};

use super::granted::{self, Granted};
use super::problems;
use super::resolved::{Folder, Found, Reached};
use super::source::Source;
use super::test::place;
use crate::admin_client::AdminClient;
use crate::args::{ExplainArgs, ExplainOutput};
use crate::data::{find_data, is_announced};
use crate::exit::Done;
use crate::print;

pub(super) fn run(args: &ExplainArgs) -> anyhow::Result<Done> {
    if let Some(grant) = &args.of_grant {
        return of_grant(args, grant);
    }
    let source = match &args.policy {
        Some(path) => Source::read(path)?,
        None => Source { file: "recommended".to_owned(), text: RECOMMENDED.to_owned() },
    };
    let named = named(args)?;
    let asked = match &named {
        Some((found, _)) => ExplainedCall::found(args, found),
        None => ExplainedCall::new(args),
    };
    // A key such as `zulip__close` means a server only if there is one of that name.
    let servers = match &named {
        Some((_, servers)) => servers.clone(),
        None => vec![asked.server.to_owned()],
    };
    let known = Known { servers, ..Known::default() };
    let loaded = source.load(&known);
    let Some(policy) = loaded.policy else {
        problems::refuse(&source, &loaded.problems);
        return Ok(Done::Finding);
    };
    let now = args.at.unwrap_or_else(Timestamp::now);
    let aliases = named.as_ref().map(|(found, _)| &*found.aliases).unwrap_or_default();
    let call = Call { aliases, ..asked.call(args) };
    let explanation = explain(&policy, &call, &UNUSED, now);
    let unknown = named.as_ref().and_then(|(found, _)| found.resolved.unknown.as_deref());
    print::out(&match args.output {
        ExplainOutput::Json => as_json(explanation, unknown)?,
        ExplainOutput::Text => {
            let limits = limits(&policy, &call, &UNUSED, now);
            let limits: Vec<String> = limits.iter().map(line_of).collect();
            let story = asked.story(&source, &explanation, &limits, policy.is_shadow(now));
            let (_, tool) = server_and_tool(args);
            format!("{}{story}", unknown.map(|names| no_such_tool(tool, names)).unwrap_or_default())
        }
    });
    Ok(Done::Ok)
}

/// The tool that the name means for the gateway or the data folder that was named, and the servers
/// of that; `None` if none was named.
fn named(args: &ExplainArgs) -> anyhow::Result<Option<(Found, Vec<String>)>> {
    if args.data.is_none() && args.admin.is_none() {
        return Ok(None);
    }
    let admin = args.gateway();
    let (server, tool) = server_and_tool(args);
    let path = find_data(admin.data.data.as_deref(), admin.data.config.as_deref())?;
    if admin.admin.is_some() || is_announced(&path) {
        return Found::of_gateway(&AdminClient::new(&admin)?, server, tool).map(Some);
    }
    let folder = Folder::read(&path, admin.data.config.as_deref())?;
    let found = folder.find(server, tool, &Reached::default());
    Ok(Some((found, folder.servers)))
}

/// The same under the policy of a grant and with what that has used.
fn of_grant(args: &ExplainArgs, grant: &str) -> anyhow::Result<Done> {
    let (server, tool) = server_and_tool(args);
    let granted = granted::GrantCall { grant, server, tool, args }.explain()?;
    let Granted { source, explanation, limits, shadow, resolved } = granted;
    let unknown = resolved.unknown.as_deref();
    print::out(&match args.output {
        ExplainOutput::Json => as_json(explanation, unknown)?,
        ExplainOutput::Text => {
            let server = &resolved.server;
            let how = match (&args.class, unknown) {
                (Some(_), _) => AS_GIVEN,
                (None, Some(_)) => BY_NAME,
                (None, None) => "",
            };
            let limits: Vec<String> = limits.iter().map(used_of).collect();
            let asked =
                ExplainedCall { server, tool: &resolved.tool, class: explanation.class, how };
            let story = asked.story(&source, &explanation, &limits, shadow);
            format!("{}{story}", unknown.map(|names| no_such_tool(tool, names)).unwrap_or_default())
        }
    });
    Ok(Done::Ok)
}

/// The explain object, as one line.
fn as_json(explanation: Explanation, unknown: Option<&[String]>) -> serde_json::Result<String> {
    let suggestions = unknown.map(<[String]>::to_vec);
    let json =
        JsonExplanation { explanation, unknown: unknown.is_some().then_some(true), suggestions };
    Ok(format!("{}\n", serde_json::to_string(&json)?))
}

/// An explanation, and whether there is such a tool.
#[derive(Serialize)]
struct JsonExplanation {
    #[serde(flatten)]
    explanation: Explanation,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestions: Option<Vec<String>>,
}

fn no_such_tool(tool: &str, similar: &[String]) -> String {
    let hint = match similar {
        [] => "see `toolgate tool list`".to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("did you mean {}?", names.join(" or "))
        }
    };
    let text =
        format!("no tool `{tool}` can be called; {hint}\nthe policy's decision on the name:\n\n");
    toolgate_control::visible(&text)
}

/// As in a document's `tests`: `server/tool` names both unless the server is named apart.
fn server_and_tool(args: &ExplainArgs) -> (Option<&str>, &str) {
    match (&args.server, args.tool.split_once('/')) {
        (Some(server), _) => (Some(server), &args.tool),
        (None, Some((server, tool))) => (Some(server), tool),
        (None, None) => (None, &args.tool),
    }
}

const AS_GIVEN: &str = ", as given";
const BY_NAME: &str = ", by its name";

/// The call that is explained.
struct ExplainedCall<'a> {
    /// Empty if the name belongs to no server.
    server: &'a str,
    tool: &'a str,
    class: Class,
    /// How the class is known, if not from the gateway.
    how: &'static str,
}

impl<'a> ExplainedCall<'a> {
    fn new(args: &'a ExplainArgs) -> Self {
        let (server, tool) = server_and_tool(args);
        let class = args.class.unwrap_or_else(|| Class::by_name(tool));
        let server = server.unwrap_or("test");
        let how = if args.class.is_none() { BY_NAME } else { AS_GIVEN };
        Self { server, tool, class, how }
    }

    fn found(args: &'a ExplainArgs, found: &'a Found) -> Self {
        let Found { resolved, class, .. } = found;
        let class = args.class.unwrap_or(*class);
        let how = match (&args.class, &resolved.unknown) {
            (Some(_), _) => AS_GIVEN,
            (None, Some(_)) => BY_NAME,
            (None, None) => "",
        };
        Self { server: &resolved.server, tool: &resolved.tool, class, how }
    }

    fn call(&self, args: &'a ExplainArgs) -> Call<'a> {
        let identity = args.identity.as_deref();
        let facts = SessionFacts {
            kind: args.session_kind.as_deref(),
            infobase_name: args.session_infobase.as_deref(),
            host_id: args.session_host.as_deref(),
        };
        Call {
            grant: &args.label,
            identity: identity.map(|name| Identity { name, groups: &args.groups }),
            client: args.client.as_deref(),
            session: Some(facts),
            agent_session: Some("test"),
            ..Call::new(self.server, self.tool, self.class, &args.args)
        }
    }

    /// For people: what happens, in which words, by which rules, and what it would use up.
    fn story(
        &self,
        source: &Source,
        explanation: &Explanation,
        limits: &[String],
        shadow: bool,
    ) -> String {
        let Self { server, tool, how, .. } = self;
        let class = self.class.as_str();
        let word = word(explanation.effect);
        let on_server = if server.is_empty() { String::new() } else { format!(" on `{server}`") };
        let mut lines = vec![format!("`{tool}`{on_server} (class {class}{how}) is {word}\n")];
        if shadow {
            lines.push(
                "the document is in shadow: this is recorded, and every call passes\n".into(),
            );
        }
        if !explanation.message.is_empty() {
            lines.push("\nthe agent reads\n".into());
            lines.extend(explanation.message.lines().map(|line| format!("  {line}\n")));
        }
        let head = match (explanation.rules.is_empty(), explanation.effect) {
            (true, Effect::Allow)
                if Call::new(server, tool, self.class, "{}").is_my_permissions() =>
            {
                "no rule applies; this tool is allowed unless a policy denies or hides it by name"
            }
            (true, Effect::Allow) => "no rule applies; `default: allow` lets it through",
            _ => "rules that took part",
        };
        lines.push(format!("\n{head}\n"));
        for rule in &explanation.rules {
            let (rule, word) = (&rule.rule, effect(rule.effect));
            let decides = if *rule == explanation.rule { ", decides" } else { "" };
            lines.push(format!("  {word:<6}{rule}{}{decides}\n", place(source, rule)));
        }
        if !limits.is_empty() {
            lines.push("\nlimits of this call\n".into());
            lines.extend_from_slice(limits);
        }
        toolgate_control::visible(&lines.concat())
    }
}

fn line_of(limit: &LimitState) -> String {
    let LimitState { counter, max, window, .. } = limit;
    match limit.resets_at {
        Some(at) => format!("  {counter}: {max} per {window}, resets at {at}\n"),
        None => format!("  {counter}: {max} in any {window}\n"),
    }
}

fn used_of(limit: &LimitState) -> String {
    let LimitState { counter, used, max, window, .. } = limit;
    match limit.resets_at {
        Some(at) => format!("  {counter}: {used} of {max} per {window} used, resets at {at}\n"),
        None => format!("  {counter}: {used} of {max} used in the last {window}\n"),
    }
}

fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allowed",
        Effect::Hold => "held for a person",
        Effect::Deny => "denied",
        Effect::Hide => "hidden",
    }
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Hold => "hold",
        Effect::Deny => "deny",
        Effect::Hide => "hide",
    }
}
