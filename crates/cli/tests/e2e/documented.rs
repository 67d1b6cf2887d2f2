//! Every command of the documentation is run as shown, in the order of its page, beside a running
//! gateway and in a folder with the files that the page has its readers save.
//!
//! `documented/walk.rs` is the reader. What is replaced: `npx` starts a server of `toolgate demo`, absolute paths lead into the home of the
//! test, and ports are free ones. What is left out is listed with the test that does it
//! ([`LEFT_OUT`]); a command with a placeholder is only parsed (`src/args/documented.rs`). The
//! consoles of `docs/policy.md` are compared with what is printed, in `policy/files.rs`.

#[path = "documented/walk.rs"]
mod walk;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::gate::Home;
use crate::shell::commands;
use walk::{Walk, printed};

/// What a page needs besides its own commands.
struct Page {
    name: &'static str,
    /// Files that readers save: the name, and a text of the YAML block.
    files: &'static [(&'static str, &'static str)],
    /// Commands that must have been run before.
    given: &'static [&'static [&'static str]],
    /// Calls that fail on purpose: the command, and which time.
    fail: &'static [(&'static str, usize)],
}

const PAGES: [Page; 9] = [
    Page {
        name: "README.md",
        files: &[("charge.yaml", "create_charge:")],
        given: &[&["policy", "apply", "first.yaml", "--name", "charge"]],
        fail: &[],
    },
    Page {
        name: "docs/quickstart.md",
        files: &[
            ("policy.yaml", "only a person ends processes"),
            ("toolgate.yaml", "env:DESK_TOKEN"),
        ],
        given: &[],
        fail: &[
            ("tool call system_kill_pid {\"pid\": 1}", 1),
            ("tool call system_kill_pid {\"pid\": 1}", 2),
            ("tool call system_spawn_1c_client", 1),
        ],
    },
    Page { name: "docs/cookbook.md", files: &[("mail.yaml", "send_mail:")], given: &[], fail: &[] },
    Page {
        name: "docs/onec.md",
        files: &[("onec.yaml", "session.infobase_name")],
        given: &[],
        fail: &[],
    },
    Page {
        name: "docs/operations.md",
        files: &[],
        given: &[&["backup", "/backup/toolgate"]],
        fail: &[],
    },
    Page {
        name: "docs/troubleshooting.md",
        files: &[],
        given: &[&["grant", "create", "laptop", "--policy", "recommended"]],
        fail: &[],
    },
    Page {
        name: "skills/toolgate/reference/bootstrap.md",
        files: &[],
        given: &[&["server", "add", "files", "--", "npx"]],
        fail: &[],
    },
    Page {
        name: "skills/toolgate/reference/extending-tools.md",
        files: &[],
        given: &[&["grant", "create", "laptop", "--policy", "recommended"]],
        fail: &[],
    },
    Page {
        name: "skills/toolgate/reference/troubleshooting.md",
        files: &[],
        given: &[
            &["server", "add", "files", "--", "npx"],
            &["grant", "create", "laptop", "--policy", "recommended"],
        ],
        fail: &[],
    },
];

/// Commands that other tests run, by their first words.
const LEFT_OUT: [(&str, &str); 5] = [
    ("run ", "needs a client: run.rs"),
    ("approval watch", "does not end: approvals/watch.rs"),
    ("tool show --diff", "needs a changed definition: pins.rs"),
    ("tool approve", "the same"),
    ("serve --config v8project.yaml", "its ports are those of 1C programs: sessions.rs"),
];

/// Its consoles are compared with what is printed, in `policy/files.rs`.
const CONSOLES: &str = "docs/policy.md";

#[test]
fn the_commands_of_the_readme_run() {
    follow("README.md");
}

#[test]
fn the_commands_of_the_quick_start_run() {
    follow("docs/quickstart.md");
}

#[test]
fn the_commands_of_the_1c_guide_run() {
    follow("docs/onec.md");
}

#[test]
fn the_commands_of_operations_run() {
    follow("docs/operations.md");
}

#[test]
fn the_commands_of_all_other_pages_run() {
    let own = ["README.md", "docs/quickstart.md", "docs/onec.md", "docs/operations.md", CONSOLES];
    let mut walked = 0;
    for page in pages().iter().filter(|page| !own.contains(&page.as_str())) {
        if !steps(page).is_empty() {
            follow(page);
            walked += 1;
        }
    }
    assert!(walked >= 10, "{walked} pages");
}

#[test]
fn what_is_left_out_is_documented() {
    let all: Vec<String> = pages()
        .iter()
        .flat_map(|page| commands(&read(page)))
        .map(|words| words.join(" "))
        .collect();
    for (start, _) in LEFT_OUT {
        assert!(all.iter().any(|command| command.starts_with(start)), "{start}");
    }
    assert!(all.len() > 100, "{} commands", all.len());
}

/// Each recipe is saved as it is and tested by the command that the page shows.
#[test]
fn every_recipe_passes_policy_test() {
    let page = read("docs/cookbook.md");
    let home = Home::new();
    let recipes: Vec<&str> = page.split("\n## ").skip(1).collect();
    for (number, recipe) in recipes.iter().enumerate() {
        let (_, document) = blocks(recipe)
            .into_iter()
            .find(|(language, text)| language == "yaml" && text.contains("tests:"))
            .unwrap();
        fs::write(home.path(&format!("{number}.yaml")), document).unwrap();
    }
    let files: Vec<String> = (0..recipes.len()).map(|number| format!("{number}.yaml")).collect();
    let mut words = vec!["policy", "test"];
    words.extend(files.iter().map(String::as_str));
    let output = home.run(&words);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(recipes.len() >= 20, "{} recipes", recipes.len());
}

/// Runs the commands of a page. One that needs a later one is run again after it.
fn follow(name: &str) {
    let page = PAGES.iter().find(|page| page.name == name);
    let mut walk = Walk::start();
    for words in page.map(|page| page.given).unwrap_or_default() {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let output = walk.run(&words);
        assert!(output.status.success(), "{name}: {words:?}\n{}", printed(&output));
    }
    let (mut waiting, mut seen) = (Vec::new(), Vec::new());
    for step in steps(name) {
        match step {
            Step::Save(file, text) => walk.save(&file, &text),
            Step::Run(words) => {
                let command = words.join(" ");
                seen.push(command.clone());
                let time = seen.iter().filter(|other| **other == command).count();
                let fail = page.map(|page| page.fail).unwrap_or_default();
                let expected = !fail.contains(&(command.as_str(), time));
                if walk.run(&words).status.success() != expected {
                    waiting.push((words, expected));
                }
            }
        }
    }
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut last = String::new();
        waiting.retain(|(words, expected)| {
            let output = walk.run(words);
            last = format!("toolgate {}\n{}", words.join(" "), printed(&output));
            output.status.success() != *expected
        });
        assert!(waiting.len() < before, "{name}: {last}");
    }
}

enum Step {
    /// A file to save.
    Save(String, String),
    /// The arguments of a command.
    Run(Vec<String>),
}

/// What the readers of a page do.
fn steps(name: &str) -> Vec<Step> {
    let files = PAGES.iter().find(|page| page.name == name).map(|page| page.files);
    let mut steps = Vec::new();
    for (language, block) in blocks(&read(name)) {
        let saved = files.unwrap_or_default().iter().find(|(_, text)| block.contains(text));
        if let (Some((file, _)), "yaml") = (saved, language.as_str()) {
            steps.push(Step::Save((*file).to_owned(), block.clone()));
        }
        let typed = commands(&format!("```{language}\n{block}```\n")).into_iter();
        steps.extend(typed.filter(|words| is_run(words)).map(Step::Run));
    }
    steps
}

fn is_run(words: &[String]) -> bool {
    let command = format!("{} ", words.join(" "));
    let is_placeholder = |word: &String| {
        let is_upper = word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        is_upper || word.contains(['…', '<'])
    };
    !words.iter().any(is_placeholder)
        && !LEFT_OUT.iter().any(|(start, _)| command.starts_with(start))
}

/// The code blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                blocks.push((language.to_owned(), String::new()));
            }
        } else if let (true, Some((_, text))) = (is_open, blocks.last_mut()) {
            text.push_str(line);
            text.push('\n');
        }
    }
    blocks
}

/// The pages with commands, as paths from the root. Those in Russian have the same commands
/// (`xtask/tests/russian.rs`), and the reference has the examples of the help texts.
fn pages() -> Vec<String> {
    let mut pages =
        BTreeSet::from(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(PathBuf::from));
    let mut folders = vec![PathBuf::from("docs"), PathBuf::from("skills")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap().map(Result::unwrap) {
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.insert(path);
            }
        }
    }
    let names = pages.iter().map(|page| page.to_str().unwrap().to_owned());
    let is_other = |page: &String| {
        page.contains("/ru/") || page.ends_with(".ru.md") || page.starts_with("docs/reference/")
    };
    names.filter(|page| !is_other(page)).collect()
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
