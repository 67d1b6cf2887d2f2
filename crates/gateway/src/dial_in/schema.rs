//! Checks arguments against the schema of a tool: of sessions always, of servers with `validate:
//! true`.
//!
//! Schemas come from programs that dial in: they are bounded when they are read
//! (`toolgate-session`), external references are never fetched, and patterns are matched in linear
//! time. The cost of a check is computed first (`schema/measure.rs`), and a few threads run the checks
//! (`schema/workers.rs`).
//!
//! Invariant: fail closed. Arguments that cannot be checked do not match.
//! Invariant: error messages contain no argument values.
//!
//! Start at [`Schemas::check`].

mod measure;
mod workers;

use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use parking_lot::Mutex;
use serde_json::Value;
use toolgate_json::peek;
use toolgate_session::{CallTarget, Schema, SessionFailure};
use toolgate_upstream::arguments::InvalidArguments;

use self::measure::{Measure, Stop};
use self::workers::Workers;

/// The maximum number of compiled schemas in the cache, and of their bytes.
const KEPT: usize = 4_096;
const KEPT_BYTES: usize = 16 * 1024 * 1024;
/// The maximum size of a compiled regular expression.
const PATTERN: usize = 256 * 1024;
/// The maximum number of errors in one refusal.
const MAX_ERRORS: usize = 5;
/// Up to this cost the errors are listed, which takes longer than finding that there is one.
const EXPLAINED: u64 = 50_000;

/// Checks arguments.
#[derive(Default)]
pub(crate) struct Schemas {
    workers: Workers,
    compiled: Arc<Compiled>,
}

/// Compiled schemas, by their hash.
#[derive(Default)]
struct Compiled(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_hash: HashMap<[u8; 32], Result<Arc<Ready>, UnusableSchema>>,
    bytes: usize,
}

/// A compiled schema.
struct Ready {
    schema: Value,
    validator: Validator,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnusableSchema(Arc<str>);

/// Why arguments do not match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    /// The schema cannot be used.
    #[error("the tool cannot be called, because its schema cannot be checked: {0}")]
    Schema(#[from] UnusableSchema),
    /// The arguments are not JSON.
    #[error("they are not valid JSON")]
    NotJson,
    /// The check would take too many steps.
    #[error("to check them against the schema of the tool is too much work")]
    TooMuchWork,
    /// A key differs from a declared one only by case or form.
    #[error("write `{declared}` instead of `{key}`")]
    Variant {
        /// The declared key.
        declared: String,
        /// The key of the arguments.
        key: String,
    },
    /// They do not match; the errors are not listed.
    #[error("they do not match the schema of the tool")]
    Unexplained,
    /// They do not match, for these reasons.
    #[error("{0}")]
    Errors(String),
}

impl Schemas {
    /// Checks the arguments of a call, off the threads that serve connections. `asked` are the
    /// arguments of the agent.
    pub(crate) async fn check(
        &self,
        grant: &str,
        target: &CallTarget,
        asked: &str,
    ) -> Result<(), SessionFailure> {
        let Some(slot) = self.workers.slot(grant, &target.session_id).await else {
            let session_id = Arc::clone(&target.session_id);
            return Err(SessionFailure::SessionBusy { session_id, waiting: 0, retry_after_s: 1 });
        };
        let (target, asked) = (target.clone(), asked.to_owned());
        let compiled = Arc::clone(&self.compiled);
        let checked = tokio::task::spawn_blocking(move || {
            let checked = compiled.check(&target, &asked);
            drop(slot);
            checked
        });
        checked.await.unwrap_or_else(|error| {
            tracing::error!(%error, "arguments of a call not checked");
            Err(invalid("they could not be checked; see the log"))
        })
    }
}

impl Schemas {
    /// Checks the arguments of a call to a server against the `inputSchema` of a definition, off the
    /// threads that serve connections.
    pub(crate) async fn check_definition(
        &self,
        grant: &str,
        server: &str,
        definition: Arc<str>,
        arguments: Arc<str>,
    ) -> Result<(), InvalidArguments> {
        let Some(slot) = self.workers.slot(grant, server).await else {
            let why = "they could not be checked in time, because others are checked; try again";
            return Err(InvalidArguments(why.to_owned()));
        };
        let compiled = Arc::clone(&self.compiled);
        let checked = tokio::task::spawn_blocking(move || {
            let checked = compiled.fits_definition(&definition, &arguments);
            drop(slot);
            checked
        });
        match checked.await {
            Ok(checked) => checked.map_err(|why| InvalidArguments(why.to_string())),
            Err(error) => {
                tracing::error!(%error, "arguments of a call not checked");
                Err(InvalidArguments("they could not be checked; see the log".to_owned()))
            }
        }
    }
}

impl Compiled {
    /// A definition without a schema accepts any arguments.
    fn fits_definition(&self, definition: &str, arguments: &str) -> Result<(), Mismatch> {
        let unusable = || UnusableSchema("its definition has no schema that is an object".into());
        let raw = peek(definition, &["inputSchema"]).map_err(|_| unusable())?;
        let Some(raw) = raw else { return Ok(()) };
        let schema = Schema::parse(raw).ok_or_else(unusable)?;
        self.fits(&schema, arguments, false)
    }

    fn check(&self, target: &CallTarget, asked: &str) -> Result<(), SessionFailure> {
        target.check_keys(asked)?;
        let schema = &target.tool.checked_schema;
        self.fits(schema, &target.arguments, target.identifier_keys)
            .map_err(|why| SessionFailure::InvalidArguments { what: why.to_string() })
    }

    fn fits(&self, schema: &Schema, arguments: &str, exact_keys: bool) -> Result<(), Mismatch> {
        let ready = self.ready(schema)?;
        let arguments: Value = serde_json::from_str(arguments).map_err(|_| Mismatch::NotJson)?;
        let steps = match Measure::of(&ready.schema, &arguments, exact_keys) {
            Ok(steps) => steps,
            Err(Stop::TooMuch) => return Err(Mismatch::TooMuchWork),
            Err(Stop::Variant { key, declared }) => {
                let short = |text: String| text.chars().take(64).collect();
                return Err(Mismatch::Variant { declared: short(declared), key: short(key) });
            }
        };
        if ready.validator.is_valid(&arguments) {
            return Ok(());
        }
        if steps > EXPLAINED {
            return Err(Mismatch::Unexplained);
        }
        let mut errors: Vec<String> = Vec::new();
        for error in ready.validator.iter_errors(&arguments).take(MAX_ERRORS) {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "the arguments".to_owned() } else { place };
            errors.push(format!("{place}: {}", error.masked()));
        }
        Err(Mismatch::Errors(errors.join("; ")))
    }

    fn ready(&self, schema: &Schema) -> Result<Arc<Ready>, UnusableSchema> {
        if let Some(why) = &schema.exceeded {
            return Err(UnusableSchema(Arc::clone(why)));
        }
        if let Some(known) = self.0.lock().by_hash.get(&schema.hash) {
            return known.clone();
        }
        let raw = schema.raw.get();
        let compiled = compile(raw).map(Arc::new);
        if let Err(why) = &compiled {
            tracing::warn!(%why, "schema of a tool not usable; the tool cannot be called");
        }
        let mut kept = self.0.lock();
        if kept.by_hash.len() >= KEPT || kept.bytes > KEPT_BYTES {
            // Ever new schemas are rare; those in use are compiled again.
            *kept = Kept::default();
        }
        kept.bytes += raw.len();
        kept.by_hash.insert(schema.hash, compiled.clone());
        compiled
    }
}

fn compile(schema: &str) -> Result<Ready, UnusableSchema> {
    let unusable = |why: String| UnusableSchema(why.into());
    let schema: Value =
        serde_json::from_str(schema).map_err(|error| unusable(error.to_string()))?;
    let patterns = PatternOptions::regex().size_limit(PATTERN).dfa_size_limit(PATTERN);
    let validator = jsonschema::options()
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .build(&schema)
        .map_err(|error| unusable(error.masked().to_string()))?;
    Ok(Ready { schema, validator })
}

/// The check alone, for the fuzz targets.
#[cfg(fuzzing)]
pub(crate) fn checker() -> impl Fn(&Schema, &str, bool) -> Result<(), Mismatch> {
    let compiled = Compiled::default();
    move |schema, arguments, exact_keys| compiled.fits(schema, arguments, exact_keys)
}

fn invalid(what: &str) -> SessionFailure {
    SessionFailure::InvalidArguments { what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use toolgate_session::{EntryKey, Millis, ShowcaseEntry};

    use super::*;

    /// A schema as a session would publish it.
    fn schema(raw: &str) -> Schema {
        let tool = format!(r#"{{"name":"t","input_schema":{raw}}}"#);
        let key = EntryKey { kind: String::new(), config_id: String::new(), infobase_name: None };
        let entry = ShowcaseEntry::restore(key, [tool.as_str()], Millis(0), []);
        entry.tools.get("t").unwrap().checked_schema.clone()
    }

    #[test]
    fn arguments_must_match_and_errors_contain_no_values() {
        let schemas = Compiled::default();
        let strict = schema(
            r#"{"type":"object","properties":{"Сумма":{"type":"number","maximum":5}},"required":["Сумма"],"additionalProperties":false}"#,
        );
        assert_eq!(schemas.fits(&strict, r#"{"Сумма":1.5}"#, true), Ok(()));
        for (arguments, words) in [
            ("{}", "Сумма"),
            (r#"{"Сумма":"SECRET"}"#, "/Сумма"),
            (r#"{"Сумма":7654321}"#, "/Сумма"),
            (r#"{"Сумма":1,"лишнее":"SECRET"}"#, "лишнее"),
        ] {
            let complaint = schemas.fits(&strict, arguments, true).unwrap_err().to_string();
            assert!(complaint.contains(words), "{arguments}: {complaint}");
            assert!(!complaint.contains("SECRET") && !complaint.contains("7654321"), "{complaint}");
        }
    }

    #[test]
    fn keys_are_spelled_as_they_are_declared() {
        let schemas = Compiled::default();
        let nested = schema(
            r##"{"properties":{"all":{},"row":{"$ref":"#/$defs/row"}},"$defs":{"row":{"allOf":[{"properties":{"Имя":{}}}]}}}"##,
        );
        for (arguments, expected) in [
            (r#"{"all":1,"other":2}"#, Ok(())),
            (r#"{"ALL":1}"#, Err("write `all` instead of `ALL`")),
            (r#"{"ａll":1}"#, Err("write `all` instead of `ａll`")),
            (r#"{"row":{"Имя":1,"ALL":2}}"#, Ok(())),
            (r#"{"row":{"имя":1}}"#, Err("write `Имя` instead of `имя`")),
        ] {
            let fits = schemas.fits(&nested, arguments, true).map_err(|why| why.to_string());
            assert_eq!(fits, expected.map_err(str::to_owned), "{arguments}");
            assert_eq!(schemas.fits(&nested, arguments, false), Ok(()), "{arguments}");
        }
    }

    /// Schemas that are within bounds, and arguments with which they are a lot of work.
    fn attacks() -> Vec<(String, String)> {
        let nested = |depth: usize| {
            let (open, close) = (r#"{"anyOf":[{"const":1},"#.repeat(depth), "]}".repeat(depth));
            format!("{open}{{\"const\":2}}{close}")
        };
        let numbers = |count: usize| {
            let numbers: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            numbers.join(",")
        };
        let items = |schema: &str| format!(r#"{{"properties":{{"a":{{"items":{schema}}}}}}}"#);
        let many = format!(r#"{{"a":[{}]}}"#, numbers(200_000));
        let strings = format!(r#"{{"a":["{}"]}}"#, "a".repeat(3_000_000));
        let keys: Vec<String> = (0..100_000).map(|n| format!(r#""k{n}":0"#)).collect();
        let keys = format!(r#"{{"a":{{{}}}}}"#, keys.join(","));
        let patterns: Vec<String> = (0..200).map(|n| format!(r#""(a|b)*{n}":{{}}"#)).collect();
        let patterns = format!(
            r#"{{"properties":{{"a":{{"patternProperties":{{{}}}}}}}}}"#,
            patterns.join(",")
        );
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(60), "]".repeat(60));
        let unevaluated = (0..18).fold("{}".to_owned(), |inside, _| {
            format!(r#"{{"allOf":[{inside}],"unevaluatedProperties":true}}"#)
        });
        vec![
            (items(&nested(29)), many.clone()),
            (items(&format!(r#"{{"enum":["x",{}]}}"#, numbers(1_000))), many.clone()),
            (items(r#"{"pattern":"^(a+)+(b+)+(c+)+$"}"#), strings),
            (patterns, keys.clone()),
            (format!(r#"{{"properties":{{"a":{unevaluated}}}}}"#), keys.clone()),
            (format!(r#"{{"properties":{{"a":{{"required":[{}]}}}},"items":{{}}}}"#, "\"x\",".repeat(9_000) + "\"x\""), keys),
            (items(r##"{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##), many.clone()),
            (r##"{"properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"anyOf":[{"items":{"$ref":"#/$defs/t"}},{"items":{"$ref":"#/$defs/t"}},{"const":7}]}}}"##.to_owned(), deep.clone()),
            (r##"{"$dynamicAnchor":"x","properties":{"a":{"$dynamicRef":"#x"}},"items":{"oneOf":[{"$dynamicRef":"#x"},{"$dynamicRef":"#x"}]}}"##.to_owned(), deep),
            (r#"{"properties":{"a":{"contains":{"enum":[1,2,3,4,5,6,7,8,9]},"minContains":200000}}}"#.to_owned(), many),
            (r##"{"$ref":"#"}"##.to_owned(), "{}".to_owned()),
            (r##"{"type":"object","allOf":[{"$ref":"#"}]}"##.to_owned(), "{}".to_owned()),
            (r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##.to_owned(), "{}".to_owned()),
            (r##"{"$dynamicRef":"#x","$dynamicAnchor":"x"}"##.to_owned(), "{}".to_owned()),
        ]
    }

    #[test]
    fn no_schema_makes_a_check_long() {
        let schemas = Compiled::default();
        for (raw, arguments) in attacks() {
            let began = std::time::Instant::now();
            let fits = schemas.fits(&schema(&raw), &arguments, true);
            let shown: String = raw.chars().take(80).collect();
            // Unoptimized and on a busy machine; what it was before is minutes.
            assert!(began.elapsed().as_secs() < 20, "{shown}: {:?}", began.elapsed());
            assert!(fits.is_err(), "{shown}");
            assert!(schemas.fits(&schema(r#"{"required":["b"]}"#), "{}", true).is_err());
        }
    }

    #[test]
    fn a_schema_that_cannot_be_checked_lets_nothing_pass() {
        let schemas = Compiled::default();
        for raw in [
            r#"{"$ref":"https://example.com/schema.json"}"#,
            r#"{"$ref":"file:///etc/passwd"}"#,
            r#"{"type":"Строка"}"#,
            r#"{"properties":{"a":{"pattern":"("}}}"#,
            r#"{"properties":{"a":{"pattern":"(a{1000}){1000}"}}}"#,
            r#"{"properties":{"a":{"pattern":"^(?=a)"}}}"#,
        ] {
            let complaint = schemas.fits(&schema(raw), "{}", true).unwrap_err().to_string();
            assert!(complaint.contains("cannot be called"), "{raw}: {complaint}");
        }
        let linear = schema(r#"{"properties":{"a":{"pattern":"^(a+)+$"}}}"#);
        let arguments = format!(r#"{{"a":"{}!"}}"#, "a".repeat(60));
        assert!(schemas.fits(&linear, &arguments, true).unwrap_err().to_string().contains("/a"));
    }
}
