//! Imports Intercept files: a canonical document, and a list of everything that changes.
//!
//! The rules stay Intercept `rules`, with Intercept's semantics; everything around them is converted.
//! Nothing is dropped silently: a key without a counterpart is rejected.

use crate::{
    Code, Known, Policy, Problem, Span,
    problem::Findings,
    syntax::{self, Member, Node, Value, type_name},
};

/// An imported document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The document, as YAML.
    pub document: String,
    /// The differences in meaning, one sentence each.
    pub changes: Vec<String>,
}

/// Converts an Intercept file into a policy.
pub fn import_intercept(source: &str) -> Result<Imported, Vec<Problem>> {
    let mut findings = Findings::new(source);
    let Some(root) = syntax::parse(source, &mut findings) else { return Err(findings.finish()) };
    let mut import = Import { findings: &mut findings, changes: Vec::new(), out: String::new() };
    import.document(&root);
    let Import { changes, out, .. } = import;
    if findings.has_errors() {
        return Err(findings.finish());
    }
    // The result must be valid; problems in it are problems of the original.
    let loaded = Policy::load("imported", &out, &Known::default());
    if loaded.policy.is_none() {
        return Err(relocate(source, loaded.problems));
    }
    Ok(Imported { document: out, changes })
}

/// Problems of the converted document, located in the original as well as possible.
fn relocate(source: &str, problems: Vec<Problem>) -> Vec<Problem> {
    let findings = Findings::new(source);
    problems
        .into_iter()
        .map(|mut problem| {
            let word = problem.message.split('`').nth(1).unwrap_or_default();
            let at = if word.is_empty() { 0 } else { source.find(word).unwrap_or(0) };
            (problem.line, problem.column) = findings.position(at);
            problem.span = Span {
                start: at,
                end: at + word.len(),
                line: problem.line,
                column: problem.column,
            };
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

    fn members<'n>(&mut self, node: &'n Node, what: &str, known: &[&'static str]) -> &'n [Member] {
        let Value::Map(members) = node.value() else {
            self.findings.add(
                Code::WrongType,
                node.span,
                format!("{what} is {}, not a mapping", type_name(node)),
                "this does not look like an Intercept file",
            );
            return &[];
        };
        let is_known = |key: &str| known.contains(&key);
        for Member { key, .. } in members.iter().filter(|m| !is_known(&m.key.text)) {
            self.findings.add(
                Code::UnknownKey,
                key.span,
                format!("unknown key `{}` in {what}", key.text),
                "Intercept ignores it, so it protects nothing: correct or remove it",
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
        let get = |name: &str| members.iter().find(|m| m.key.text == name).map(|m| &m.value);
        self.line(0, "version: \"1\"");
        if let Some(version) = get("version")
            && !matches!(version.value(), Value::Text(s) if s == "1")
        {
            let got = version.to_json();
            self.findings.add(
                Code::Version,
                version.span,
                format!("version must be \"1\", got `{got}`"),
                "only version \"1\" of Intercept files is supported",
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
            self.change("`default: allow` is written out; Intercept assumes it if it is absent");
        }
        if let Some(hide) = get("hide") {
            let text = hide.to_json();
            self.line(0, &format!("hide: {text}"));
        }
        if get("approvals").is_some() {
            self.change(
                "`approvals` is dropped: webhooks and their signatures are configured in toolgate.yaml",
            );
        }
        if let Some(tools) = get("tools") {
            self.tools(tools);
        }
        self.change("denials start with `[POLICY DENIED]` instead of Intercept's prefix");
    }

    fn tools(&mut self, node: &Node) {
        let Value::Map(members) = node.value() else {
            self.members(node, "tools", &[]);
            return;
        };
        self.line(0, if members.is_empty() { "tools: {}" } else { "tools:" });
        for Member { key, value: entry } in members {
            let name = toolgate_json::quote(&key.text);
            self.line(1, &format!("{name}:"));
            self.entry(&key.text, entry);
        }
    }

    fn entry(&mut self, tool: &str, node: &Node) {
        let members = self.members(node, &format!("`{tool}`"), &ENTRY);
        let mut window = None;
        let mut rules: Vec<String> = Vec::new();
        for Member { key, value } in members {
            match key.text.as_str() {
                "idempotency_window" => window = Some(value.to_json()),
                "spend" => self.spend(key.span),
                "rules" => {
                    let Value::List(items) = value.value() else {
                        self.findings.add(
                            Code::WrongType,
                            value.span,
                            format!("`rules` is {}, not a list", type_name(value)),
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
            "`spend` is not supported: toolgate does not read prices from results",
            "limit the argument that carries the amount, with `limits` and `increment_from`",
        );
    }

    /// The rule as flow YAML, and its repeat window.
    fn rule(&mut self, tool: &str, node: &Node) -> (Option<String>, Option<String>) {
        let members = self.members(node, "a rule", &RULE);
        let mut window = None;
        let mut kept = Vec::new();
        for Member { key, value } in members {
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
                    self.change("`approval_timeout` becomes `expires` of the approval");
                }
                "action" if matches!(value.value(), Value::Text(s) if s == "require_approval") => {
                    self.change(
                        "a `require_approval` rule holds the call for a person, after whose approval it continues; \
                         no JSON-RPC error -32003 is sent",
                    );
                }
                "state" | "rate_limit" => self.counted(tool),
                _ => {}
            }
            kept.push(Member { key: key.clone(), value: value.clone() });
        }
        let only_window = kept.iter().all(|member| member.key.text == "name");
        if only_window && window.is_some() {
            return (None, window);
        }
        let rule = Node::map(kept, node.span);
        (Some(rule.to_json()), window)
    }

    fn counted(&mut self, tool: &str) {
        let text = if tool == "*" {
            "counters of `\"*\"` count the calls of all tools and all grants"
        } else {
            "counters of `rules` belong to their tool and count the calls of all grants"
        };
        self.change(text);
        self.change(
            "counters are returned only if a call was never sent, not if the server answers with an error",
        );
    }
}

#[cfg(test)]
mod tests;
