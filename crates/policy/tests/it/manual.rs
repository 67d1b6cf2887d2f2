//! The examples of the documentation are documents: each one loads without a problem and passes its
//! tests. Pages are the manual, the quick start, the 1C guide, the cookbook, `docs/attacks/` and
//! translations.

use std::fs;
use std::path::{Path, PathBuf};

use toolgate_policy::{Known, Policy, TestReport, format};

/// The recipes of the cookbook.
const RECIPES: usize = 20;

#[test]
fn the_examples_of_the_manual_are_good_documents() {
    let manual = read("docs/policy.md");
    assert!(blocks(&manual).iter().any(|block| is_whole(block)));
    for name in ["policy.md", "quickstart.md", "onec.md"] {
        check_page(&read(&format!("docs/{name}")));
        let translation = root().join("docs/ru").join(name);
        if translation.exists() {
            check_page(&fs::read_to_string(translation).unwrap());
        }
    }
}

#[test]
fn the_examples_about_attacks_are_good_documents() {
    for page in pages("docs/attacks") {
        check_page(&fs::read_to_string(page).unwrap());
    }
}

/// A recipe is one complete document in the standard layout whose tests reach every rule.
#[test]
fn every_recipe_of_the_cookbook_is_complete() {
    let page = read("docs/cookbook.md");
    let recipes: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert_eq!(recipes.len(), RECIPES);
    for (recipe, number) in recipes.iter().zip(1..) {
        let title = recipe.lines().next().unwrap();
        assert!(title.starts_with(&format!("{number}. ")), "{title}");
        let [document] = blocks(recipe)[..] else { panic!("{title}: one document") };
        assert!(is_whole(document), "{title}");
        let report = check(document);
        assert!(!report.results.is_empty(), "{title}: has tests");
        assert_eq!(report.unreached, Vec::<String>::new(), "{title}");
        assert_eq!(format(document).unwrap(), document, "{title}: formatted");
    }
}

/// Loads every policy of a page. Fragments are completed; files of the gateway are not policies.
fn check_page(page: &str) {
    for block in blocks(page).into_iter().filter(|block| !block.contains("version: 1\n")) {
        if is_whole(block) {
            check(block);
        } else if block.starts_with("tools:") {
            check(&format!("version: \"1\"\ndefault: allow\n{block}"));
        } else {
            let entry: String = block.lines().map(|line| format!("    {line}\n")).collect();
            check(&format!("version: \"1\"\ndefault: allow\ntools:\n  x:\n{entry}"));
        }
    }
}

fn check(document: &str) -> TestReport {
    let loaded = Policy::load("p", document, &Known::default());
    assert!(loaded.problems.is_empty(), "{document}\n{:#?}", loaded.problems);
    let report = loaded.policy.unwrap().run_tests();
    assert!(report.passed(), "{document}\n{report:#?}");
    assert!(format(document).is_ok());
    report
}

fn is_whole(block: &str) -> bool {
    block.contains("version:")
}

fn blocks(page: &str) -> Vec<&str> {
    page.split("```yaml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect()
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// The pages of a folder, if it exists.
fn pages(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
