//! One tool as its server describes it: the fields that the catalogue judges.
//!
//! Invariant: a definition borrows its text. What cannot be read is left out, never guessed:
//! a schema that is not an object has no arguments.

use std::borrow::Cow;

use smallvec::SmallVec;
use toolgate_json::walk::{Raw, Walk};
use toolgate_json::{Malformed, text};

/// A definition, read for judging.
#[derive(Clone, Debug, Default)]
pub struct Definition<'a> {
    /// The tool's own name.
    pub name: Cow<'a, str>,
    /// Its title.
    pub title: Option<Cow<'a, str>>,
    /// Its description.
    pub description: Option<Cow<'a, str>>,
    /// The arguments of its input schema, nested ones included.
    pub arguments: Vec<Argument<'a>>,
    /// How many arguments the schema has at its top.
    pub parameters: usize,
    /// How many of them are required.
    pub required: usize,
    /// What its annotations declare.
    pub hints: Hints,
}

/// One property of an input schema.
#[derive(Clone, Debug, Default)]
pub struct Argument<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its type, if the schema has one type.
    pub kind: Option<Cow<'a, str>>,
    /// Its description.
    pub description: Option<Cow<'a, str>>,
    /// Its allowed values, if they are strings.
    pub values: SmallVec<[Cow<'a, str>; 2]>,
    /// Whether it is an argument of the tool itself, not a member of one.
    pub is_top: bool,
    /// The named schema that it refers to: `#/$defs/Action`.
    reference: Option<Cow<'a, str>>,
}

/// Annotations, as far as they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
    /// `openWorldHint`.
    pub open_world: Option<bool>,
}

/// The text is not a JSON object with a string `name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a tool definition: a JSON object with a string `name` is required")]
pub struct NotADefinition;

/// How deep a schema is read, and how many arguments of it.
const DEPTH: usize = 6;
const MAX_ARGUMENTS: usize = 256;
/// The longest named schema whose allowed values are read.
const MAX_NAMED: usize = 16 * 1024;

impl From<Malformed> for NotADefinition {
    fn from(_: Malformed) -> Self {
        NotADefinition
    }
}

impl<'a> Definition<'a> {
    /// A definition of which only the name is known.
    pub fn named(name: &'a str) -> Self {
        Self { name: Cow::Borrowed(name), ..Self::default() }
    }

    /// Reads a member of `tools/list`, or of the tools of a session (`input_schema`).
    pub fn parse(raw: &'a str) -> Result<Self, NotADefinition> {
        let mut definition = Self::default();
        let mut has_name = false;
        let mut walk = Walk::object(raw)?;
        while let Some(member) = walk.member()? {
            let value = member.value;
            match &*member.name()? {
                "name" => {
                    definition.name = string(value).ok_or(NotADefinition)?;
                    has_name = true;
                }
                "title" => definition.title = string(value),
                "description" => definition.description = string(value),
                "inputSchema" | "input_schema" => definition.read_schema(value.text),
                "annotations" => definition.read_annotations(value.text),
                _ => {}
            }
        }
        if has_name { Ok(definition) } else { Err(NotADefinition) }
    }

    fn read_schema(&mut self, schema: &'a str) {
        // A schema that cannot be walked leaves what was read before the fault.
        self.collect(schema, DEPTH).unwrap_or_default();
        // Afterwards: named schemas may come before or behind the arguments that refer to them.
        self.resolve(schema).unwrap_or_default();
    }

    fn collect(&mut self, schema: &'a str, depth: usize) -> Result<(), Malformed> {
        let Some(below) = depth.checked_sub(1) else { return Ok(()) };
        if !schema.starts_with('{') {
            return Ok(());
        }
        let mut walk = Walk::object(schema)?;
        while let Some(member) = walk.member()? {
            let value = member.value.text;
            match member.key {
                "properties" => self.collect_properties(value, depth)?,
                "required" if depth == DEPTH => self.required = count(value),
                "items" | "additionalProperties" => self.collect(value, below)?,
                "anyOf" | "oneOf" | "allOf" => {
                    let Ok(mut list) = Walk::list(value) else { continue };
                    while let Some(branch) = list.element()? {
                        self.collect(branch.text, below)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn collect_properties(&mut self, raw: &'a str, depth: usize) -> Result<(), Malformed> {
        let Ok(mut walk) = Walk::object(raw) else { return Ok(()) };
        while let Some(member) = walk.member()? {
            if depth == DEPTH {
                self.parameters += 1;
            }
            if self.arguments.len() < MAX_ARGUMENTS {
                let mut argument = Argument::read(member.name()?, member.value.text)?;
                argument.is_top = depth == DEPTH;
                self.arguments.push(argument);
                self.collect(member.value.text, depth.saturating_sub(1))?;
            }
        }
        Ok(())
    }

    /// Gives the arguments that refer to a named schema its allowed values.
    fn resolve(&mut self, schema: &'a str) -> Result<(), Malformed> {
        if self.arguments.iter().all(|argument| argument.reference.is_none()) {
            return Ok(());
        }
        let mut walk = Walk::object(schema)?;
        while let Some(member) = walk.member()? {
            if !matches!(member.key, "$defs" | "definitions") {
                continue;
            }
            let mut named = Walk::object(member.value.text)?;
            while let Some(schema) = named.member()? {
                if schema.value.text.len() > MAX_NAMED {
                    continue;
                }
                let name = schema.name()?;
                let refers = |argument: &&mut Argument<'_>| {
                    let reference = argument.reference.as_deref();
                    let rest =
                        reference.and_then(|at| at.strip_prefix("#/")?.strip_prefix(member.key));
                    rest.and_then(|rest| rest.strip_prefix('/')) == Some(&*name)
                };
                for argument in self.arguments.iter_mut().filter(refers) {
                    argument.read_schema(schema.value.text, false)?;
                }
            }
        }
        Ok(())
    }

    fn read_annotations(&mut self, raw: &'a str) {
        let Ok(mut walk) = Walk::object(raw) else { return };
        while let Ok(Some(member)) = walk.member() {
            let declared = match member.value.text {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            };
            match member.key {
                "readOnlyHint" => self.hints.read_only = declared,
                "destructiveHint" => self.hints.destructive = declared,
                "openWorldHint" => self.hints.open_world = declared,
                "title" if self.title.is_none() => self.title = string(member.value),
                _ => {}
            }
        }
    }

    /// The names of the tool's own arguments.
    pub fn argument_names(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().filter(|argument| argument.is_top).map(|argument| &*argument.name)
    }

    /// Whether the server describes the tool in words.
    pub(crate) fn is_described(&self) -> bool {
        self.description.as_ref().is_some_and(|text| !text.trim().is_empty())
    }
}

impl<'a> Argument<'a> {
    fn read(name: Cow<'a, str>, schema: &'a str) -> Result<Self, Malformed> {
        let mut argument = Self { name, ..Self::default() };
        argument.read_schema(schema, true)?;
        Ok(argument)
    }

    /// `is_whole`: not one of several alternatives.
    fn read_schema(&mut self, schema: &'a str, is_whole: bool) -> Result<(), Malformed> {
        let Ok(mut walk) = Walk::object(schema) else { return Ok(()) };
        while let Some(member) = walk.member()? {
            match member.key {
                "type" if is_whole => self.kind = string(member.value),
                "description" if is_whole => self.description = string(member.value),
                "enum" => {
                    let Ok(mut list) = Walk::list(member.value.text) else { continue };
                    while let Some(value) = list.element()? {
                        self.values.extend(string(value));
                    }
                }
                "const" => self.values.extend(string(member.value)),
                "$ref" if self.reference.is_none() => self.reference = string(member.value),
                "anyOf" | "oneOf" if is_whole => {
                    let Ok(mut list) = Walk::list(member.value.text) else { continue };
                    while let Some(branch) = list.element()? {
                        self.read_schema(branch.text, false)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn string(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    text(raw.text)
}

fn count(list: &str) -> usize {
    let Ok(mut walk) = Walk::list(list) else { return 0 };
    std::iter::from_fn(|| walk.element().ok().flatten()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read() {
        let raw = r#"{"name":"a\u0062","title":"T","description":"D","inputSchema":{"type":"object",
            "properties":{"path":{"type":"string","description":"a path"},
            "op":{"enum":["read","delete",1]},"deep":{"type":"object","properties":{"x":true}}},
            "required":["path","op"]},"annotations":{"readOnlyHint":false,"destructiveHint":true}}"#;
        let definition = Definition::parse(raw).unwrap();
        assert_eq!(definition.name, "ab");
        assert_eq!((definition.parameters, definition.required), (3, 2));
        let names: Vec<&str> = definition.arguments.iter().map(|a| &*a.name).collect();
        assert_eq!(names, ["path", "op", "deep", "x"]);
        assert_eq!(definition.argument_names().collect::<Vec<_>>(), ["path", "op", "deep"]);
        assert_eq!(definition.arguments[1].values.as_slice(), ["read", "delete"]);
        assert_eq!(definition.hints.destructive, Some(true));
        for bad in ["", "[]", "{}", r#"{"name":1}"#, r#"{"name":"a""#, "\"name\""] {
            assert!(Definition::parse(bad).is_err(), "{bad}");
        }
        let raw = r##"{"name":"a","inputSchema":{"properties":{"op":{"$ref":"#/$defs/Op"},"how":
            {"anyOf":[{"const":"keep"},{"enum":["drop"]},{"type":"null"}]}},"$defs":{"Op":{"enum":["delete"]}}}}"##;
        let referring = Definition::parse(raw).unwrap();
        assert_eq!(referring.parameters, 2);
        let values: Vec<&str> = referring
            .arguments
            .iter()
            .flat_map(|a| a.values.iter().map(|value| &**value))
            .collect();
        assert_eq!(values, ["delete", "keep", "drop"]);
        for odd in [
            r#"{"name":"a","inputSchema":true}"#,
            r#"{"name":"a","inputSchema":{"properties":[]}}"#,
        ] {
            assert_eq!(Definition::parse(odd).unwrap().parameters, 0, "{odd}");
        }
    }
}
