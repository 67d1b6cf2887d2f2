//! The canonical form of a row: the bytes that are hashed.
//!
//! Version 1 is one JSON object without white space. Its members are the fields of the row that
//! are present, by name in ascending order, and `v`, the version; `hash` is not a member.
//! * `time` is RFC 3339 in UTC with six decimal places.
//! * `call_id`, `fingerprint` and `policy_hash` are lower-case hex, `call_id` with hyphens.
//! * `seq`, `policy_version`, `upstream_ms`, `total_ms`, `count` are integers.
//! * `argument_keys` and `arguments` are embedded as JSON.
//! * `counters` is a list of `{"after":…,"before":…,"counter":…}`, amounts as exact numbers;
//!   absent when empty.
//! * Strings are escaped according to RFC 8785.
//!
//! Invariant: two different rows never have the same canonical form. For that, `argument_keys` and
//! `arguments` must be JSON, which [`embeddable`] checks when rows are read.

use data_encoding::HEXLOWER;
use serde_json::value::RawValue;
use toolgate_json::push_quoted;

use crate::{CounterChange, Draft, Hash, Row};

/// The version of the canonical form that is written.
pub const VERSION: u64 = 1;

/// Whether the text can be embedded in the canonical form unchanged.
pub(crate) fn embeddable(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok_and(|raw| raw.get().len() == text.len())
}

/// Writes the canonical form, with the hash as an additional member if it is given.
pub(crate) fn write(seq: u64, draft: &Draft, hash: Option<&Hash>) -> String {
    let d = draft;
    let mut out = Object { text: String::with_capacity(768) };
    out.text("agent_session", d.agent_session.as_deref());
    out.text("approval_id", d.approval_id.as_deref());
    out.raw("argument_keys", d.argument_keys.as_deref());
    out.raw("arguments", d.arguments.as_deref());
    out.call_id(d);
    out.text("client", d.client.as_deref());
    out.number("count", d.count);
    out.counters(d);
    out.text("decision", d.decision.map(crate::Decision::as_str));
    out.text("effect", d.effect.map(crate::Effect::as_str));
    out.text("error_code", d.error_code.as_deref());
    out.hash("fingerprint", d.fingerprint.as_ref());
    out.text("grant", d.grant.as_deref());
    out.hash("hash", hash);
    out.text("identity", d.identity.as_deref());
    out.text("kind", Some(d.kind.as_str()));
    out.text("message", d.message.as_deref());
    out.text("method", d.method.as_deref());
    out.text("outcome", d.outcome.map(crate::Outcome::as_str));
    out.text("person", d.person.as_deref());
    out.text("policy", d.policy.as_deref());
    out.hash("policy_hash", d.policy_hash.as_ref());
    out.number("policy_version", d.policy_version);
    out.text("risk", d.risk.as_deref());
    out.text("rule", d.rule.as_deref());
    out.number("seq", Some(seq));
    out.text("server", d.server.as_deref());
    out.text("session_id", d.session_id.as_deref());
    out.key("time");
    push_quoted(&format!("{:.6}", d.time), &mut out.text);
    out.text("tool", d.tool.as_deref());
    out.number("total_ms", d.total_ms);
    out.number("upstream_ms", d.upstream_ms);
    out.number("v", Some(VERSION));
    out.text("via", d.via.as_deref());
    out.text.push('}');
    out.text
}

/// The list of counters as in the row.
pub(crate) fn counters(draft: &Draft) -> String {
    let mut out = Object { text: String::new() };
    out.list(draft);
    out.text
}

impl Row {
    /// The row as one line of JSON: its canonical form, with the hash.
    pub fn to_json(&self) -> String {
        write(self.seq, &self.draft, Some(&self.hash))
    }
}

/// A JSON object under construction.
struct Object {
    text: String,
}

impl Object {
    fn key(&mut self, name: &str) {
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    fn raw(&mut self, name: &str, json: Option<&str>) {
        if let Some(json) = json {
            self.key(name);
            self.text.push_str(json);
        }
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.key(name);
            push_quoted(value, &mut self.text);
        }
    }

    fn number(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.key(name);
            self.text.push_str(itoa::Buffer::new().format(value));
        }
    }

    fn hash(&mut self, name: &str, value: Option<&Hash>) {
        if let Some(value) = value {
            self.key(name);
            self.text.push('"');
            HEXLOWER.encode_append(&value.0, &mut self.text);
            self.text.push('"');
        }
    }

    fn call_id(&mut self, draft: &Draft) {
        let Some(id) = draft.call_id else { return };
        self.key("call_id");
        self.text.push('"');
        id.push_to(&mut self.text);
        self.text.push('"');
    }

    fn counters(&mut self, draft: &Draft) {
        if !draft.counters.is_empty() {
            self.key("counters");
            self.list(draft);
        }
    }

    fn list(&mut self, draft: &Draft) {
        self.text.push('[');
        for (place, change) in draft.counters.iter().enumerate() {
            if place > 0 {
                self.text.push(',');
            }
            let CounterChange { before, after, .. } = change;
            let amounts = format!("{{\"after\":{after},\"before\":{before},\"counter\":");
            self.text.push_str(&amounts);
            push_quoted(&change.counter, &mut self.text);
            self.text.push('}');
        }
        self.text.push(']');
    }
}
