use super::*;
use crate::process::output;
use crate::root;

const PAGE: &str = "docs/mutants.md";

/// A change of the sources that breaks a patch shows here, not weeks later.
#[test]
fn every_patch_applies() {
    let broken: Vec<String> = patch::all()
        .unwrap()
        .iter()
        .filter_map(|patch| {
            let check = output(patch::git_apply(root()).arg("--check").arg(&patch.file));
            check.err().map(|error| format!("{error:#}"))
        })
        .collect();
    assert!(broken.is_empty(), "repair them as {PAGE} describes:\n{}", broken.join("\n"));
}

#[test]
fn every_named_test_exists() {
    for Patch { name, caught_by: TestName { package, path }, .. } in patch::all().unwrap() {
        let (module, function) = path.rsplit_once("::").unwrap();
        let folder = package.strip_prefix("toolgate-").unwrap();
        let file = format!("crates/{folder}/src/{}.rs", module.replace("::", "/"));
        let source = std::fs::read_to_string(root().join(&file)).unwrap();
        let test = format!("#[test]\nfn {function}()");
        assert!(source.contains(&test), "{name}: there is no test `{function}` in `{file}`");
    }
}

/// `UPDATE=1` rewrites the page.
#[test]
fn the_page_lists_the_patches() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (before, table) = page.split_at(page.find("| mutant |").unwrap());
    let wanted = table_of(&patch::all().unwrap());
    if std::env::var_os("UPDATE").is_some() {
        return std::fs::write(root().join(PAGE), format!("{before}{wanted}")).unwrap();
    }
    assert!(table == wanted, "{PAGE} is not up to date: `UPDATE=1 cargo test -p xtask mutants`");
}

fn table_of(patches: &[Patch]) -> String {
    let row = |patch: &Patch| {
        let Patch { name, breaks, caught_by: TestName { package, path }, .. } = patch;
        format!("| `{name}` | {breaks} | `{package}` `{path}` |\n")
    };
    let head = "| mutant | what it breaks | caught by |\n|---|---|---|\n".to_owned();
    std::iter::once(head).chain(patches.iter().map(row)).collect()
}

#[test]
fn every_patch_has_its_turn_once_in_ten_days() {
    let patches = patch::all().unwrap();
    for start in [0, 7, 20_000] {
        let turns = (start..start + DAYS).map(|day| tenth(&patches, day));
        let mut names: Vec<&str> = turns.flatten().map(|patch| patch.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, patches.iter().map(|patch| patch.name.as_str()).collect::<Vec<_>>());
    }
}

#[test]
fn a_header_names_the_mistake_and_the_test() {
    let (breaks, test) = patch::header("Breaks: It.\nCaught by: pack a::b\n\ndiff").unwrap();
    assert_eq!((breaks.as_str(), test.to_string().as_str()), ("It.", "pack a::b"));
    for bad in ["", "Breaks: It.\n", "Caught by: pack a::b\n", "Breaks: It.\nCaught by: pack\n"] {
        patch::header(bad).unwrap_err();
    }
}

#[test]
fn an_unknown_name_is_an_error() {
    let error = named(&patch::all().unwrap(), &["nonsense"]).unwrap_err().to_string();
    assert!(error.contains("`nonsense`"), "{error}");
}
