//! The commands of the documentation that need no gateway are run as shown, in the order of their
//! page, in a folder with the files that the page has its readers save.
//!
//! The consoles of `docs/policy.md` are compared with what is printed, in `policy/files.rs`. Commands
//! that need a gateway are at least accepted by the parser: `crates/cli/src/args/documented.rs`.

use std::fs;
use std::path::Path;

use crate::gate::Home;
use crate::shell::commands;

/// A page, its files (the name, and a text of the YAML block to save), and how many commands are run.
type Page = (&'static str, &'static [(&'static str, &'static str)], usize);

const PAGES: [Page; 5] = [
    ("README.md", &[("charge.yaml", "create_charge:")], 7),
    (
        "docs/quickstart.md",
        &[("policy.yaml", "only a person ends processes"), ("toolgate.yaml", "env:DESK_TOKEN")],
        3,
    ),
    ("docs/cookbook.md", &[("mail.yaml", "send_mail:")], 3),
    ("docs/catalogue.md", &[], 4),
    ("docs/onec.md", &[("onec.yaml", "session.infobase_name")], 8),
];

/// The file of an existing installation, which pages only name.
const V8PROJECT: &str =
    "workPath: ./work\nmcp:\n  session_manager: { bind_address: 127.0.0.1:4000 }\n";

/// Verbs that work without a gateway.
const OFFLINE: [&[&str]; 11] = [
    &["policy", "check"],
    &["policy", "test"],
    &["policy", "explain"],
    &["policy", "fmt"],
    &["config"],
    &["catalog", "search"],
    &["catalog", "show"],
    &["import"],
    &["client", "connect"],
    &["session", "token"],
    &["serve", "--dry-run"],
];

#[test]
fn documented_commands_run() {
    for (name, files, expected) in PAGES {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let page = fs::read_to_string(page).unwrap();
        let home = Home::new();
        fs::write(home.path("v8project.yaml"), V8PROJECT).unwrap();
        for (file, text) in files {
            fs::write(home.path(file), block(&page, text)).unwrap();
        }
        let offline: Vec<Vec<String>> =
            commands(&page).into_iter().filter(|words| is_offline(words)).collect();
        for words in &offline {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = home.command(&words).env("DESK_TOKEN", "5".repeat(64)).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: toolgate {}\n{printed}", words.join(" "));
        }
        assert_eq!(offline.len(), expected, "{name}: {offline:?}");
    }
}

/// Each recipe is saved as it is and tested by the command that the page shows.
#[test]
fn every_recipe_passes_policy_test() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cookbook.md");
    let page = fs::read_to_string(page).unwrap();
    let home = Home::new();
    let recipes: Vec<&str> = page.split("\n## ").skip(1).collect();
    for (number, recipe) in recipes.iter().enumerate() {
        fs::write(home.path(&format!("{number}.yaml")), block(recipe, "tests:")).unwrap();
    }
    let files: Vec<String> = (0..recipes.len()).map(|number| format!("{number}.yaml")).collect();
    let mut words = vec!["policy", "test"];
    words.extend(files.iter().map(String::as_str));
    let output = home.run(&words);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(recipes.len() >= 20, "{} recipes", recipes.len());
}

/// The first YAML block with this text.
fn block<'a>(page: &'a str, text: &str) -> &'a str {
    let mut blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.contains(text)).unwrap()
}

/// `explain --grant` asks the gateway.
fn is_offline(words: &[String]) -> bool {
    let starts = |verb: &&[&str]| {
        verb.iter().zip(words).filter(|(one, other)| *one == other).count() == verb.len()
    };
    OFFLINE.iter().any(starts) && !words.iter().any(|word| word == "--grant")
}
