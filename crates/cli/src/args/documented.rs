//! Every command in the documentation exists.
//!
//! Commands in code blocks are parsed whole. Commands in the text are often shortened
//! (`toolgate unfreeze`), so only their verbs and options must exist.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;

use super::shell::commands;

#[test]
fn commands_in_code_blocks_are_accepted() {
    let command = super::command();
    let (mut count, mut bad) = (0, Vec::new());
    for page in pages() {
        for arguments in commands(&fs::read_to_string(&page).unwrap()) {
            let words = std::iter::once("toolgate".to_owned()).chain(arguments.iter().cloned());
            count += 1;
            if let Err(error) = command.clone().try_get_matches_from(words)
                && error.use_stderr()
            {
                bad.push(format!("{}: {}\n{error}", page.display(), arguments.join(" ")));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(count > 200, "{count} commands");
}

#[test]
fn commands_in_the_text_exist() {
    let mut command = super::command();
    command.build();
    let (mut count, mut bad) = (0, Vec::new());
    for page in pages() {
        for mention in mentions(&fs::read_to_string(&page).unwrap()) {
            count += 1;
            if let Some(word) = unknown(&command, &mention) {
                bad.push(format!("{}: `{mention}` has no `{word}`", page.display()));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(count > 200, "{count} commands");
}

/// The words between backticks that begin with `toolgate`, outside of code blocks.
fn mentions(page: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in page.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code {
            let spans = line.split('`').skip(1).step_by(2);
            found
                .extend(spans.filter_map(|span| span.strip_prefix("toolgate ")).map(str::to_owned));
        }
    }
    found
}

/// The first word that is no verb and no option where it is.
fn unknown<'a>(command: &Command, mention: &'a str) -> Option<&'a str> {
    let mut at = command;
    for word in mention.split_whitespace().take_while(|word| *word != "--") {
        let is_name = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        if let Some(option) = word.strip_prefix("--") {
            let name = option.split('=').next();
            if !at.get_arguments().any(|argument| argument.get_long() == name) {
                return Some(word);
            }
        } else if let Some(verb) = at.find_subcommand(word) {
            at = verb;
        } else if is_name && at.has_subcommands() && at.is_subcommand_required_set() {
            return Some(word);
        }
    }
    None
}

/// The pages for users, in both languages.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = ["README.md", "README.ru.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(|name| root.join(name))
        .into();
    let mut folders = vec![root.join("docs"), root.join("skills")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The checks can fail.
#[test]
fn unknown_words_are_found() {
    let mut command = super::command();
    command.build();
    for (mention, word) in [
        ("policy chekc x", Some("chekc")),
        ("policy check --grnat x", Some("--grnat")),
        ("policy …", None),
        ("run --policy p -- npx --any", None),
        ("freeze --all", None),
    ] {
        assert_eq!(unknown(&command, mention), word, "{mention}");
    }
    assert_eq!(mentions("a `toolgate b` `c`\n```\n`toolgate d`\n```\n"), ["b"]);
}
