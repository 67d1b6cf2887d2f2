//! Warnings about valid documents, and contradictions between entries.

use crate::{
    Class, Code, Known,
    index::Index,
    model::{
        Action, Condition, Document, Entry, Op, Operand, Predicate, RuleKind, Scope, Test, ToolKey,
    },
    problem::{Findings, nearest},
};

/// Checks a document that was lowered.
pub(crate) fn check(document: &Document, known: &Known, findings: &mut Findings<'_>) {
    let classes = document.classes.iter().map(|(_, entry)| entry);
    let tools = document.tools.iter().map(|(_, entry)| &**entry);
    for entry in document.all_tools.iter().chain(classes).chain(tools) {
        unreachable(entry, findings);
        session_scopes(entry, findings);
        regexes(entry, findings);
        constants(entry, findings);
    }
    hidden_with_limits(document, findings);
    without_effect(document, findings);
    for (key, entry) in &document.tools {
        names_nothing(document, key, entry, findings);
        dangerous_glob(key, entry, known, findings);
    }
    let keys = document.tools.iter().map(|(key, _)| key);
    keys.chain(&document.hide).for_each(|key| unknown_tool(key, known, findings));
}

/// Whether `wide` certainly matches everything that `narrow` does.
fn covers(wide: &ToolKey, narrow: &ToolKey) -> bool {
    let server = match (&wide.server, &narrow.server) {
        (None, _) => true,
        (Some(wide), Some(narrow)) => {
            wide.is_everything() || narrow.exact().is_some_and(|name| wide.matches(name))
        }
        (Some(wide), None) => wide.is_everything(),
    };
    let tool = match narrow.tool.exact() {
        Some(name) => wide.tool.matches(name),
        None => {
            wide.tool.is_everything()
                || wide.tool == narrow.tool
                || wide.tool.is_prefix_of(&narrow.tool)
        }
    };
    server && tool
}

fn hidden_with_limits(document: &Document, findings: &mut Findings<'_>) {
    let index = Index::new(&document.hide);
    for (key, entry) in &document.tools {
        let limited = !entry.limits.is_empty() || entry.concurrency.is_some();
        if !limited || document.hide.is_empty() {
            continue;
        }
        let hide = covering(&document.hide, &index, key);
        if let Some(hide) = hide {
            findings.add(
                Code::HiddenWithLimits,
                key.span,
                format!("`{}` has limits, but `hide` covers it with `{}`", key.text, hide.text),
                "remove it from `hide`, or remove the entry",
            );
        }
    }
}

/// The key among `keys` that covers `narrow`. Globs are compared with globs one by one, so their
/// number is capped.
fn covering<'k>(keys: &'k [ToolKey], index: &Index, narrow: &ToolKey) -> Option<&'k ToolKey> {
    match narrow.tool.exact() {
        Some(name) => index
            .candidates(name)
            .into_iter()
            .filter_map(|at| keys.get(at))
            .find(|wide| covers(wide, narrow)),
        None => keys.iter().take(1_000).find(|wide| covers(wide, narrow)),
    }
}

fn always_denies(entry: &Entry) -> bool {
    matches!(entry.action, Some(Action::Deny | Action::Hide))
        || entry.deny_if.iter().any(|p| matches!(&p.test, Test::All(tests) if tests.is_empty()))
}

/// Reports an entry that has no effect because a stricter one denies all of its tools.
fn without_effect(document: &Document, findings: &mut Findings<'_>) {
    let strict: Vec<ToolKey> = document
        .tools
        .iter()
        .filter(|(_, entry)| always_denies(entry) && entry.shadow == crate::model::Shadow::No)
        .map(|(key, _)| key.clone())
        .collect();
    let (strict_index, hide_index) = (Index::new(&strict), Index::new(&document.hide));
    for (key, entry) in &document.tools {
        if always_denies(entry) {
            continue;
        }
        let by_entry = covering(&strict, &strict_index, key)
            .filter(|wide| wide.text != key.text)
            .map(|wide| format!("/tools/{}", wide.text));
        let by_hide = covering(&document.hide, &hide_index, key)
            .filter(|_| entry.limits.is_empty() && entry.concurrency.is_none())
            .map(|wide| format!("hide: {}", wide.text));
        if let Some(by) = by_entry.or(by_hide) {
            findings.add(
                Code::NoEffect,
                key.span,
                format!("`{}` has no effect: `{by}` is stricter and covers it", key.text),
                "strictest wins: narrow the stricter entry instead of adding an exception",
            );
        }
    }
}

fn unreachable(entry: &Entry, findings: &mut Findings<'_>) {
    let mut warn = |what: &str, why: &str| {
        findings.add(
            Code::Unreachable,
            entry.span,
            format!("{what} of `{}` can never apply: {why}", entry.pointer),
            "remove what is not needed",
        );
    };
    let others = !entry.require.is_empty()
        || !entry.deny_if.is_empty()
        || entry.approve.is_some()
        || !entry.approve_if.is_empty()
        || !entry.limits.is_empty()
        || entry.concurrency.is_some()
        || entry.repeats.is_some()
        || !entry.rules.is_empty();
    match entry.action {
        Some(Action::Deny) if others => warn("the other rules", "`action: deny` denies every call"),
        Some(Action::Hide) if others => warn("the other rules", "`action: hide` hides the tool"),
        _ => {}
    }
    if entry.approve.is_some() && !entry.approve_if.is_empty() {
        warn("`approve_if`", "`approve` holds every call already");
    }
    let denies = entry.rules.iter().position(|r| r.kind == RuleKind::Deny);
    if denies.is_some_and(|at| at + 1 < entry.rules.len()) {
        warn("rules behind a `deny` rule", "it denies every call");
    }
}

fn session_scopes(entry: &Entry, findings: &mut Findings<'_>) {
    let limits = entry.limits.iter().map(|l| (l.scope, l.span));
    let running = entry.concurrency.iter().map(|c| (c.scope, entry.span));
    for (scope, span) in limits.chain(running) {
        if scope == Scope::Session {
            findings.add(
                Code::SessionScope,
                span,
                "an agent that reconnects starts a new session, with the full limit",
                "use `scope: grant` to keep the count across sessions",
            );
        }
    }
}

fn regexes(entry: &Entry, findings: &mut Findings<'_>) {
    for predicate in &entry.require {
        positive(&predicate.test, &mut |condition| {
            if let (Op::Regex, Operand::Pattern(_, text)) = (condition.op, &condition.operand)
                && !anchored(text)
            {
                findings.add(
                    Code::Unanchored,
                    condition.span,
                    format!("`{text}` matches anywhere in the text, so text around it passes too"),
                    "use `op: matches`, which is anchored, or write `^…$`",
                );
            }
        });
    }
}

fn anchored(text: &str) -> bool {
    let start = text.starts_with('^') || text.starts_with(r"\A");
    let end = (text.ends_with('$') && !text.ends_with(r"\$")) || text.ends_with(r"\z");
    start && end && !text.contains('|')
}

/// Conditions outside any `not`.
fn positive(test: &Test, visit: &mut dyn FnMut(&Condition)) {
    match test {
        Test::All(tests) | Test::Any(tests) => tests.iter().for_each(|t| positive(t, visit)),
        Test::Not(_) => {}
        Test::Condition(condition) => visit(condition),
    }
}

/// Reports conditions whose result does not depend on the call.
fn constants(entry: &Entry, findings: &mut Findings<'_>) {
    let mut empty = |predicate: &Predicate| {
        let mut conditions = Vec::new();
        predicate.test.conditions(&mut conditions);
        for condition in conditions {
            let none = match &condition.operand {
                Operand::List(list) => list.is_empty(),
                Operand::Hosts(hosts) => hosts.is_empty(),
                _ => false,
            };
            if none {
                findings.add(
                    Code::NeverTrue,
                    condition.span,
                    format!(
                        "`{}` with an empty list gives the same result for every call",
                        condition.op.as_str()
                    ),
                    "list the values to compare with",
                );
            }
        }
    };
    entry.require.iter().chain(&entry.deny_if).chain(&entry.approve_if).for_each(&mut empty);
    for predicate in &entry.require {
        if matches!(&predicate.test, Test::All(tests) if tests.is_empty()) {
            findings.add(
                Code::NeverTrue,
                predicate.span,
                "a `require` without conditions always holds",
                "add a condition, or remove the predicate",
            );
        }
    }
}

fn names_nothing(document: &Document, key: &ToolKey, entry: &Entry, findings: &mut Findings<'_>) {
    let opens = matches!(entry.action, None | Some(Action::Allow))
        && entry.require.is_empty()
        && entry.deny_if.is_empty()
        && entry.approve.is_none()
        && entry.limits.is_empty()
        && entry.rules.is_empty();
    if !document.default_allow && key.literals() == 0 && opens {
        findings.add(
            Code::NothingNamed,
            key.span,
            format!("under `default: deny` the key `{}` allows no tool", key.text),
            "name the tools, allow classes with `action: allow`, or write `default: allow`",
        );
    }
}

fn dangerous_glob(key: &ToolKey, entry: &Entry, known: &Known, findings: &mut Findings<'_>) {
    let guarded = always_denies(entry) || entry.approve.is_some() || !entry.approve_if.is_empty();
    if key.is_exact() || guarded || key.literals() == 0 {
        return;
    }
    let example = match &known.tools {
        Some(tools) => tools
            .iter()
            .find(|t| t.class == Class::Destructive && key.matches(&t.server, &t.name))
            .map(|t| t.name.clone()),
        None => (Class::by_name(&key.tool.prefix) == Class::Destructive)
            .then(|| key.tool.prefix.clone()),
    };
    if let Some(example) = example {
        findings.add(
            Code::DestructiveGlob,
            key.span,
            format!("`{}` allows destructive tools such as `{example}`", key.text),
            "name the tools one by one, or add `approve: {}`",
        );
    }
}

fn unknown_tool(key: &ToolKey, known: &Known, findings: &mut Findings<'_>) {
    let Some(tools) = &known.tools else { return };
    if key.literals() == 0 || tools.iter().any(|tool| key.matches(&tool.server, &tool.name)) {
        return;
    }
    let of_key = |server: &str| key.server.as_ref().is_none_or(|glob| glob.matches(server));
    let meant = key.tool.exact().and_then(|name| {
        let names = tools.iter().filter(|tool| of_key(&tool.server)).map(|tool| &*tool.name);
        nearest(name, names)
    });
    let hint = match meant {
        Some(name) => format!("did you mean `{name}`?"),
        // A server that was never listed may have it.
        None if known.unlisted.iter().any(|server| of_key(server)) => return,
        None => "check the name with `toolgate tool list`".to_owned(),
    };
    findings.add(
        Code::UnknownTool,
        key.span,
        format!("no known server has a tool `{}`", key.text),
        hint,
    );
}
