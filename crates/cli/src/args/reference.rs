//! `docs/reference/cli.md` is generated from the arguments.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command};

#[test]
fn the_page_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap();
    assert_eq!(found, page, "regenerate it with UPDATE=1 cargo test -p toolgate --bin toolgate");
}

fn page() -> String {
    let mut command = super::command();
    command.build();
    let mut page = String::from(
        "# Command line\n\n\
         <!-- Generated from crates/cli/src/args; regenerate with \
         `UPDATE=1 cargo test -p toolgate --bin toolgate`. -->\n\n\
         `toolgate help VERB` prints the same. Results go to stdout, everything else to stderr.\n\n\
         | exit code | meaning |\n|---|---|\n\
         | 0 | success |\n\
         | 1 | a finding: invalid policy, broken audit, denied call, differences |\n\
         | 2 | an error |\n\
         | 64 | wrong usage |\n\n\
         Verbs that need a running gateway use the admin API at `--admin URL` (`TOOLGATE_ADMIN`), \
         by default of the gateway that runs on the data folder, with the token in \
         `TOOLGATE_ADMIN_TOKEN` or in the file `admin.token` of the data folder.\n",
    );
    describe(&command, "toolgate", &mut page);
    page
}

fn describe(command: &Command, path: &str, page: &mut String) {
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let path = format!("{path} {}", verb.get_name());
        let about = verb.get_long_about().or_else(|| verb.get_about());
        let about = about.map(ToString::to_string).unwrap_or_default();
        writeln!(page, "\n## `{path}`\n\n{}", sentence(&about)).unwrap();
        let arguments: Vec<&Arg> = verb.get_arguments().filter(|arg| !is_common(arg)).collect();
        if !arguments.is_empty() {
            page.push_str("\n| argument | meaning |\n|---|---|\n");
        }
        for arg in arguments {
            writeln!(page, "| `{}` | {} |", shown(arg), meaning(arg)).unwrap();
        }
        if let Some(examples) = verb.get_after_help().map(ToString::to_string) {
            let lines = examples.lines().filter_map(|line| line.split_once("toolgate "));
            let lines: Vec<String> = lines.map(|(_, words)| format!("toolgate {words}")).collect();
            writeln!(page, "\n```sh\n{}\n```", lines.join("\n")).unwrap();
        }
        describe(verb, &path, page);
    }
}

/// Arguments of every verb.
fn is_common(arg: &Arg) -> bool {
    ["help", "version"].contains(&arg.get_id().as_str()) || arg.is_hide_set()
}

fn shown(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value: Vec<&str> = names.iter().map(clap::builder::Str::as_str).collect();
    let value = if arg.get_action().takes_values() { value.join(" ") } else { String::new() };
    let text = match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long} {value}"),
        (Some(long), None) => format!("--{long} {value}"),
        _ => value,
    };
    text.trim_end().replace('|', "\\|")
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut parts = vec![help];
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() {
        let values: Vec<String> =
            values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        parts.push(format!("({})", values.join(", ")));
    }
    let default: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if arg.get_action().takes_values() && !default.is_empty() {
        parts.push(format!("[default: `{}`]", default.join(" ")));
    }
    if let Some(variable) = arg.get_env() {
        parts.push(format!("[variable: `{}`]", variable.to_string_lossy()));
    }
    parts.join(" ").replace('\n', " ").replace('|', "\\|")
}

fn sentence(text: &str) -> String {
    let text = text.trim().replace('\n', " ").replace("  ", "\n\n");
    if text.ends_with('.') { text } else { format!("{text}.") }
}
