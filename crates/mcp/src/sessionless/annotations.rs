//! `x-mcp-header`: arguments of a tool that its callers repeat in `Mcp-Param-*` headers.
//!
//! Invariant: a tool whose annotations break a rule is not shown to clients.

use std::collections::HashSet;

use memchr::memmem;
use serde_json::Value;
use toolgate_json::{peek, text};

use super::{Objection, agree, header_value};
use crate::{Refusal, code};

const KEY: &str = "x-mcp-header";
/// The prefix of these headers.
pub const PREFIX: &str = "mcp-param-";
/// The largest integer that every parser represents exactly.
const SAFE: i64 = (1 << 53) - 1;
/// Keywords of a schema whose values are not schemas.
const DATA: [&str; 5] = ["default", "examples", "enum", "const", "required"];

/// One argument that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The header without its prefix, in lower case.
    pub header: String,
    /// Its path in the arguments.
    pub path: Vec<String>,
}

/// Whether raw JSON can have annotations: their key occurs in it, or escapes that may spell the key.
pub fn may_annotate(json: &str) -> bool {
    let has = |text: &str| memmem::find(json.as_bytes(), text.as_bytes()).is_some();
    has(KEY) || has("\\u")
}

/// The annotations of a tool, raw JSON as it is listed. `None` if they break a rule.
pub fn of_tool(tool: &str) -> Option<Vec<Annotation>> {
    if !may_annotate(tool) {
        return Some(Vec::new());
    }
    let schema = peek(tool, &["inputSchema"]).ok()?.unwrap_or("{}");
    if !may_annotate(schema) {
        return Some(Vec::new());
    }
    let schema: Value = serde_json::from_str(schema).ok()?;
    if schema.get(KEY).is_some() {
        return None;
    }
    let (mut all, mut names) = (Vec::new(), HashSet::new());
    collect(&schema, &mut Vec::new(), &mut all)?;
    all.iter().all(|one: &Annotation| names.insert(one.header.clone())).then_some(all)
}

fn collect(schema: &Value, path: &mut Vec<String>, all: &mut Vec<Annotation>) -> Option<()> {
    let Some(members) = schema.as_object() else { return Some(()) };
    for (keyword, value) in members {
        match keyword.as_str() {
            KEY => all.push(annotation(value, schema, path)?),
            "properties" => {
                for (name, schema) in value.as_object()? {
                    path.push(name.clone());
                    collect(schema, path, all)?;
                    path.pop();
                }
            }
            keyword if DATA.contains(&keyword) => {}
            _ if is_annotated(value) => return None,
            _ => {}
        }
    }
    Some(())
}

fn annotation(header: &Value, schema: &Value, path: &[String]) -> Option<Annotation> {
    let header = header.as_str().filter(|name| is_token(name))?.to_ascii_lowercase();
    let simple = matches!(schema.get("type")?.as_str()?, "string" | "integer" | "boolean");
    simple.then(|| Annotation { header, path: path.to_vec() })
}

/// Whether there is an annotation that no chain of `properties` reaches.
fn is_annotated(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| {
            key == KEY || (!DATA.contains(&key.as_str()) && is_annotated(value))
        }),
        Value::Array(items) => items.iter().any(is_annotated),
        _ => false,
    }
}

fn is_token(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(allowed)
}

impl Annotation {
    /// The header for these arguments, raw JSON; `None` if there is nothing to repeat.
    pub fn head(&self, arguments: &str) -> Option<(String, String)> {
        let value = header_value(&self.value(arguments).ok()??).into_owned();
        Some((format!("{PREFIX}{}", self.header), value))
    }

    /// Whether the headers of a request repeat this argument. `header` gives the value of a header
    /// without its prefix.
    pub fn check<'h>(
        &self,
        arguments: &str,
        header: impl Fn(&str) -> Option<&'h str>,
    ) -> Result<(), Objection> {
        let name = format!("Mcp-Param-{}", self.header);
        let said = header(&self.header);
        match (self.value(arguments)?, said) {
            (None, None) => Ok(()),
            (None, Some(_)) => {
                let message = format!("the header {name} repeats an argument that is not there");
                Err(Objection::new(code::HEADER_MISMATCH, message))
            }
            (Some(value), Some(said)) if same_number(&value, said) => Ok(()),
            (Some(value), said) => agree(&name, said, &value),
        }
    }

    /// The argument as text.
    fn value(&self, arguments: &str) -> Result<Option<String>, Refusal> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let raw = peek(arguments, &path)?;
        Ok(raw.and_then(|raw| match raw.as_bytes().first()? {
            b'"' => text(raw).map(std::borrow::Cow::into_owned),
            b't' | b'f' => Some(raw.to_owned()),
            b'-' | b'0'..=b'9' => {
                let whole = raw.parse::<i64>().ok().filter(|number| number.abs() <= SAFE);
                Some(whole.map_or_else(|| raw.to_owned(), |number| number.to_string()))
            }
            _ => None,
        }))
    }
}

/// Integers are compared as numbers.
fn same_number(value: &str, said: &str) -> bool {
    match (value.parse::<i64>(), said.trim_matches([' ', '\t']).parse::<i64>()) {
        (Ok(value), Ok(said)) => value == said && said.abs() <= SAFE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(properties: &str) -> String {
        format!(r#"{{"name":"t","inputSchema":{{"type":"object","properties":{properties}}}}}"#)
    }

    #[test]
    fn which_annotations_can_be_followed() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            (r#"{"a":{"type":"string"}}"#, Some(&[])),
            (r#"{"a":{"type":"string","x-mcp-header":"Region"}}"#, Some(&["region=a"])),
            (r#"{"a":{"type":"string","x\u002dmcp-header":"Region"}}"#, Some(&["region=a"])),
            (
                r#"{"o":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"B"}}}}"#,
                Some(&["b=o.b"]),
            ),
            (r#"{"x-mcp-header":{"type":"string"}}"#, Some(&[])),
            (r#"{"a":{"type":"string","default":{"x-mcp-header":"B"}}}"#, Some(&[])),
            (r#"{"a":{"type":"number","x-mcp-header":"N"}}"#, None),
            (r#"{"a":{"type":"string","x-mcp-header":""}}"#, None),
            (r#"{"a":{"type":"string","x-mcp-header":"a:b"}}"#, None),
            (r#"{"a":{"type":"string","x-mcp-header":7}}"#, None),
            (
                r#"{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}}"#,
                None,
            ),
            (r#"{"a":{"type":"array","items":{"type":"string","x-mcp-header":"I"}}}"#, None),
            (r#"{"a":{"oneOf":[{"type":"string","x-mcp-header":"I"}]}}"#, None),
        ];
        for (properties, expected) in cases {
            let found = of_tool(&tool(properties)).map(|all| {
                all.iter().map(|one| format!("{}={}", one.header, one.path.join("."))).collect()
            });
            let expected = expected.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
            assert_eq!(found, expected as Option<Vec<String>>, "{properties}");
        }
    }

    #[test]
    fn headers_repeat_arguments() {
        let one = Annotation { header: "x".to_owned(), path: vec!["a".to_owned()] };
        let cases = [
            (r#"{"a":"v"}"#, Some("v"), Ok(())),
            (r#"{"a":"v"}"#, Some("=?base64?dg==?="), Ok(())),
            (r#"{"a":7}"#, Some("7"), Ok(())),
            (r#"{"a":7}"#, Some("07"), Ok(())),
            (r#"{"a":true}"#, Some("true"), Ok(())),
            (r#"{"a":null}"#, None, Ok(())),
            ("{}", None, Ok(())),
            (r#"{"a":"v"}"#, Some("w"), Err(-32020)),
            (r#"{"a":"v"}"#, None, Err(-32020)),
            (r#"{"a":"v"}"#, Some("=?base64?d?="), Err(-32020)),
            ("{}", Some("v"), Err(-32020)),
        ];
        for (arguments, header, expected) in cases {
            let checked = one.check(arguments, |_| header).map_err(|objection| objection.code);
            assert_eq!(checked, expected, "{arguments} {header:?}");
        }
        assert_eq!(
            one.head(r#"{"a":"é"}"#).unwrap(),
            ("mcp-param-x".into(), "=?base64?w6k=?=".into())
        );
        assert_eq!(one.head(r#"{"a":null}"#), None);
    }
}
