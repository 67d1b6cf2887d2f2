//! Examples at the end of every help text.
//!
//! Invariant: every verb that does something has an example, and every example is accepted by the
//! parser; a test reads them.

use clap::{Command, CommandFactory as _, FromArgMatches as _};

use super::Args;

/// A verb and what people type.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("serve", &["toolgate serve", "toolgate serve --config toolgate.yaml --log json"]),
    ("status", &["toolgate status", "toolgate status -o json"]),
    ("config check", &["toolgate config check", "toolgate config check -o json toolgate.yaml"]),
    ("config schema", &["toolgate config schema"]),
    ("policy list", &["toolgate policy list -o json"]),
    ("policy show", &["toolgate policy show team"]),
    ("policy apply", &["toolgate policy apply policy.yaml --name team"]),
    ("policy remove", &["toolgate policy remove team"]),
    ("policy rollback", &["toolgate policy rollback team"]),
    (
        "policy check",
        &["toolgate policy check policy.yaml", "toolgate policy check -o sarif policy.yaml"],
    ),
    ("policy test", &["toolgate policy test policy.yaml"]),
    (
        "policy explain",
        &[
            "toolgate policy explain --policy policy.yaml --tool close --args '{\"id\": 1}'",
            "toolgate policy explain --grant laptop --tool files__write_file",
        ],
    ),
    ("policy fmt", &["toolgate policy fmt policy.yaml"]),
    ("policy import", &["toolgate policy import intercept.yaml --write policy.yaml"]),
    ("policy schema", &["toolgate policy schema"]),
    (
        "audit verify",
        &["toolgate audit verify", "toolgate audit verify -o json --data /srv/toolgate"],
    ),
    ("audit show", &["toolgate audit show 4711"]),
    ("audit tail", &["toolgate audit tail --follow"]),
    ("tool list", &["toolgate tool list", "toolgate tool list --as laptop -o json"]),
    ("tool show", &["toolgate tool show files__write_file"]),
    (
        "scan",
        &[
            "toolgate scan -- npx -y @modelcontextprotocol/server-filesystem .",
            "toolgate scan https://example.com/mcp --header \"Authorization: env:TOKEN\"",
            "toolgate scan --config .mcp.json --fail-on high -o sarif",
            "toolgate scan --write policy.yaml -- npx -y @modelcontextprotocol/server-memory",
        ],
    ),
    ("catalog search", &["toolgate catalog search", "toolgate catalog search destructive file"]),
    (
        "catalog show",
        &[
            "toolgate catalog show server-filesystem",
            "toolgate catalog show server-memory delete_entities",
        ],
    ),
    ("catalog import", &["toolgate catalog import server.json"]),
    ("session list", &["toolgate session list -o json"]),
    ("session token", &["toolgate session token"]),
    ("demo", &["toolgate demo"]),
    ("demo onec", &["toolgate demo onec"]),
    ("demo server", &["toolgate demo server safe"]),
    ("console", &["toolgate console"]),
    ("client disconnect", &["toolgate client disconnect cursor"]),
    ("client list", &["toolgate client list"]),
    ("approval list", &["toolgate approval list", "toolgate approval list --standing"]),
    ("approval show", &["toolgate approval show apr_0a1b2c3d4e5f6a7b8c9d"]),
    (
        "approval approve",
        &[
            "toolgate approval approve apr_0a1b2c3d4e5f6a7b8c9d --reason \"asked by phone\"",
            "toolgate approval approve apr_0a1b2c3d4e5f6a7b8c9d --similar 1h --keep args.to",
        ],
    ),
    ("approval deny", &["toolgate approval deny apr_0a1b2c3d4e5f6a7b8c9d --reason \"not today\""]),
    (
        "approval watch",
        &[
            "toolgate approval watch",
            "toolgate approval watch --exec 'notify-send \"$TOOLGATE_APPROVAL_TOOL\"'",
        ],
    ),
    ("approval revoke", &["toolgate approval revoke ID"]),
    ("policy plan", &["toolgate policy plan policy.yaml --name team"]),
    ("import", &["toolgate import .mcp.json", "toolgate import .mcp.json --write toolgate.yaml"]),
    ("grant list", &["toolgate grant list"]),
    ("grant update", &["toolgate grant update laptop --policy strict"]),
    ("grant rotate", &["toolgate grant rotate laptop"]),
    ("grant revoke", &["toolgate grant revoke laptop"]),
    ("grant restore", &["toolgate grant restore laptop"]),
    ("person create", &["toolgate person create anna --role approver"]),
    ("person list", &["toolgate person list"]),
    ("person rotate", &["toolgate person rotate anna"]),
    ("person revoke", &["toolgate person revoke anna"]),
    ("server list", &["toolgate server list"]),
    ("server remove", &["toolgate server remove files"]),
    ("server test", &["toolgate server test files"]),
    ("freeze list", &["toolgate freeze list"]),
    ("unfreeze", &["toolgate unfreeze --all"]),
    ("local enable", &["toolgate local enable"]),
    ("doctor", &["toolgate doctor", "toolgate doctor -o json"]),
    ("explain", &["toolgate explain rate_limited", "toolgate explain TG0103"]),
    (
        "completions",
        &[
            "toolgate completions bash > /etc/bash_completion.d/toolgate",
            "toolgate completions fish",
        ],
    ),
    ("man", &["toolgate man --write /usr/local/share/man/man1"]),
    ("version", &["toolgate version"]),
];

/// The whole command with its examples.
pub(crate) fn command() -> Command {
    EXAMPLES.iter().fold(Args::command(), |command, (verb, examples)| {
        let words: Vec<&str> = verb.split(' ').collect();
        with(command, &words, examples)
    })
}

/// Parses the arguments of this process.
pub(crate) fn parse() -> Result<Args, clap::Error> {
    let mut matches = command().try_get_matches()?;
    Args::from_arg_matches_mut(&mut matches)
}

fn with(command: Command, words: &[&str], examples: &[&str]) -> Command {
    match words {
        [] => command.after_help(text(examples)),
        // A verb that does not exist would be added; a test finds that.
        [first, rest @ ..] => command.mut_subcommand(*first, |verb| with(verb, rest, examples)),
    }
}

fn text(examples: &[&str]) -> String {
    let lines: Vec<String> = examples.iter().map(|example| format!("  {example}")).collect();
    format!("Examples:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every verb without verbs of its own, with its path.
    fn leaves(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            let path = format!("{path} {}", verb.get_name()).trim().to_owned();
            if !verb.has_subcommands() || !verb.is_subcommand_required_set() {
                all.push((path.clone(), verb.clone()));
            }
            leaves(verb, &path, all);
        }
    }

    #[test]
    fn every_verb_has_examples_that_are_accepted() {
        let command = command();
        let mut all = Vec::new();
        leaves(&command, "", &mut all);
        let mut bad = Vec::new();
        for (path, verb) in &all {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> =
                help.lines().filter_map(|line| line.split_once("toolgate ")).map(|e| e.1).collect();
            if examples.is_empty() {
                bad.push(format!("`{path}` has no example; add one to args/examples.rs"));
            }
            for example in examples {
                let words = split(example.split(" > ").next().unwrap());
                let words = std::iter::once("toolgate".to_owned()).chain(words);
                if let Err(error) = command.clone().try_get_matches_from(words) {
                    bad.push(format!("`{example}`: {error}"));
                }
            }
        }
        let known = |verb: &str| all.iter().any(|(path, _)| path == verb);
        let missing = EXAMPLES.iter().filter(|(verb, _)| !known(verb));
        bad.extend(missing.map(|(verb, _)| format!("there is no verb `{verb}`")));
        assert!(bad.is_empty(), "\n{}", bad.join("\n"));
    }

    /// Words as a shell splits them, with quotes.
    fn split(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for c in line.chars() {
            match (c, quote) {
                ('"' | '\'', None) => quote = Some(c),
                (c, Some(q)) if c == q => quote = None,
                (' ', None) => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
                (c, _) => word.push(c),
            }
        }
        words.extend((!word.is_empty()).then_some(word));
        words
    }
}
