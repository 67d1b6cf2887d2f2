//! `docs/errors`: one page per code, generated.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Known, all};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

const GENERATED: &str = "<!-- Generated from the codes; regenerate with \
                         `UPDATE=1 cargo test -p toolgate --bin toolgate`. -->";

fn page(known: &Known) -> String {
    let code = known.code();
    let (title, body, more) = match known {
        Known::Agent(known) => {
            let prefix = match known.prefix {
                "" => String::new(),
                prefix => format!("\n\nThe text that the agent reads begins with `{prefix}`."),
            };
            let body = format!(
                "{}{prefix}\n\n* Agents: {}\n* Operators: {}",
                known.when, known.agent, known.operator
            );
            (format!("`{code}`"), body, "[all codes of agents](../reference/error-codes.md)")
        }
        Known::Policy(known) => {
            let example = example(code);
            let body = format!("{}{example}", known.advice());
            let title = format!("{code}: {}", known.title());
            (title, body, "[all problems of policies](../reference/policy-errors.md)")
        }
        Known::Config(_, what) => {
            let body = "`toolgate config check` names the line of `toolgate.yaml`, the fault, and how \
                        to correct it.";
            let title = format!("{code}: {}", what.trim());
            (title, body.to_owned(), "[all keys of toolgate.yaml](../reference/config.md)")
        }
    };
    format!(
        "# {title}\n\n{GENERATED}\n\n{body}\n\n`toolgate explain {code}` prints this. See also: {more}.\n"
    )
}

/// The failing example of a problem of policies.
fn example(code: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policy/tests/codes");
    let text = fs::read_to_string(file.join(code).with_extension("yaml")).unwrap_or_default();
    if text.is_empty() {
        return String::new();
    }
    format!("\n\nA document with this problem:\n\n```yaml\n{}\n```", text.trim_end())
}

fn index() -> String {
    let mut text = format!(
        "# Error codes\n\n{GENERATED}\n\nOne page per code: of refused calls, of policies (`TG0…`), of \
         `toolgate.yaml` (`TG1…`).\n\n| code | meaning |\n|---|---|\n"
    );
    for known in all() {
        let what = match &known {
            Known::Agent(known) => known.when.to_owned(),
            Known::Policy(known) => known.title().to_owned(),
            Known::Config(_, what) => what.trim().to_owned(),
        };
        let code = known.code();
        text.push_str(
            &["| [", code, "](", code, ".md) | ", &what.replace('|', "\\|"), " |\n"].concat(),
        );
    }
    text
}

#[test]
fn every_code_has_its_page() {
    let mut pages: BTreeMap<String, String> =
        all().map(|known| (format!("{}.md", known.code()), page(&known))).collect();
    pages.insert("README.md".to_owned(), index());
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(folder()).unwrap();
        for (name, text) in &pages {
            fs::write(folder().join(name), text).unwrap();
        }
    }
    for (name, text) in &pages {
        let found = fs::read_to_string(folder().join(name)).unwrap_or_default();
        assert_eq!(found, *text, "{name}; regenerate it with UPDATE=1");
    }
    for file in fs::read_dir(folder()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(pages.contains_key(&name), "{name} is about no code");
    }
}
