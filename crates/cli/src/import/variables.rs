//! The file of variables that an import writes: one `NAME=VALUE` per line, for a shell and for systemd.

use toolgate_clients::TakenSecret;

/// The text with these variables; everything else stays. Also the first of them that had another
/// value before.
pub(super) fn with(before: &str, added: &[&TakenSecret]) -> (String, Option<String>) {
    let mut text = before.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut changed = None;
    for TakenSecret { name, value, .. } in added {
        let start = format!("{name}=");
        let line = format!("{start}{}\n", quoted(value));
        let at = text.lines().position(|line| line.starts_with(&start));
        let Some(at) = at else {
            text.push_str(&line);
            continue;
        };
        let found = text.split_inclusive('\n').nth(at).unwrap_or_default();
        if found != line {
            changed = changed.or_else(|| Some(name.clone()));
            let lines = text.split_inclusive('\n').enumerate();
            text =
                lines.map(|(number, old)| if number == at { line.as_str() } else { old }).collect();
        }
    }
    (text, changed)
}

/// Quoted so that a shell and systemd read exactly this value.
fn quoted(value: &str) -> String {
    if !value.contains('\'') {
        return format!("'{value}'");
    }
    let mut text = String::from("\"");
    for c in value.chars() {
        if matches!(c, '\\' | '"' | '$' | '`') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use toolgate_clients::SecretPlace;

    use super::*;

    fn secret(name: &str, value: &str) -> TakenSecret {
        let (name, value) = (name.to_owned(), value.to_owned());
        TakenSecret { server: "s".to_owned(), name, place: SecretPlace::Variable, value }
    }

    #[test]
    fn other_variables_stay() {
        let before = "# mine\nA='1'\nB='2'";
        let (text, changed) = with(before, &[&secret("B", "2"), &secret("C", "3")]);
        assert_eq!((text.as_str(), changed), ("# mine\nA='1'\nB='2'\nC='3'\n", None));
        let (text, changed) = with(before, &[&secret("A", "x")]);
        assert_eq!((text.as_str(), changed), ("# mine\nA='x'\nB='2'\n", Some("A".to_owned())));
    }

    #[test]
    fn a_shell_reads_what_was_written() {
        for value in ["plain", "it's `id` $HOME \"x\" \\ !", "a'b", "$(id)"] {
            let (text, _) = with("", &[&secret("V", value)]);
            let script = format!("{text}printf %s \"$V\"");
            let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), value, "{text}");
        }
    }
}
