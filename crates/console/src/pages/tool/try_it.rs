//! *Try it*: a form made of the input schema, and a call with the rights of a grant.

use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::{Detail, render};
use crate::look::Look as _;
use crate::problem::{Problem, said};
use crate::shown::{foreign, operand, shell_word};
use crate::visit::{Outcome, Visit, part};

/// One argument of the input schema.
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// The name of its form field.
    pub(crate) field: String,
    pub(crate) kind: String,
    pub(crate) is_required: bool,
    pub(crate) description: String,
    /// Allowed values, if it is a choice.
    pub(crate) choices: Vec<String>,
    /// What the person entered.
    pub(crate) value: String,
}

/// A call that was tried.
pub(crate) struct Tried {
    /// Its arguments; null if they are not valid.
    arguments: Value,
    pub(crate) is_error: bool,
    pub(crate) verdict: String,
    pub(crate) request: String,
    pub(crate) answer: String,
    pub(crate) text: String,
}

/// The arguments of the input schema.
pub(crate) fn parameters(definition: &Value, visit: &Visit) -> Vec<Parameter> {
    let schema = definition.get("inputSchema").or_else(|| definition.get("input_schema"));
    let Some(schema) = schema else { return Vec::new() };
    let required: Vec<&str> =
        schema.at("required").as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.at("properties").as_object().into_iter().flatten();
    let of = |(name, property): (&String, &Value)| {
        let kind = match (&property.at("type"), property.get("enum")) {
            (_, Some(_)) => "choice",
            (Value::String(kind), _) => match kind.as_str() {
                "string" => "string",
                "integer" | "number" => "number",
                "boolean" => "boolean",
                _ => "json",
            },
            _ => "json",
        };
        let choices = property.at("enum").as_array().into_iter().flatten();
        let choices = choices.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
        let field = format!("arg.{name}");
        Parameter {
            value: visit.form.raw(&field).to_owned(),
            name: foreign(name, 120),
            field,
            kind: kind.to_owned(),
            is_required: required.contains(&name.as_str()),
            description: foreign(property.at("description").as_str().unwrap_or_default(), 400),
            choices: choices.map(|it| foreign(&it, 120)).collect(),
        }
    };
    properties.take(64).map(of).collect()
}

/// Calls the tool with the rights of a grant.
pub(crate) async fn call(visit: Visit) -> Outcome {
    let path = format!("/tools/{}/{}", part(visit.param("server")), part(visit.param("tool")));
    let detail: Detail = visit.get(&format!("/api/v1{path}")).await?;
    let tried = match arguments(&visit, &detail.definition) {
        Err(NotJson(name)) => Tried::failed(visit.trv("try-not-json", &name)),
        Ok(arguments) => {
            let body = json!({ "grant": visit.form.text("grant"), "arguments": &arguments });
            match visit.send(&Method::POST, &format!("/api/v1{path}/call"), &body).await {
                Ok(messages) => Tried { arguments, ..Tried::of(&visit, &messages) },
                Err(Problem::Refused(fault)) if fault.status() == StatusCode::FORBIDDEN => {
                    return visit.ended(Err::<(), _>(fault.into()), &path, String::new());
                }
                Err(Problem::Refused(fault)) => Tried { arguments, ..Tried::failed(said(&fault)) },
                Err(other) => return Err(other),
            }
        }
    };
    render(&visit, Some(tried)).await
}

/// The same call on the command line; with placeholders before one was tried.
pub(crate) fn command(visit: &Visit, server: &str, tool: &str, tried: Option<&Tried>) -> String {
    let grant = visit.form.some("grant").map_or_else(|| "GRANT".to_owned(), shell_word);
    let arguments = tried.map(|tried| &tried.arguments).filter(|it| it.is_object());
    let arguments = arguments.map_or_else(|| "'{…}'".to_owned(), |it| shell_word(&it.to_string()));
    let (server, tool) = (shell_word(server), operand(tool));
    format!("toolgate tool call --as {grant} --server {server} {tool} {arguments}")
}

/// The argument whose field is not valid JSON.
struct NotJson(String);

/// The arguments that the form describes.
fn arguments(visit: &Visit, definition: &Value) -> Result<Value, NotJson> {
    let mut arguments = Map::new();
    for parameter in parameters(definition, visit) {
        let text = visit.form.raw(&parameter.field);
        let name = parameter.field.strip_prefix("arg.").unwrap_or_default().to_owned();
        if text.is_empty() && !(parameter.is_required && parameter.kind == "string") {
            continue;
        }
        let value = match parameter.kind.as_str() {
            "string" => Value::from(text),
            "choice" => choice(definition, &name, text),
            _ => serde_json::from_str(text).map_err(|_| NotJson(name.clone()))?,
        };
        arguments.insert(name, value);
    }
    Ok(Value::Object(arguments))
}

/// The allowed value that is shown as this text.
fn choice(definition: &Value, name: &str, text: &str) -> Value {
    let schema = definition.get("inputSchema").or_else(|| definition.get("input_schema"));
    let values =
        schema.map(|schema| schema.at("properties").at(name).at("enum")).and_then(Value::as_array);
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let found = values.into_iter().flatten().find(|value| foreign(&shown(value), 120) == text);
    found.cloned().unwrap_or_else(|| text.into())
}

impl Tried {
    fn failed(text: String) -> Self {
        let (request, answer) = (String::new(), String::new());
        let (verdict, arguments) = ("error".to_owned(), Value::Null);
        Self { arguments, is_error: true, verdict, request, answer, text }
    }

    fn of(visit: &Visit, messages: &Value) -> Self {
        let answer = &messages.at("answer");
        let result = &answer.at("result");
        let code = result.at("_meta").at("error_code").as_str();
        let is_error = result.at("isError") == true || answer.get("error").is_some();
        let verdict = match (code, is_error) {
            (Some(code), _) => code.to_owned(),
            (None, true) => visit.tr("try-tool-error"),
            (None, false) => visit.tr("try-allowed"),
        };
        let contents = result.at("content").as_array().into_iter().flatten();
        let texts = contents.filter_map(|content| content.at("text").as_str());
        let mut text = texts.collect::<Vec<_>>().join("\n");
        if let Some(message) = answer.at("error").at("message").as_str() {
            message.clone_into(&mut text);
        }
        Self {
            arguments: Value::Null,
            is_error,
            verdict,
            request: foreign(&format!("{:#}", messages.at("request")), 20_000),
            answer: foreign(&format!("{answer:#}"), 60_000),
            text: foreign(&text, 8_000),
        }
    }
}
