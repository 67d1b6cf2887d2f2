//! Any text as `toolgate.yaml` and as `v8project.yaml`: no panic; every problem lies inside the
//! text; no problem shows a secret; what is imported means the same as what it was made of.

#![no_main]

use std::io;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use toolgate_config::{Config, PolicyConfig, PolicySource, Problem, Surroundings, render};
use toolgate_policy::{Known, Policy};

/// What every variable and every other file holds.
const SECRET: &str = "kQ7xW2mZ9pL4vB8nT1cR6yD3hJ5gF0sA-secret";
const FILE: &str = "/etc/toolgate/toolgate.yaml";

struct World<'t>(&'t [u8]);

impl Surroundings for World<'_> {
    fn env(&self, name: &str) -> Option<String> {
        (!name.starts_with("MISSING")).then(|| SECRET.to_owned())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some(FILE) => Ok(self.0.to_vec()),
            Some(path) if path.contains("missing") => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(SECRET.as_bytes().to_vec()),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let (world, file) = (World(input), Path::new(FILE));
    let loaded = Config::load(file, &world);
    match &loaded {
        Ok(loaded) => check_problems(input, &loaded.warnings),
        Err(problems) => {
            assert!(!problems.is_empty(), "it is not used, and nothing says why");
            check_problems(input, problems);
        }
    }
    match Config::import(file, &world) {
        Ok(imported) => {
            let mut again = Config::parse(&imported.text, file, &world)
                .unwrap_or_else(|problems| panic!("{}{}", imported.text, render(&problems)))
                .config;
            // `toolgate.yaml` has no key for it; the import copies the file.
            again.sessions.cache_file.clone_from(&imported.loaded.config.sessions.cache_file);
            check_policies(&again, &imported.loaded.config);
            again.policies.clone_from(&imported.loaded.config.policies);
            assert_eq!(again, imported.loaded.config, "{}", imported.text);
            assert_eq!(loaded.as_ref(), Ok(&imported.loaded));
        }
        Err(problems) => check_problems(input, &problems),
    }
});

/// Policies are laid out anew; they mean the same.
fn check_policies(again: &Config, imported: &Config) {
    let meaning = |config: &PolicyConfig| match &config.source {
        PolicySource::Inline(text) => Policy::load(&config.name, text, &Known::default())
            .policy
            .map(|policy| policy.hash().to_owned()),
        PolicySource::File(_) => None,
    };
    assert_eq!(again.policies.len(), imported.policies.len());
    for (again, imported) in again.policies.iter().zip(&imported.policies) {
        assert_eq!((&again.name, meaning(again)), (&imported.name, meaning(imported)));
    }
}

fn check_problems(input: &[u8], problems: &[Problem]) {
    let text = String::from_utf8_lossy(input);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let ends = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = ends.split('\n').collect();
    for problem in problems {
        let whole = problem.line == 0 && problem.column == 0;
        let inside = problem
            .line
            .checked_sub(1)
            .and_then(|place| lines.get(place))
            .is_some_and(|line| (1..=line.chars().count() + 1).contains(&problem.column));
        assert!(
            whole || inside,
            "{}:{} is not in the text: {problem}",
            problem.line,
            problem.column
        );
        if let Some(snippet) = &problem.snippet {
            assert!(
                snippet.caret <= snippet.line.chars().count() && snippet.width >= 1,
                "{problem}"
            );
        }
    }
    assert!(!render(problems).contains(SECRET), "a secret is shown: {}", render(problems));
}
