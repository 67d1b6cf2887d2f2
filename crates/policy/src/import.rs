//! Import of Intercept files: a canonical document, and a list of everything that changes.
//!
//! The rules stay Intercept's `rules`, with Intercept's meaning; what surrounds them becomes our
//! language. Nothing is dropped silently: a key that has no counterpart is refused.

use crate::{
    Code, Known, Policy, Problem,
    node::{self, Key, Kind, Node},
    problem::{Findings, Span},
};

/// An imported document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The document, as YAML.
    pub document: String,
    /// What means something else than it did, one sentence each.
    pub changes: Vec<String>,
}

/// Turns an Intercept file into a document of ours.
pub fn import_intercept(source: &str) -> Result<Imported, Vec<Problem>> {
    let mut findings = Findings::new(source);
    let Some(root) = node::parse(source, &mut findings) else { return Err(findings.finish()) };
    let mut import = Import { findings: &mut findings, changes: Vec::new(), out: String::new() };
    import.document(&root);
    let Import { changes, out, .. } = import;
    if findings.has_errors() {
        return Err(findings.finish());
    }
    // What was written must be valid; problems in it are problems of the original.
    let loaded = Policy::load("imported", &out, &Known::default());
    if loaded.policy.is_none() {
        return Err(relocate(source, loaded.problems));
    }
    Ok(Imported { document: out, changes })
}

/// Problems of the written document, pointed at the original as well as that can be done.
fn relocate(source: &str, problems: Vec<Problem>) -> Vec<Problem> {
    let findings = Findings::new(source);
    problems
        .into_iter()
        .map(|mut problem| {
            let word = problem.message.split('`').nth(1).unwrap_or_default();
            let at = if word.is_empty() { 0 } else { source.find(word).unwrap_or(0) };
            (problem.line, problem.column) = findings.position(at);
            problem.span = Span { start: at, end: at + word.len() };
            problem
        })
        .collect()
}

struct Import<'f, 's> {
    findings: &'f mut Findings<'s>,
    changes: Vec<String>,
    out: String,
}

const TOP: [&str; 6] = ["version", "description", "default", "hide", "tools", "approvals"];
const ENTRY: [&str; 3] = ["rules", "idempotency_window", "spend"];
const RULE: [&str; 9] = [
    "name",
    "action",
    "on_deny",
    "conditions",
    "state",
    "rate_limit",
    "approval_timeout",
    "idempotency_window",
    "spend",
];

impl Import<'_, '_> {
    fn change(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.changes.contains(&text) {
            self.changes.push(text);
        }
    }

    fn members<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        known: &[&'static str],
    ) -> &'n [(Key, Node)] {
        let Kind::Map(members) = &node.kind else {
            self.findings.add(
                Code::WrongType,
                node.span,
                format!("{what} is {}, not a mapping", node.what()),
                "this does not look like an Intercept file",
            );
            return &[];
        };
        for (key, _) in members.iter().filter(|(key, _)| !known.contains(&key.text.as_str())) {
            self.findings.add(
                Code::UnknownKey,
                key.span,
                format!("unknown key `{}` in {what}", key.text),
                "Intercept ignores it, so it protects nothing: correct it or take it away",
            );
        }
        members
    }

    fn line(&mut self, indent: usize, text: &str) {
        for _ in 0..indent {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn document(&mut self, root: &Node) {
        let members = self.members(root, "the file", &TOP);
        let get = |name: &str| members.iter().find(|(k, _)| k.text == name).map(|(_, v)| v);
        self.line(0, "version: \"1\"");
        if let Some(version) = get("version")
            && !matches!(&version.kind, Kind::String(s) if s == "1")
        {
            let got = version.to_json();
            self.findings.add(
                Code::Version,
                version.span,
                format!("version must be \"1\", got `{got}`"),
                "only version \"1\" of Intercept's files is known",
            );
        }
        if let Some(description) = get("description") {
            let text = description.to_json();
            self.line(0, &format!("description: {text}"));
        }
        if let Some(default) = get("default") {
            let text = default.to_json();
            self.line(0, &format!("default: {text}"));
        } else {
            self.line(0, "default: allow");
            self.change("`default: allow` is written out: Intercept means it when it is left out");
        }
        if let Some(hide) = get("hide") {
            let text = hide.to_json();
            self.line(0, &format!("hide: {text}"));
        }
        if get("approvals").is_some() {
            self.change(
                "`approvals` is left out: webhooks and their signatures are set in toolgate.yaml",
            );
        }
        if let Some(tools) = get("tools") {
            self.tools(tools);
        }
        self.change("denials start with `[POLICY DENIED]` instead of Intercept's prefix");
    }

    fn tools(&mut self, node: &Node) {
        let Kind::Map(members) = &node.kind else {
            self.members(node, "tools", &[]);
            return;
        };
        self.line(0, if members.is_empty() { "tools: {}" } else { "tools:" });
        for (key, entry) in members {
            let name = Node { span: key.span, kind: Kind::String(key.text.clone()) }.to_json();
            self.line(1, &format!("{name}:"));
            self.entry(&key.text, entry);
        }
    }

    fn entry(&mut self, tool: &str, node: &Node) {
        let members = self.members(node, &format!("`{tool}`"), &ENTRY);
        let mut window = None;
        let mut rules: Vec<String> = Vec::new();
        for (key, value) in members {
            match key.text.as_str() {
                "idempotency_window" => window = Some(value.to_json()),
                "spend" => self.spend(key.span),
                "rules" => {
                    let Kind::List(items) = &value.kind else {
                        self.findings.add(
                            Code::WrongType,
                            value.span,
                            format!("`rules` is {}, not a list", value.what()),
                            "write a list of rules",
                        );
                        continue;
                    };
                    for item in items {
                        let (rule, seen) = self.rule(tool, item);
                        rules.extend(rule);
                        window = seen.or(window);
                    }
                }
                _ => {}
            }
        }
        if let Some(window) = &window {
            self.line(2, &format!("unless_seen_within: {window}"));
            self.change("`idempotency_window` becomes `unless_seen_within`, for each grant");
        }
        if rules.is_empty() {
            self.line(2, "rules: []");
            return;
        }
        self.line(2, "rules:");
        for rule in rules {
            self.line(3, &format!("- {rule}"));
        }
    }

    fn spend(&mut self, span: Span) {
        self.findings.add(
            Code::Spend,
            span,
            "`spend` is not supported: toolgate never reads prices out of a server's answers",
            "limit the argument that carries the amount, with `limits` and `increment_from`",
        );
    }

    /// The rule as flow YAML, and the repeat window it carried.
    fn rule(&mut self, tool: &str, node: &Node) -> (Option<String>, Option<String>) {
        let members = self.members(node, "a rule", &RULE);
        let mut window = None;
        let mut kept = Vec::new();
        for (key, value) in members {
            match key.text.as_str() {
                "idempotency_window" => {
                    window = Some(value.to_json());
                    continue;
                }
                "spend" => {
                    self.spend(key.span);
                    continue;
                }
                "approval_timeout" => {
                    self.change("`approval_timeout` is how long the approval can be answered");
                }
                "action" if matches!(&value.kind, Kind::String(s) if s == "require_approval") => {
                    self.change(
                        "a `require_approval` rule holds the call for a person and lets it go on; \
                         there is no JSON-RPC error -32003",
                    );
                }
                "state" | "rate_limit" => self.counted(tool),
                _ => {}
            }
            kept.push((key.clone(), value.clone()));
        }
        let only_window = kept.iter().all(|(key, _)| key.text == "name");
        if only_window && window.is_some() {
            return (None, window);
        }
        let rule = Node { span: node.span, kind: Kind::Map(kept) };
        (Some(rule.to_json()), window)
    }

    fn counted(&mut self, tool: &str) {
        let text = if tool == "*" {
            "counters of `\"*\"` count all tools and all grants together"
        } else {
            "counters of `rules` belong to their tool and count all grants together"
        };
        self.change(text);
        self.change(
            "nothing is given back when a server answers with an error, only when a call was never sent",
        );
    }
}

#[cfg(test)]
mod tests;
