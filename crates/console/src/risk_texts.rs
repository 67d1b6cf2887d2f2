//! Risk in the language of the reader: the signals of an assessment, and what could go wrong.
//!
//! The API has these texts in English. Their parts are recognised again; a text that is not is shown
//! as it is. In English the result equals that of the API (tests below).

use crate::texts::Language;

/// What a text about a hazard is made of.
pub(crate) struct Risk<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) class: &'a str,
    /// The names of labels that are set.
    pub(crate) labels: &'a [String],
    /// The names of its arguments.
    pub(crate) arguments: Vec<&'a str>,
    /// What was found, and where.
    pub(crate) signals: Vec<(&'a str, &'a str)>,
}

/// Texts without a part that varies, and their keys.
const FIXED: [(&str, &str); 16] = [
    ("runs queries, and does not state that they only read", "signal-any-query"),
    ("states that its queries only read", "signal-read-query"),
    ("states that something is lost", "signal-lost"),
    ("named after what it reports", "signal-report"),
    ("there is no description", "signal-no-description"),
    ("no known verb", "signal-no-verb"),
    ("name and description imply different classes", "signal-disagree"),
    (ASKS, "signal-asks"),
    ("takes a path of a file system", "signal-path"),
    ("takes a URL", "signal-url"),
    ("takes an amount of money", "signal-amount"),
    ("takes code or a command", "signal-code"),
    ("takes a query", "signal-query"),
    ("takes a recipient", "signal-recipient"),
    ("declares itself destructive", "signal-declared-destructive"),
    ("declares that it does not only read", "signal-declared-writing"),
];
const READ_ONLY: &str = "declares itself read-only, which does not lower the class";
const ASKS: &str = "asks that a person decides first";

/// Texts about a word in backticks: what is before it, after it, and the key.
const QUOTED: [(&str, &str, &str); 4] = [
    ("`", "` is negated", "signal-negated"),
    ("the effect of `", "` depends on its object", "signal-vague"),
    ("`", "` with money as its object", "signal-money"),
    ("`", "` with code as its object", "signal-runs-code"),
];

/// Texts that end with a class.
const OF_CLASS: [(&str, &str); 4] = [
    ("can select an operation of class ", "signal-operation"),
    ("a switch of class ", "signal-switch"),
    ("known tool of 1C programs, class ", "signal-curated"),
    ("configured class ", "signal-configured"),
];

/// Keys of sentences about arguments, by what the argument is.
const ARGUMENTS: [(&str, &str); 6] = [
    ("takes a path of a file system", "hazard-path"),
    ("takes a URL", "hazard-url"),
    ("takes an amount of money", "hazard-amount"),
    ("takes code or a command", "hazard-code"),
    ("takes a query", "hazard-query"),
    ("takes a recipient", "hazard-recipient"),
];

/// How many arguments are named.
const NAMED: usize = 4;

/// A signal: what, and where.
pub(crate) fn signal(language: Language, what: &str, place: &str) -> (String, String) {
    let what = text_of(language, what).unwrap_or_else(|| what.to_owned());
    let place = match place.strip_prefix("argument ") {
        Some(name) => with(language, "place-argument", name),
        None => match place {
            "name" | "title" | "description" | "annotations" | "toolgate" => {
                language.text(&format!("place-{place}"), &[])
            }
            other => other.to_owned(),
        },
    };
    (what, place)
}

fn text_of(language: Language, what: &str) -> Option<String> {
    if what == READ_ONLY {
        return Some(language.text("signal-declared-read-only", &[]));
    }
    if let Some((_, key)) = FIXED.iter().find(|(text, _)| *text == what) {
        return Some(language.text(key, &[]));
    }
    for (before, after, key) in QUOTED {
        let word = what.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        if let Some(word) = word {
            return Some(with(language, key, word));
        }
    }
    for (before, key) in OF_CLASS {
        if let Some(class) = what.strip_prefix(before) {
            return Some(with(language, key, &class_text(language, class)));
        }
    }
    let (verb, class) = what.strip_prefix('`')?.split_once("` is a verb of class ")?;
    let class = class_text(language, class);
    let values = [("value", verb.to_owned().into()), ("class", class.into())];
    Some(language.text("signal-verb", &values))
}

fn class_text(language: Language, class: &str) -> String {
    language.text(&format!("class-{class}"), &[])
}

fn with(language: Language, key: &str, value: &str) -> String {
    language.text(key, &[("value", value.to_owned().into())])
}

/// What could go wrong if an agent calls the tool unwatched.
pub(crate) fn hazard(language: Language, risk: &Risk<'_>) -> String {
    let mut sentences = vec![of_class(language, risk)];
    for (what, place) in &risk.signals {
        let known = ARGUMENTS.iter().find(|(text, _)| text == what);
        if let (Some((_, key)), Some(name)) = (known, place.strip_prefix("argument ")) {
            let reads = *key == "hazard-path" && risk.class == "read";
            sentences.push(with(language, if reads { "hazard-path-read" } else { key }, name));
        }
    }
    for label in risk.labels {
        sentences.push(language.text(&format!("hazard-{}", label.replace('_', "-")), &[]));
    }
    if risk.signals.iter().any(|(what, _)| *what == ASKS) {
        sentences.push(language.text("hazard-asks", &[]));
    }
    sentences.join(" ")
}

fn of_class(language: Language, risk: &Risk<'_>) -> String {
    let shown: Vec<String> =
        risk.arguments.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let mut arguments = shown.join(", ");
    if risk.arguments.len() > NAMED {
        arguments = with(language, "hazard-others", &arguments);
    }
    let values = [
        ("server", risk.server.to_owned().into()),
        ("tool", risk.tool.to_owned().into()),
        ("arguments", arguments.into()),
        ("count", shown.len().into()),
    ];
    let declared = if is_declared(risk) { "-declared" } else { "" };
    let without = if shown.is_empty() { "-without-arguments" } else { "" };
    language.text(&format!("hazard-{}{declared}{without}", risk.class), &values)
}

/// Whether nothing but its server's declaration makes a tool destructive.
fn is_declared(risk: &Risk<'_>) -> bool {
    let has = |is: &dyn Fn(&str) -> bool| risk.signals.iter().any(|(what, _)| is(what));
    risk.class == "destructive"
        && has(&|what| what == "declares itself destructive")
        && !has(&|what| {
            what == "states that something is lost" || what.ends_with("class destructive")
        })
}

#[cfg(test)]
mod tests {
    use toolgate_catalog::{Class, Definition, What, classify, what_could_go_wrong};

    use super::*;

    const ALL: [What; 27] = [
        What::Verb("delete", Class::Destructive),
        What::Negated("delete"),
        What::Vague("manage"),
        What::Money("send"),
        What::RunsCode("run"),
        What::AnyQuery,
        What::ReadQuery,
        What::Lost,
        What::Report,
        What::NoDescription,
        What::NoVerb,
        What::Disagree,
        What::AsksForPerson,
        What::TakesPath,
        What::TakesUrl,
        What::TakesAmount,
        What::TakesCode,
        What::TakesQuery,
        What::TakesRecipient,
        What::Operation(Class::Write),
        What::Switch(Class::Destructive),
        What::DeclaredDestructive,
        What::DeclaredWriting,
        What::DeclaredReadOnly,
        What::Curated(Class::Read),
        What::Configured(Class::Execute),
        What::Configured(Class::Financial),
    ];

    #[test]
    fn every_signal_is_recognised_and_equal_in_english() {
        for what in ALL {
            let said = what.to_string();
            assert_eq!(text_of(Language::English, &said).as_ref(), Some(&said));
            let russian = text_of(Language::Russian, &said).unwrap();
            assert!(russian.chars().any(|c| ('а'..='я').contains(&c)), "{said}: {russian}");
        }
        let place = signal(Language::Russian, "no known verb", "argument path").1;
        assert_eq!(place, "аргумент path");
    }

    #[test]
    fn a_hazard_is_equal_to_that_of_the_api_in_english() {
        let definitions = [
            r#"{"name":"read_file","description":"Reads a file of your disk","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}"#,
            r#"{"name":"run_script","description":"Runs a shell command","inputSchema":{"type":"object","properties":{"command":{"type":"string"}}}}"#,
            r#"{"name":"delete_note","description":"Permanently deletes a note","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}"#,
            r#"{"name":"pay_invoice","description":"Pays an invoice. Ask the user first.","inputSchema":{"type":"object","properties":{"amount":{"type":"number"},"a":{},"b":{},"c":{},"d":{}}}}"#,
            r#"{"name":"send_email","description":"Sends an email","inputSchema":{"type":"object","properties":{"to":{"type":"string"},"body":{"type":"string"}}}}"#,
            r#"{"name":"fetch","description":"Fetches a web page","inputSchema":{"type":"object","properties":{"url":{"type":"string"}}}}"#,
            r#"{"name":"frobnicate"}"#,
        ];
        for raw in definitions {
            let definition = Definition::parse(raw).unwrap();
            let found = classify(&definition);
            let signals: Vec<(String, String)> = found
                .signals
                .iter()
                .map(|it| (it.what.to_string(), it.place.to_string()))
                .collect();
            let labels: Vec<String> = found.labels.names().map(str::to_owned).collect();
            let risk = Risk {
                server: "desk",
                tool: &definition.name,
                class: found.class.as_str(),
                labels: &labels,
                arguments: definition.argument_names().collect(),
                signals: signals.iter().map(|(what, place)| (&**what, &**place)).collect(),
            };
            let expected = what_could_go_wrong("desk", &definition, &found);
            assert_eq!(hazard(Language::English, &risk), expected);
            let russian = hazard(Language::Russian, &risk);
            assert!(!russian.contains("hazard-") && russian.contains("desk"), "{russian}");
        }
    }
}
