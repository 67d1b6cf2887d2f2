//! Every code has a failing example; the reference page is made from them.
//!
//! `UPDATE=1 cargo test -p toolgate-policy` writes the page anew.

use std::{fs, path::Path};

use toolgate_policy::{Class, Code, Known, KnownTool, Loaded, Policy, Problem, Severity};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The example of a code. Two are too long for a file.
fn example(code: Code) -> String {
    let head = "version: \"1\"\ndefault: allow\n";
    match code {
        Code::TooLarge => format!("{head}hide: {}{}\n", "[".repeat(70), "]".repeat(70)),
        Code::TooManyRegexes => {
            let rows: String = (0..1001)
                .map(|i| {
                    format!(
                        "      - conditions: [{{ path: args.a, op: regex, value: \"a{i}\" }}]\n"
                    )
                })
                .collect();
            format!("{head}tools:\n  x:\n    deny_if:\n{rows}")
        }
        code => {
            let path = folder().join("tests/codes").join(format!("{}.yaml", code.as_str()));
            fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        }
    }
}

/// `# known: server/tool class, …` on the first line.
fn known(text: &str) -> Known {
    let Some(list) = text.lines().next().and_then(|line| line.strip_prefix("# known: ")) else {
        return Known::default();
    };
    let tools = list
        .split(", ")
        .map(|tool| {
            let (path, class) = tool.split_once(' ').unwrap();
            let (server, name) = path.split_once('/').unwrap();
            let class = Class::parse(class).unwrap();
            KnownTool { server: server.into(), name: name.into(), class }
        })
        .collect();
    Known { tools: Some(tools), ..Known::default() }
}

fn load(text: &str) -> Loaded {
    Policy::load("p", text, &known(text))
}

fn problem(code: Code) -> (String, Problem) {
    let text = example(code);
    let problems = load(&text).problems;
    let found = problems.iter().find(|p| p.code == code).cloned();
    (text, found.unwrap_or_else(|| panic!("{} is not reported: {problems:?}", code.as_str())))
}

#[test]
fn every_code_has_an_example_that_reports_it_and_nothing_else() {
    for code in Code::ALL {
        let (text, problem) = problem(*code);
        let loaded = load(&text);
        assert!(loaded.problems.iter().all(|p| p.code == *code), "{:#?}", loaded.problems);
        let refused = loaded.policy.is_none();
        assert_eq!(refused, problem.severity == Severity::Error, "{}", code.as_str());
    }
}

#[test]
fn every_message_names_the_place_the_fault_and_the_cure() {
    for code in Code::ALL {
        let (text, problem) = problem(*code);
        let name = code.as_str();
        assert!(problem.line >= 1 && problem.column >= 1, "{name}");
        let Problem { message, hint, .. } = &problem;
        assert!(!message.is_empty() && !hint.is_empty(), "{name}");
        for part in [message, hint] {
            assert!(!part.ends_with('.'), "{name}: {part}");
            assert!(!part.contains('\n'), "{name}: {part}");
            let first = part.chars().next().unwrap();
            assert!(!first.is_ascii_uppercase() || part.starts_with("Intercept"), "{name}: {part}");
        }
        let rendered = problem.render("policy.yaml", &text);
        assert!(
            rendered.starts_with(&format!("policy.yaml:{}:{}: ", problem.line, problem.column))
        );
        assert!(rendered.contains('^') && rendered.contains("hint: "), "{rendered}");
    }
}

#[test]
fn codes_are_unique_and_in_order() {
    let names: Vec<&str> = Code::ALL.iter().map(|c| c.as_str()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(names, sorted);
}

#[test]
fn the_reference_page_is_up_to_date() {
    let page = page();
    let path = folder().join("../../docs/reference/policy-errors.md");
    if std::env::var("UPDATE").is_ok() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/policy-errors.md is stale: run with UPDATE=1");
}

fn page() -> String {
    let mut page = String::from(
        "# Problems `policy check` reports\n\n\
         Generated from the codes and their examples by the tests of `toolgate-policy`; do not edit.\n\
         Codes below TG0100 refuse a document, the others are warnings.\n",
    );
    for code in Code::ALL {
        let (text, problem) = problem(*code);
        let (name, title, advice) = (code.as_str(), code.title(), code.advice());
        page.push_str(&format!("\n## {name}: {title}\n\n{advice}\n\n"));
        if text.len() < 1_000 && *code != Code::TooLarge {
            let rendered = problem.render("policy.yaml", &text);
            page.push_str(&format!("```yaml\n{text}```\n\n```text\n{rendered}```\n"));
        } else {
            page.push_str(&format!("```text\n{}\nhint: {}\n```\n", problem.message, problem.hint));
        }
    }
    page
}
