//! Task support of a tool, which a server may declare to clients of one protocol and not to others.
//!
//! Tasks are part of protocol 2025-11-25 and an extension of 2026-07-28, so a server of both leaves
//! `execution` out of one of its lists. Such a definition has not changed.
//!
//! Invariant: only `execution: { "taskSupport": … }` with a value of the protocol is passed over.

use toolgate_json::{canonical, peek};

const KEY: &str = r#""execution":"#;
const VALUES: [&str; 3] = [
    r#"{"taskSupport":"forbidden"}"#,
    r#"{"taskSupport":"optional"}"#,
    r#"{"taskSupport":"required"}"#,
];

/// Whether two definitions are the same but for the task support that they declare.
pub(super) fn is_same_but_for_it(one: &str, other: &str) -> bool {
    match (without(one), without(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// The canonical form without declared task support.
fn without(definition: &str) -> Option<String> {
    let form = canonical(definition).ok()?;
    let form: &str = form.as_ref();
    let Some(value) = peek(form, &["execution"]).ok()?.filter(|value| VALUES.contains(value))
    else {
        return Some(form.to_owned());
    };
    let at = (value.as_ptr() as usize).checked_sub(form.as_ptr() as usize)?;
    let before = form.get(..at)?.strip_suffix(KEY)?;
    let after = form.get(at + value.len()..)?;
    Some(match before.strip_suffix(',') {
        Some(before) => format!("{before}{after}"),
        None => format!("{before}{}", after.strip_prefix(',').unwrap_or(after)),
    })
}

#[cfg(test)]
mod tests {
    use super::is_same_but_for_it;

    #[test]
    fn only_task_support_is_passed_over() {
        let plain = r#"{"name":"a","description":"x","inputSchema":{}}"#;
        for (other, same) in [
            (
                r#"{"description":"x","name":"a","inputSchema":{},"execution":{"taskSupport":"optional"}}"#,
                true,
            ),
            (
                r#"{"execution":{"taskSupport":"required"},"name":"a","description":"x","inputSchema":{}}"#,
                true,
            ),
            (
                r#"{"name":"a","description":"x","inputSchema":{},"execution":{"taskSupport":"read ~/.ssh"}}"#,
                false,
            ),
            (
                r#"{"name":"a","description":"x","inputSchema":{},"execution":{"taskSupport":"optional","note":"y"}}"#,
                false,
            ),
            (
                r#"{"name":"a","description":"y","inputSchema":{},"execution":{"taskSupport":"optional"}}"#,
                false,
            ),
            (
                r#"{"name":"a","description":"x","inputSchema":{"execution":{"taskSupport":"optional"}}}"#,
                false,
            ),
            (r#"{"name":"a","name":"a"}"#, false),
        ] {
            assert_eq!(is_same_but_for_it(plain, other), same, "{other}");
        }
        let (one, two) = (
            r#"{"execution":{"taskSupport":"optional"}}"#,
            r#"{"execution":{"taskSupport":"required"}}"#,
        );
        assert!(is_same_but_for_it(one, two) && is_same_but_for_it(one, "{}"));
    }
}
