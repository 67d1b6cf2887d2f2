//! `toolgate policy explain`: what a policy makes of one call, and every rule that took part.

use anyhow::bail;
use jiff::Timestamp;
use toolgate_policy::{
    Call, Class, Effect, Explanation, Identity, Known, LimitState, RECOMMENDED, SessionFacts,
    Unused, explain, limits,
};

use super::problems;
use super::source::Source;
use super::test::place;
use crate::args::{ExplainArgs, ExplainOutput};
use crate::exit::Done;
use crate::print;

pub(super) fn run(args: &ExplainArgs) -> anyhow::Result<Done> {
    if let Some(grant) = &args.of_grant {
        bail!(
            "the policy of the grant `{grant}` cannot be had: this needs a running gateway with \
             grants, which this version does not have; name a document with `--policy FILE`"
        );
    }
    let source = match &args.policy {
        Some(path) => Source::read(path)?,
        None => Source { file: "recommended".to_owned(), text: RECOMMENDED.to_owned() },
    };
    let asked = Asked::new(args);
    // A key such as `zulip__close` means a server only if there is one of that name.
    let known = Known { servers: vec![asked.server.to_owned()], ..Known::default() };
    let loaded = source.load(&known);
    let Some(policy) = loaded.policy else {
        problems::refuse(&source, &loaded.problems);
        return Ok(Done::Finding);
    };
    let now = args.at.unwrap_or_else(Timestamp::now);
    let call = asked.call(args);
    let explanation = explain(&policy, &call, &Unused, now);
    print::out(&match args.output {
        ExplainOutput::Json => format!("{}\n", serde_json::to_string(&explanation)?),
        ExplainOutput::Text => {
            let limits = limits(&policy, &call, &Unused, now);
            asked.story(&source, &explanation, &limits, policy.is_shadow(now))
        }
    });
    Ok(Done::Ok)
}

/// The call that is asked about.
struct Asked<'a> {
    server: &'a str,
    tool: &'a str,
    class: Class,
    /// Nobody said the class.
    by_name: bool,
}

impl<'a> Asked<'a> {
    /// As in a document's `tests`: `server/tool` names both unless the server is named apart.
    fn new(args: &'a ExplainArgs) -> Self {
        let (server, tool) = match (&args.server, args.tool.split_once('/')) {
            (Some(server), _) => (server.as_str(), args.tool.as_str()),
            (None, Some((server, tool))) => (server, tool),
            (None, None) => ("test", args.tool.as_str()),
        };
        let class = args.class.unwrap_or_else(|| Class::by_name(tool));
        Self { server, tool, class, by_name: args.class.is_none() }
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
        limits: &[LimitState],
        shadow: bool,
    ) -> String {
        let Self { server, tool, .. } = self;
        let class = self.class.as_str();
        let how = if self.by_name { "by its name" } else { "as you say" };
        let word = word(explanation.effect);
        let mut lines = vec![format!("`{tool}` on `{server}` (class {class}, {how}) is {word}\n")];
        if shadow {
            lines.push(
                "the document is in shadow: this is recorded, and every call passes\n".into(),
            );
        }
        if !explanation.message.is_empty() {
            lines.push("\nthe agent reads\n".into());
            lines.extend(explanation.message.lines().map(|line| format!("  {line}\n")));
        }
        let none = explanation.rules.is_empty();
        let head = if none { "no rule speaks against it" } else { "rules that took part" };
        lines.push(format!("\n{head}\n"));
        for rule in &explanation.rules {
            let (rule, word) = (&rule.rule, effect(rule.effect));
            let decides = if *rule == explanation.rule { ", decides" } else { "" };
            lines.push(format!("  {word:<6}{rule}{}{decides}\n", place(source, rule)));
        }
        if !limits.is_empty() {
            lines.push("\nlimits that count it\n".into());
            lines.extend(limits.iter().map(line_of));
        }
        problems::visible(&lines.concat())
    }
}

fn line_of(limit: &LimitState) -> String {
    let LimitState { counter, max, window, .. } = limit;
    match limit.resets_at {
        Some(at) => format!("  {counter}: {max} in a window ({window}), the next begins {at}\n"),
        None => format!("  {counter}: {max} in any {window}\n"),
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
