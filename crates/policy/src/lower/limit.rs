//! Limits and their counters.

use std::collections::HashMap;

use super::{Reader, find, pointer};
use crate::{
    Amount, Code, Span, Window,
    model::{Document, Entry, Increment, Limit, Scope},
    path::{Path, Root},
    syntax::{Member, Node},
};

/// Largest `max` of a sliding window, which stores every call.
const SLIDING_MAX: u64 = 10_000;

const KEYS: [&str; 8] =
    ["counter", "window", "max", "scope", "increment", "increment_from", "algorithm", "on_deny"];

impl Reader<'_, '_> {
    pub(super) fn limit(&mut self, node: &Node, base: &str) -> Option<Limit> {
        let fields = self.fields(node, "a limit", &KEYS)?;
        for (key, example) in
            [("counter", "counter: calls"), ("window", "window: minute"), ("max", "max: 30")]
        {
            if find(fields, key).is_none() {
                self.missing(node.span, "the limit", key, example);
            }
        }
        let counter = find(fields, "counter").and_then(|n| self.counter(n));
        let sliding = find(fields, "algorithm")
            .and_then(|n| self.word(n, "algorithm", &[("calendar", false), ("sliding", true)]))
            .unwrap_or(false);
        let window = find(fields, "window")
            .and_then(|n| if sliding { self.window(n, "window") } else { self.calendar_window(n) });
        let scope = find(fields, "scope")
            .and_then(|n| self.word(n, "scope", &Scope::ALL))
            .unwrap_or_default();
        let increment = self.increment(fields);
        let max = find(fields, "max").and_then(|n| self.max(n, sliding, increment.as_ref()));
        let on_deny =
            find(fields, "on_deny").and_then(|n| self.string(n, "on_deny").map(str::to_owned));
        let counter = counter?;
        Some(Limit {
            rule: pointer(&format!("{base}/limits"), &counter),
            counter,
            window: window?,
            max: max?,
            scope,
            increment: increment?,
            sliding,
            utc: false,
            on_deny,
            span: node.span,
        })
    }

    pub(super) fn calendar_window(&mut self, node: &Node) -> Option<Window> {
        let window = self.window(node, "window")?;
        if !window.is_calendar() {
            self.findings.add(
                Code::Duration,
                node.span,
                "a calendar window above a day must be whole days",
                "write whole days (`2d`), or add `algorithm: sliding`",
            );
            return None;
        }
        Some(window)
    }

    fn counter(&mut self, node: &Node) -> Option<String> {
        let text = self.string(node, "counter")?;
        let name = text.strip_prefix("global.").unwrap_or(text);
        let outside = name.replace("{tool}", "");
        if name.is_empty() || outside.contains(['{', '}']) || text.len() > 128 {
            self.findings.add(
                Code::BadCounter,
                node.span,
                format!("`{text}` is not a valid counter name"),
                "write a name such as `calls`, `{tool}_rate` or `global.spend`",
            );
            return None;
        }
        Some(text.to_owned())
    }

    fn max(&mut self, node: &Node, sliding: bool, increment: Option<&Increment>) -> Option<Amount> {
        let max = self.amount(node, "max")?;
        let counts_calls = !matches!(increment, Some(Increment::From(_)));
        if counts_calls && !max.is_whole() {
            self.findings.add(
                Code::Range,
                node.span,
                format!("`max` cannot be `{max}` for a limit that counts calls"),
                "write a whole number, or count an argument with `increment_from`",
            );
            return None;
        }
        if sliding && max > Amount::whole(SLIDING_MAX) {
            self.findings.add(
                Code::SlidingMax,
                node.span,
                format!("a sliding window cannot count to {max}"),
                "write at most 10000, or use `algorithm: calendar`",
            );
            return None;
        }
        if max == Amount::ZERO {
            self.findings.add(
                Code::ZeroMax,
                node.span,
                "a limit of zero admits nothing",
                "write `action: deny` to deny every call",
            );
        }
        Some(max)
    }

    fn increment(&mut self, fields: &[Member]) -> Option<Increment> {
        let (fixed, from) = (find(fields, "increment"), find(fields, "increment_from"));
        if let (Some(_), Some(node)) = (fixed, from) {
            self.findings.add(
                Code::TwoIncrements,
                node.span,
                "the limit has both `increment` and `increment_from`",
                "keep one of them",
            );
        }
        if let Some(node) = from {
            return self.increment_path(node).map(Increment::From);
        }
        match fixed {
            Some(node) => {
                let count = self.whole(node, "increment", 1)?;
                Some(Increment::Fixed(Amount::whole(count)))
            }
            None => Some(Increment::Fixed(Amount::ONE)),
        }
    }

    pub(super) fn increment_path(&mut self, node: &Node) -> Option<Path> {
        let text = self.string(node, "increment_from")?;
        let path = match Path::under("args", Root::Args, text) {
            Ok(path) => path,
            Err(error) => {
                self.findings.add(Code::BadPath, node.span, error.message, error.hint);
                return None;
            }
        };
        if path.is_single() {
            return Some(path);
        }
        self.findings.add(
            Code::BadPath,
            node.span,
            format!("`{text}` selects several values"),
            "name one argument, as in `args.amount` or `args.items[0].amount`",
        );
        None
    }

    /// Reports counters of one entry that share a name.
    pub(super) fn duplicate_counters(&mut self, entry: &Entry) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for limit in &entry.limits {
            if let Some(first) = seen.insert(&limit.counter, limit.span) {
                let (line, _) = self.findings.position(first.start);
                self.findings.add(
                    Code::DuplicateCounter,
                    limit.span,
                    format!("duplicate counter `{}` in `{}`", limit.counter, entry.pointer),
                    format!("the first one is on line {line}: rename one of them"),
                );
            }
        }
    }

    /// `global.NAME` is one counter: all its uses must agree.
    pub(super) fn global_counters(&mut self, document: &Document) {
        let entries = document
            .all_tools
            .iter()
            .chain(document.classes.iter().map(|(_, e)| e))
            .chain(document.tools.iter().map(|(_, e)| &**e));
        let mut seen: HashMap<&str, &Limit> = HashMap::new();
        for limit in entries.flat_map(|e| &e.limits) {
            if !limit.counter.starts_with("global.") {
                continue;
            }
            let first = *seen.entry(&limit.counter).or_insert(limit);
            let same = first.window == limit.window
                && first.scope == limit.scope
                && first.sliding == limit.sliding;
            if !same {
                let (line, _) = self.findings.position(first.span.start);
                self.findings.add(
                    Code::GlobalDiffers,
                    limit.span,
                    format!("`{}` has another window, scope or algorithm here", limit.counter),
                    format!("make it agree with line {line}"),
                );
            }
        }
    }
}
