//! The cost of checking arguments against a schema, computed before the check.
//!
//! The validator cannot be interrupted. So its steps are counted first, by walking schema and
//! arguments as if no branch ended early: the result is an upper bound.
//!
//! The same walk knows which properties a schema declares for each object, so it also finds keys that
//! differ from a declared one only by case or form.
//!
//! Invariant: the walk ends after its budget of steps and time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use toolgate_json::fold;
use toolgate_session::referred;

/// The most steps.
const STEPS: u64 = 1_000_000;
/// The maximum duration of a walk. Short walks are not timed.
const TIME: Duration = Duration::from_millis(50);
/// The number of steps between two checks of the clock.
const CLOCK_STEPS: u64 = 16 * 1024;
/// The maximum depth of nested schemas.
const DEPTH: usize = 128;

/// Why arguments are not checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It would take too many steps.
    TooMuch,
    /// A key differs from a declared property only by case or form.
    Variant { key: String, declared: String },
}

/// Counts the steps of a check.
pub(super) struct Measure<'s> {
    root: &'s Value,
    /// Whether keys must be spelled as they are declared.
    exact_keys: bool,
    steps: u64,
    check_at: u64,
    began: Instant,
    /// Declared properties by what they fold to, of each schema that was asked.
    declared: HashMap<*const Map<String, Value>, HashMap<String, String>>,
    anchors: HashMap<&'s str, Vec<&'s Value>>,
}

impl<'s> Measure<'s> {
    /// How many steps it takes to check `arguments`.
    pub(super) fn of(root: &'s Value, arguments: &Value, exact_keys: bool) -> Result<u64, Stop> {
        let mut measure = Self {
            root,
            exact_keys,
            steps: 0,
            check_at: CLOCK_STEPS,
            began: Instant::now(),
            declared: HashMap::new(),
            anchors: HashMap::new(),
        };
        measure.find_anchors(root);
        measure.visit(root, arguments, 0)?;
        Ok(measure.steps)
    }

    fn find_anchors(&mut self, value: &'s Value) {
        match value {
            Value::Object(members) => {
                if let Some(name) = members.get("$dynamicAnchor").and_then(Value::as_str) {
                    self.anchors.entry(name).or_default().push(value);
                }
                members.values().for_each(|value| self.find_anchors(value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.find_anchors(item)),
            _ => {}
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > self.check_at {
            self.check_at = self.steps + CLOCK_STEPS;
            if self.steps > STEPS || self.began.elapsed() > TIME {
                return Err(Stop::TooMuch);
            }
        }
        Ok(())
    }

    fn visit(&mut self, schema: &'s Value, instance: &Value, depth: usize) -> Result<(), Stop> {
        self.spend(1)?;
        let Value::Object(keywords) = schema else { return Ok(()) };
        if depth > DEPTH {
            return Err(Stop::TooMuch);
        }
        let before = self.steps;
        for (keyword, value) in keywords {
            self.spend(1)?;
            self.in_place(keyword, value, instance, depth + 1)?;
            match instance {
                Value::Object(object) => {
                    self.object(keywords, keyword, value, object, depth + 1)?;
                }
                Value::Array(items) => self.array(keyword, value, items, depth + 1)?,
                Value::String(text) => self.string(keyword, value, text)?,
                _ => {}
            }
        }
        // `unevaluated…` evaluates everything again.
        if keywords.keys().any(|keyword| keyword.starts_with("unevaluated")) {
            let again = usize::try_from(self.steps - before).unwrap_or(usize::MAX);
            self.spend(again.saturating_mul(2))?;
        }
        Ok(())
    }

    /// Keywords about the value itself, whatever it is.
    fn in_place(
        &mut self,
        keyword: &str,
        value: &'s Value,
        instance: &Value,
        depth: usize,
    ) -> Result<(), Stop> {
        match (keyword, value) {
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter().try_for_each(|schema| self.visit(schema, instance, depth))
            }
            ("not" | "if" | "then" | "else", schema) => self.visit(schema, instance, depth),
            ("$ref" | "$recursiveRef", Value::String(reference)) => {
                let target = referred(self.root, reference).ok_or(Stop::TooMuch)?;
                self.visit(target, instance, depth)
            }
            ("$dynamicRef", Value::String(reference)) => {
                let target = referred(self.root, reference).ok_or(Stop::TooMuch)?;
                self.visit(target, instance, depth)?;
                let name = reference.strip_prefix('#').unwrap_or_default();
                let anchored = self.anchors.get(name).cloned().unwrap_or_default();
                anchored.into_iter().try_for_each(|schema| self.visit(schema, instance, depth))
            }
            ("enum" | "const", values) => {
                let work = size(values).min(size(instance).saturating_mul(count(values)));
                self.spend(work)
            }
            _ => Ok(()),
        }
    }

    fn object(
        &mut self,
        keywords: &'s Map<String, Value>,
        keyword: &str,
        value: &'s Value,
        object: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), Stop> {
        match (keyword, value) {
            ("properties", Value::Object(properties)) => {
                self.spend(properties.len())?;
                self.spellings(properties, object)?;
                for (key, schema) in properties {
                    if let Some(inside) = object.get(key) {
                        self.visit(schema, inside, depth)?;
                    }
                }
                Ok(())
            }
            ("patternProperties", Value::Object(patterns)) => {
                for (pattern, schema) in patterns {
                    for (key, inside) in object {
                        self.spend(1 + pattern.len() * key.len() / 32)?;
                        // Whether it matches is not known, so its declared keys are ignored.
                        let exact_keys = std::mem::take(&mut self.exact_keys);
                        let visited = self.visit(schema, inside, depth);
                        self.exact_keys = exact_keys;
                        visited?;
                    }
                }
                Ok(())
            }
            ("additionalProperties" | "unevaluatedProperties", schema) => {
                let own = keywords.get("properties").and_then(Value::as_object);
                let own = |key: &String| own.is_some_and(|own| own.contains_key(key));
                let patterns = keywords.get("patternProperties").map_or(0, size);
                for (key, inside) in object {
                    self.spend(1 + patterns.saturating_mul(1 + key.len() / 32))?;
                    if keyword != "additionalProperties" || !own(key) {
                        self.visit(schema, inside, depth)?;
                    }
                }
                Ok(())
            }
            ("propertyNames", schema) => {
                for key in object.keys() {
                    self.spend(1 + key.len() / 16)?;
                    self.visit(schema, &Value::String(key.clone()), depth)?;
                }
                Ok(())
            }
            ("dependentSchemas" | "dependencies", Value::Object(dependent)) => {
                for (key, schema) in dependent {
                    self.spend(1 + count(schema))?;
                    if object.contains_key(key) {
                        let instance = Value::Object(object.clone());
                        self.spend(size(&instance))?;
                        self.visit(schema, &instance, depth)?;
                    }
                }
                Ok(())
            }
            ("required" | "dependentRequired", names) => self.spend(size(names)),
            _ => Ok(()),
        }
    }

    fn array(
        &mut self,
        keyword: &str,
        value: &'s Value,
        items: &[Value],
        depth: usize,
    ) -> Result<(), Stop> {
        match (keyword, value) {
            ("prefixItems" | "items", Value::Array(schemas)) => {
                let pairs = schemas.iter().zip(items);
                pairs.into_iter().try_for_each(|(schema, item)| self.visit(schema, item, depth))
            }
            ("items" | "contains" | "additionalItems" | "unevaluatedItems", schema) => {
                items.iter().try_for_each(|item| self.visit(schema, item, depth))
            }
            ("uniqueItems", Value::Bool(true)) => {
                items.iter().try_for_each(|item| self.spend(size(item).saturating_mul(16)))
            }
            _ => Ok(()),
        }
    }

    fn string(&mut self, keyword: &str, value: &Value, text: &str) -> Result<(), Stop> {
        match (keyword, value) {
            ("pattern", Value::String(pattern)) => self.spend(pattern.len() * text.len() / 32),
            ("minLength" | "maxLength", _) => self.spend(text.len() / 16),
            _ => Ok(()),
        }
    }

    /// Finds keys that a reader could take for a declared one.
    fn spellings(
        &mut self,
        properties: &'s Map<String, Value>,
        object: &Map<String, Value>,
    ) -> Result<(), Stop> {
        if !self.exact_keys {
            return Ok(());
        }
        for key in object.keys().filter(|key| !properties.contains_key(*key)) {
            self.spend(1 + key.len())?;
            let declared = self.declared.entry(properties).or_insert_with(|| {
                properties.keys().map(|key| (fold(key).into_owned(), key.clone())).collect()
            });
            if let Some(declared) = declared.get(&*fold(key)) {
                let (key, declared) = (key.clone(), declared.clone());
                return Err(Stop::Variant { key, declared });
            }
        }
        Ok(())
    }
}

/// The cost of reading a whole value.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => {
            let inside = members.iter().map(|(key, value)| 1 + key.len() / 16 + size(value));
            1 + inside.sum::<usize>()
        }
        Value::String(text) => 1 + text.len() / 16,
        _ => 1,
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        _ => 1,
    }
}
