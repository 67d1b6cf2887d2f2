//! `toolgate tool call`.

use std::io::Read as _;

use anyhow::Context as _;
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_control::visible;

use crate::args::{OneOutput, ToolCallArgs};
use crate::exit::{Done, Usage};
use crate::print;
use crate::suggest::nearest;

pub(super) fn run(args: &ToolCallArgs) -> anyhow::Result<Done> {
    let arguments = arguments(&args.arguments)?;
    let (result, names) = super::with_client(&args.agent, |mut client| async {
        let called = async {
            let result = client.call(&args.tool, &arguments).await?;
            // The names are needed only for a suggestion.
            let names = if is_unknown(&result) { client.tools().await? } else { Vec::new() };
            Ok((result, names))
        };
        let result = called.await;
        (client, result)
    })?;
    let read: Value = serde_json::from_str(result.get()).context("cannot parse the result")?;
    print::out(&match args.output {
        OneOutput::Json => format!("{}\n", result.get()),
        OneOutput::Table => text(&read),
    });
    let names: Vec<String> = names
        .iter()
        .filter_map(|raw| Some(super::name(&super::read(raw).ok()?).to_owned()))
        .collect();
    if let Some(near) = nearest(&args.tool, names.iter().map(String::as_str)) {
        print::err(&format!("did you mean `{}`?\n", visible(near)));
    }
    let failed = read.get("isError").and_then(Value::as_bool).unwrap_or(false);
    Ok(if failed { Done::Finding } else { Done::Ok })
}

/// Whether the gateway does not know the tool.
fn is_unknown(result: &RawValue) -> bool {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    result.pointer("/_meta/error_code").and_then(Value::as_str) == Some("unknown_tool")
}

/// The arguments, unchanged, if they are an object.
fn arguments(given: &str) -> anyhow::Result<Box<RawValue>> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read the arguments from stdin")?;
    }
    let wrong = |why: &dyn std::fmt::Display| {
        Usage(format!(
            "the arguments are not a JSON object ({why}); write them like '{{\"path\": \"a.txt\"}}'"
        ))
    };
    let raw: Box<RawValue> = serde_json::from_str(text.trim()).map_err(|error| wrong(&error))?;
    if !raw.get().starts_with('{') {
        return Err(wrong(&"another JSON value was given").into());
    }
    Ok(raw)
}

/// All contents; a placeholder for content that is not text.
fn text(result: &Value) -> String {
    let contents = result.get("content").and_then(Value::as_array);
    let mut text = String::new();
    for content in contents.into_iter().flatten() {
        text.push_str(&one(content));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if text.is_empty() {
        text = match result.get("structuredContent") {
            Some(structured) => format!("{structured:#}\n"),
            None => "(no content)\n".to_owned(),
        };
    }
    text
}

fn one(content: &Value) -> String {
    let field = |name: &str| content.get(name).and_then(Value::as_str).unwrap_or("?");
    let kind = field("type");
    match kind {
        "text" => visible(field("text")),
        "image" | "audio" => {
            let size = field("data").len() / 4 * 3;
            format!("[{kind} {}, about {size} bytes]", visible(field("mimeType")))
        }
        "resource_link" => format!("[resource {}]", visible(field("uri"))),
        "resource" => {
            let within = |name: &str| content.pointer(&format!("/resource/{name}"));
            let uri = within("uri").and_then(Value::as_str).unwrap_or("?");
            let text = within("text").and_then(Value::as_str).map(visible);
            format!("[resource {}]\n{}", visible(uri), text.unwrap_or_default())
        }
        _ => format!("[{}]", visible(kind)),
    }
}
