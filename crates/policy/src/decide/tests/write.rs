//! Writes a random document as JSON, for the engine to read.

use super::world::{Cond, Doc, Ent, IRule, Lim, Pred, Shade, Win};

fn list<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(write).collect::<Vec<_>>().join(","))
}

fn object(members: &[(String, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(k, v)| format!("{k:?}:{v}")).collect();
    format!("{{{}}}", members.join(","))
}

fn cond(c: &Cond) -> String {
    format!(r#"{{"path":{:?},"op":"{}","value":{}}}"#, c.path, c.op, c.value.write())
}

fn pred(p: &Pred) -> String {
    match p {
        Pred::All(conditions) => format!(r#"{{"conditions":{}}}"#, list(conditions, cond)),
        Pred::Any(preds) => format!(r#"{{"any":{}}}"#, list(preds, pred)),
        Pred::Not(inner) => format!(r#"{{"not":{}}}"#, pred(inner)),
    }
}

fn hundredths(n: i64) -> String {
    format!("{}.{:02}", n / 100, n % 100)
}

fn limit(l: &Lim) -> String {
    let by = match l.by {
        Ok(n) => format!(r#""increment":{}"#, n / 100),
        Err(path) => format!(r#""increment_from":"{path}""#),
    };
    let algorithm = if l.sliding { "sliding" } else { "calendar" };
    format!(
        r#"{{"counter":"{}","window":"{}","max":{},"scope":"{}","algorithm":"{algorithm}",{by}}}"#,
        l.counter,
        l.window.0,
        hundredths(l.max),
        l.scope
    )
}

fn rule(r: &IRule) -> String {
    let mut members = vec![
        ("name".into(), format!("{:?}", r.name)),
        ("action".into(), format!("{:?}", r.action)),
    ];
    if !r.conditions.is_empty() {
        members.push(("conditions".into(), list(&r.conditions, cond)));
    }
    if let Some((max, window)) = r.rate {
        members.push(("rate_limit".into(), format!("\"{}/{}\"", max / 100, window.0)));
    }
    object(&members)
}

fn day(at: i64) -> String {
    jiff::Timestamp::from_second(at).unwrap().strftime("%Y-%m-%d").to_string()
}

fn shadow(members: &mut Vec<(String, String)>, shadow: Shade) {
    if let Shade::No = shadow {
        return;
    }
    members.push(("mode".into(), "\"shadow\"".into()));
    if let Shade::Until(until) = shadow {
        members.push(("shadow_until".into(), format!("\"{}\"", day(until))));
    }
}

fn rate(max: i64, window: Win) -> String {
    format!(r#"{{"max":{},"window":"{}"}}"#, max / 100, window.0)
}

fn entry(e: &Ent) -> String {
    let mut members: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: String| members.push((key.into(), value));
    if let Some(action) = e.action {
        add("action", format!("\"{action}\""));
    }
    add("require", list(&e.require, pred));
    add("deny_if", list(&e.deny_if, pred));
    if e.approve {
        add("approve", "{}".into());
    }
    add("approve_if", list(&e.approve_if, pred));
    add("limits", list(&e.limits, limit));
    if let Some((max, window)) = e.rate_limit {
        add("rate_limit", rate(max, window));
    }
    if let Some((max, scope)) = e.concurrency {
        add("concurrency", format!(r#"{{"max":{max},"scope":"{scope}"}}"#));
    }
    if let Some(window) = e.unless {
        add("unless_seen_within", format!("\"{}\"", window.0));
    }
    add("rules", list(&e.rules, rule));
    shadow(&mut members, e.shadow);
    object(&members)
}

/// The document. `reversed` turns the order of all keys around.
pub(super) fn document(doc: &Doc, reversed: bool) -> String {
    let mut members: Vec<(String, String)> = vec![
        ("version".into(), "\"1\"".into()),
        ("default".into(), if doc.default_allow { "\"allow\"" } else { "\"deny\"" }.into()),
        ("timezone".into(), format!("\"{}\"", doc.zone.0)),
        ("hide".into(), list(&doc.hide, |h| format!("\"{h}\""))),
    ];
    shadow(&mut members, doc.shadow);
    if let Some((max, window)) = doc.looped {
        members.push(("loop".into(), format!(r#"{{"max":{max},"window":"{}"}}"#, window.0)));
    }
    if let Some(all) = &doc.all_tools {
        members.push(("all_tools".into(), entry(all)));
    }
    let entries = |map: &std::collections::BTreeMap<&'static str, Ent>| {
        let mut members: Vec<(String, String)> =
            map.iter().map(|(k, e)| ((*k).to_owned(), entry(e))).collect();
        if reversed {
            members.reverse();
        }
        object(&members)
    };
    members.push(("classes".into(), entries(&doc.classes)));
    members.push(("tools".into(), entries(&doc.tools)));
    if reversed {
        members.reverse();
    }
    object(&members)
}
