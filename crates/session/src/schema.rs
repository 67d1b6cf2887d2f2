//! Composes one schema for a tool that several sessions publish.
//!
//! Invariant: schemas of single properties are unchanged; only the outermost object is composed.
//! Its keys have a fixed order, so that equal sessions give equal bytes.
//! Invariant: without `oneof`, a composed schema has no combinator at the top. Arguments are always
//! checked against the schema of the selected session. Golden tests: `schema/tests.rs`.

mod selector;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::json;
use toolgate_json::object::members;
use toolgate_json::{items, quote, text};

pub(crate) use self::selector::{MAX_LISTED, ServingSession};
use self::selector::{SelectorProperties, SelectorRules};
use crate::arguments::SESSION_ID;
use crate::settings::{SchemaConflict, Selectors};
use crate::tool::{Schema, canonical};

/// One of the schemas of a name, and the sessions that publish it.
#[derive(Debug)]
pub(crate) struct Variant<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) sessions: Vec<ServingSession<'a>>,
}

/// Combinators that some agents' APIs reject at the top.
const COMBINATORS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Keywords that contain referenced schemas.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The schema that agents see. `variants` are distinct and ordered by hash; without a connected
/// session they have no sessions.
pub(crate) fn compose(
    variants: &[Variant<'_>],
    conflict: SchemaConflict,
    selectors: Selectors,
) -> String {
    let mut sessions: Vec<ServingSession<'_>> =
        variants.iter().flat_map(|v| v.sessions.iter().copied()).collect();
    sessions.sort_unstable();
    let is_argument = |name: &str| variants.iter().any(|v| has_property(v.schema, name));
    let rules = SelectorRules::new(selectors, is_argument);
    let selector = || rules.write(&sessions, MAX_LISTED, sessions.len() > 1);
    if conflict == SchemaConflict::Merged {
        let parts = variants.iter().map(|variant| Parts::read(variant.schema).flat()).collect();
        return merge(parts).write(&selector());
    }
    if let [only] = variants {
        return Parts::read(only.schema).write(&selector());
    }
    one_of(variants, &rules)
}

/// One branch per schema. Definitions are moved to the top, where references look for them.
fn one_of(variants: &[Variant<'_>], rules: &SelectorRules) -> String {
    let parts: Vec<Parts<'_>> =
        variants.iter().map(|variant| Parts::read(variant.schema)).collect();
    let (mut definitions, mixed) = merge_others(&parts);
    definitions.retain(|(key, _)| DEFINITIONS.contains(&&**key));
    let branches: Vec<String> = variants
        .iter()
        .zip(parts)
        .map(|(variant, mut parts)| {
            parts.others.retain(|(key, _)| !DEFINITIONS.contains(&&**key));
            for (_, schema) in &mut parts.properties {
                *schema = either(std::iter::once(&**schema), mixed).into();
            }
            let required = !variant.sessions.is_empty();
            parts.write(&rules.write(&variant.sessions, usize::MAX, required))
        })
        .collect();
    let mut out = format!(r#"{{"type":"object","oneOf":[{}]"#, branches.join(","));
    for (key, raw) in definitions {
        out.extend([",", &quote(&key), ":", &raw]);
    }
    out.push('}');
    out
}

/// Keys and raw values in order.
type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The outermost object of a schema, in parts.
#[derive(Debug, Default)]
struct Parts<'a> {
    properties: Pairs<'a>,
    required: Vec<Cow<'a, str>>,
    /// Everything but `type`, `properties` and `required`.
    others: Pairs<'a>,
}

impl<'a> Parts<'a> {
    fn read(schema: &'a Schema) -> Self {
        Self::read_raw(schema.raw.get())
    }

    fn read_raw(raw: &'a str) -> Self {
        let mut parts = Self::default();
        for member in members(raw).unwrap_or_default() {
            let Some(key) = member.key else { continue };
            match &*key {
                "type" => {}
                "properties" => parts.properties = pairs(member.value),
                "required" => parts.required = texts(member.value),
                _ => parts.others.push((key, member.value.into())),
            }
        }
        parts
    }

    /// Removes combinators: the properties of their branches stay, without their conditions.
    fn flat(mut self) -> Self {
        let (combinators, others): (Vec<_>, Vec<_>) =
            self.others.into_iter().partition(|(key, _)| COMBINATORS.contains(&&**key));
        self.others = others;
        if combinators.is_empty() {
            return self;
        }
        self.others.retain(|(key, _)| key != "additionalProperties");
        for (key, raw) in &combinators {
            for branch in items(raw).ok().flatten().unwrap_or_default() {
                let branch = Parts::read_raw(branch);
                for (name, schema) in branch.properties {
                    if !self.properties.iter().any(|(known, _)| *known == name) {
                        let (name, schema) = (name.into_owned(), schema.into_owned());
                        self.properties.push((name.into(), schema.into()));
                    }
                }
                if key == "allOf" {
                    self.required
                        .extend(branch.required.into_iter().map(|n| n.into_owned().into()));
                }
            }
        }
        self
    }

    fn write(&self, selectors: &SelectorProperties) -> String {
        let written =
            selectors.properties.iter().map(|(key, schema)| format!(r#""{key}":{schema}"#));
        let written: Vec<String> = written.collect();
        let mut out = format!(r#"{{"type":"object","properties":{{{}"#, written.join(","));
        for (name, schema) in self.properties.iter().filter(|(name, _)| name != SESSION_ID) {
            out.extend([",", &quote(name), ":", schema]);
        }
        out.push('}');
        let mut required: Vec<&str> = Vec::new();
        required.extend(selectors.required.then_some(SESSION_ID));
        for name in &self.required {
            if name != SESSION_ID && !required.contains(&&**name) {
                required.push(name);
            }
        }
        if !required.is_empty() {
            out.extend([r#","required":"#, &json!(required).to_string()]);
        }
        for (key, raw) in &self.others {
            out.extend([",", &quote(key), ":", raw]);
        }
        out.push('}');
        out
    }
}

/// The union of all properties, and the intersection of the required ones.
fn merge(mut variants: Vec<Parts<'_>>) -> Parts<'_> {
    if variants.len() < 2 {
        return variants.pop().unwrap_or_default();
    }
    let mut merged = Parts::default();
    let (others, mixed) = merge_others(&variants);
    for (name, _) in variants.iter().flat_map(|variant| &variant.properties) {
        if merged.properties.iter().any(|(known, _)| known == name) {
            continue;
        }
        let schemas = variants.iter().flat_map(|variant| &variant.properties);
        let schemas = schemas.filter(|(other, _)| other == name).map(|(_, schema)| &**schema);
        merged.properties.push((name.clone(), either(schemas, mixed).into()));
    }
    if let Some((first, rest)) = variants.split_first() {
        let all = |name: &&Cow<'_, str>| rest.iter().all(|other| other.required.contains(name));
        merged.required = first.required.iter().filter(all).cloned().collect();
    }
    merged.others = others;
    merged
}

/// One schema for a property with several. If definitions of one name differ, a reference would be
/// ambiguous, so it becomes "anything".
fn either<'a>(schemas: impl Iterator<Item = &'a str>, mixed: bool) -> String {
    let mut different: Vec<(String, &str)> = Vec::new();
    for schema in schemas {
        let schema = if mixed && schema.contains("\"$ref\"") { "{}" } else { schema };
        let canonical = canonical(schema).unwrap_or_else(|_| schema.to_owned());
        if !different.iter().any(|(known, _)| *known == canonical) {
            different.push((canonical, schema));
        }
    }
    if let [(_, only)] = different.as_slice() {
        return (*only).to_owned();
    }
    let all: Vec<&str> = different.into_iter().map(|(_, schema)| schema).collect();
    format!(r#"{{"anyOf":[{}]}}"#, all.join(","))
}

/// Members that are equal in all variants, and all definitions; whether definitions of one name
/// differ.
fn merge_others<'a>(variants: &[Parts<'a>]) -> (Pairs<'a>, bool) {
    let same = |a: &str, b: &str| a == b || canonical(a).ok() == canonical(b).ok();
    let mut kept: Pairs<'a> = Vec::new();
    let (mut dropped, mut mixed) = (false, false);
    for (key, raw) in variants.iter().flat_map(|variant| &variant.others) {
        if kept.iter().any(|(known, _)| known == key) {
            continue;
        }
        let of = |variant: &Parts<'a>| {
            variant.others.iter().find(|(other, _)| other == key).map(|(_, raw)| raw.clone())
        };
        if DEFINITIONS.contains(&&**key) {
            let all: Vec<Cow<'a, str>> = variants.iter().filter_map(of).collect();
            let (definitions, differ) = merge_definitions(&all);
            mixed |= differ;
            kept.push((key.clone(), definitions.into()));
        } else if variants.iter().all(|variant| of(variant).is_some_and(|other| same(&other, raw)))
        {
            kept.push((key.clone(), raw.clone()));
        } else {
            dropped = true;
        }
    }
    if dropped {
        kept.retain(|(key, _)| key != "additionalProperties");
    }
    (kept, mixed)
}

fn merge_definitions(all: &[Cow<'_, str>]) -> (String, bool) {
    let mut kept: Pairs<'_> = Vec::new();
    let mut differ = false;
    for (name, schema) in all.iter().flat_map(|raw| pairs(raw)) {
        match kept.iter().find(|(known, _)| *known == name) {
            Some((_, known)) => differ |= canonical(known).ok() != canonical(&schema).ok(),
            None => kept.push((name, schema)),
        }
    }
    let members: Vec<String> =
        kept.iter().map(|(name, schema)| format!("{}:{schema}", quote(name))).collect();
    (format!("{{{}}}", members.join(",")), differ)
}

/// Whether a schema declares this property.
pub(crate) fn has_property(schema: &Schema, name: &str) -> bool {
    Parts::read(schema).flat().properties.iter().any(|(known, _)| known == name)
}

fn pairs(raw: &str) -> Pairs<'_> {
    let mut pairs: Pairs<'_> = Vec::new();
    for member in members(raw).unwrap_or_default() {
        let Some(key) = member.key else { continue };
        if value_of(&pairs, &key).is_none() {
            pairs.push((key, member.value.into()));
        }
    }
    pairs
}

fn value_of<'p>(pairs: &'p [(Cow<'_, str>, Cow<'_, str>)], key: &str) -> Option<&'p str> {
    pairs.iter().find(|(known, _)| known == key).map(|(_, value)| &**value)
}

fn texts(raw: &str) -> Vec<Cow<'_, str>> {
    items(raw).ok().flatten().unwrap_or_default().into_iter().filter_map(text).collect()
}
