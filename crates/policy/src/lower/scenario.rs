//! `tests`: calls and their expected verdicts.

use jiff::Timestamp;

use super::{Reader, find};
use crate::{
    Class, Code, Effect, Span,
    model::{Expect, Scenario, Step, TestCall},
    syntax::{Member, Node, Value},
};

const CALL_KEYS: [&str; 13] = [
    "tool",
    "server",
    "class",
    "args",
    "grant",
    "identity",
    "groups",
    "client",
    "session",
    "target",
    "agent_session",
    "times",
    "every",
];

const EFFECTS: [(&str, Effect); 4] = [
    ("allow", Effect::Allow),
    ("deny", Effect::Deny),
    ("hide", Effect::Hide),
    ("hold", Effect::Hold),
];

impl Reader<'_, '_> {
    pub(super) fn scenarios(&mut self, node: &Node) -> Vec<Scenario> {
        let items = self.list(node, "tests");
        let mut scenarios = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            scenarios.extend(self.scenario(item, index));
        }
        scenarios
    }

    fn scenario(&mut self, node: &Node, index: usize) -> Option<Scenario> {
        let fields = self.fields(node, "a test", &["name", "at", "call", "expect", "then"])?;
        let name = find(fields, "name").and_then(|n| self.name(n, "name").map(str::to_owned));
        let at = match find(fields, "at") {
            Some(node) => Some(self.instant(node)?),
            None => None,
        };
        let first = self.step(node.span, fields, None)?;
        let mut steps = vec![first];
        if let Some(then) = find(fields, "then") {
            for item in self.list(then, "then") {
                let keys = ["after", "call", "expect"];
                let Some(fields) = self.fields(item, "a step", &keys) else { continue };
                let before = steps.last().map(|step: &Step| step.call.clone());
                let Some(mut step) = self.step(item.span, fields, before) else { continue };
                step.after = find(fields, "after").and_then(|n| self.window(n, "after"));
                steps.push(step);
            }
        }
        let name = name.unwrap_or_else(|| format!("tests/{index}"));
        let (line, _) = self.findings.position(node.span.start);
        Some(Scenario { name, at, steps, line })
    }

    fn bad_test(&mut self, span: Span, message: impl Into<String>) {
        self.findings.add(
            Code::BadTest,
            span,
            message,
            "write `{ call: { tool: close, times: 31 }, expect: [{ allow: 30 }, { deny: rate_limited }] }`",
        );
    }

    fn instant(&mut self, node: &Node) -> Option<Timestamp> {
        let text = self.string(node, "at")?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.bad_test(
                node.span,
                format!("`{text}` is not a time such as `2026-01-05T12:00:00Z`"),
            );
        }
        parsed
    }

    fn step(&mut self, span: Span, fields: &[Member], before: Option<TestCall>) -> Option<Step> {
        let call = match (find(fields, "call"), before) {
            (Some(node), _) => self.test_call(node)?,
            (None, Some(before)) => before,
            (None, None) => {
                self.bad_test(span, "the test has no `call`");
                return None;
            }
        };
        let Some(expect) = find(fields, "expect") else {
            self.bad_test(span, "the test has no `expect`");
            return None;
        };
        let expect = self.expectations(expect)?;
        let counted: u64 = expect.iter().filter_map(|e| e.count).sum();
        let uncounted = u64::try_from(expect.iter().filter(|e| e.count.is_none()).count()).ok()?;
        if counted + uncounted > call.times || (uncounted == 0 && counted < call.times) {
            self.bad_test(span, format!("the expectations do not fit {} calls", call.times));
        }
        let (line, _) = self.findings.position(span.start);
        Some(Step { after: None, call, expect, line })
    }

    fn test_call(&mut self, node: &Node) -> Option<TestCall> {
        let fields = self.fields(node, "a call", &CALL_KEYS)?;
        let Some(tool) = find(fields, "tool") else {
            self.bad_test(node.span, "the call has no `tool`");
            return None;
        };
        let mut call =
            TestCall { tool: self.name(tool, "tool")?.to_owned(), times: 1, ..TestCall::default() };
        let mut text =
            |name: &str| find(fields, name).and_then(|n| self.string(n, name).map(str::to_owned));
        call.server = text("server");
        call.grant = text("grant");
        call.identity = text("identity");
        call.client = text("client");
        call.target = text("target");
        call.agent_session = text("agent_session");
        if let Some(node) = find(fields, "class") {
            call.class = Some(self.word(node, "class", &Class::ALL.map(|c| (c.as_str(), c)))?);
        }
        if let Some(node) = find(fields, "groups") {
            call.groups = self.strings(node, "groups");
        }
        if let Some(node) = find(fields, "session") {
            let fields = self.fields(node, "`session`", &["kind", "infobase_name", "host_id"])?;
            let mut text = |name: &str| {
                find(fields, name).and_then(|n| self.string(n, name).map(str::to_owned))
            };
            call.kind = text("kind");
            call.infobase_name = text("infobase_name");
            call.host_id = text("host_id");
        }
        call.args = match find(fields, "args") {
            Some(node) if matches!(node.value(), Value::Map(_)) => Some(node.to_json()),
            Some(node) => {
                self.wrong_type(node, "args", "a mapping");
                return None;
            }
            None => None,
        };
        if let Some(node) = find(fields, "times") {
            call.times = self.whole(node, "times", 1)?;
            if call.times > 100_000 {
                self.bad_test(node.span, "a test makes at most 100000 calls");
                return None;
            }
        }
        call.every = find(fields, "every").and_then(|n| self.window(n, "every"));
        Some(call)
    }

    fn expectations(&mut self, node: &Node) -> Option<Vec<Expect>> {
        let items = match node.value() {
            Value::List(items) => items,
            _ => std::slice::from_ref(node),
        };
        if items.is_empty() {
            self.bad_test(node.span, "`expect` is empty");
        }
        items.iter().map(|item| self.expectation(item)).collect()
    }

    fn expectation(&mut self, node: &Node) -> Option<Expect> {
        if let Value::Text(_) = node.value() {
            let effect = self.word(node, "expect", &EFFECTS)?;
            return Some(Expect { effect, count: None, word: None });
        }
        let members = self.fields(node, "`expect`", &EFFECTS.map(|(name, _)| name))?;
        let [Member { key, value }] = members else {
            self.bad_test(node.span, "an expectation has one effect");
            return None;
        };
        let effect = EFFECTS.iter().find(|(name, _)| *name == key.text)?.1;
        match value.value() {
            Value::Number(_) => {
                let count = self.whole(value, &key.text, 1)?;
                Some(Expect { effect, count: Some(count), word: None })
            }
            Value::Text(word) => Some(Expect { effect, count: None, word: Some(word.to_owned()) }),
            Value::Map(_) => {
                let fields = self.fields(value, "`expect`", &["count", "because"])?;
                let count = find(fields, "count").and_then(|n| self.whole(n, "count", 1));
                let word = find(fields, "because")
                    .and_then(|n| self.string(n, "because").map(str::to_owned));
                Some(Expect { effect, count, word })
            }
            _ => {
                self.bad_test(value.span, "an effect takes a count, an error code or a rule");
                None
            }
        }
    }
}
