//! Placeholders in the arguments, variables and working directory of a child: `{grant}` and
//! `{instance}`.
//!
//! Invariant: values are file names: letters, digits, `.`, `_` and `-`, not starting with `.` or `-`.
//! Invariant: different labels have different values.

use std::path::PathBuf;

use super::ChildSpec;

const GRANT: &str = "{grant}";
const INSTANCE: &str = "{instance}";
/// How much of a label is kept.
const MAX_LABEL: usize = 48;

/// Whether a text has a placeholder.
pub fn has_placeholder(text: &str) -> bool {
    text.contains(GRANT) || text.contains(INSTANCE)
}

/// Whether a child of this spec depends on its grant or instance.
pub(super) fn are_in(spec: &ChildSpec) -> bool {
    let in_cwd = spec.cwd.as_ref().is_some_and(|cwd| has_placeholder(&cwd.to_string_lossy()));
    in_cwd
        || spec.args.iter().any(|arg| has_placeholder(arg))
        || spec.env.iter().any(|(_, value)| has_placeholder(value))
}

/// The spec of one child.
pub(super) fn fill(spec: &ChildSpec, grant: &str, instance: &str) -> ChildSpec {
    let grant = file_name(grant);
    let fill = |text: &str| text.replace(GRANT, &grant).replace(INSTANCE, instance);
    ChildSpec {
        args: spec.args.iter().map(|arg| fill(arg)).collect(),
        env: spec.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
        secrets: spec.secrets.iter().map(|secret| fill(secret)).collect(),
        cwd: spec.cwd.as_ref().map(|cwd| PathBuf::from(fill(&cwd.to_string_lossy()))),
        ..spec.clone()
    }
}

/// A label as a file name. A label that had to be changed ends with a digest of the original.
fn file_name(label: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let mut name: String = label.chars().take(MAX_LABEL).map(safe).collect();
    if name.is_empty() || name.starts_with(['.', '-']) {
        name.insert(0, '_');
    }
    if name == label {
        return name;
    }
    format!("{name}-{:016x}", digest(label))
}

/// FNV-1a, which does not change between versions.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn labels_become_safe_and_different_file_names() {
        assert_eq!(file_name("laptop-1.dev_x"), "laptop-1.dev_x");
        let labels = [
            "",
            ".",
            "..",
            "-rf",
            "a/b",
            "a_b",
            "a b",
            "../../etc",
            "(toolgate)",
            "toolgate",
            "отдел",
            "a\0b",
            "a\nb",
        ];
        let long = ["x".repeat(60), format!("{}y", "x".repeat(59))];
        let all = labels.into_iter().chain(long.iter().map(String::as_str));
        let mut seen = HashSet::new();
        for label in all {
            let name = file_name(label);
            assert!(!name.starts_with(['.', '-']) && !name.is_empty() && name.len() < 80, "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)), "{name}");
            assert!(seen.insert(name), "{label}");
        }
    }

    #[test]
    fn every_part_is_filled() {
        let spec = ChildSpec {
            args: vec!["--db={grant}.db".to_owned(), "{other}".to_owned()],
            env: vec![("DIR".to_owned(), "d/{grant}/{instance}".to_owned())],
            cwd: Some("/w/{instance}".into()),
            ..ChildSpec::new("demo", "{grant}")
        };
        assert!(are_in(&spec) && !are_in(&ChildSpec::new("demo", "{grant}")));
        let filled = fill(&spec, "laptop", "7");
        assert_eq!(filled.args, ["--db=laptop.db", "{other}"]);
        assert_eq!(filled.env, [("DIR".to_owned(), "d/laptop/7".to_owned())]);
        assert_eq!(filled.cwd, Some("/w/7".into()));
        assert_eq!(filled.command, "{grant}", "the program is never chosen by a label");
    }
}
