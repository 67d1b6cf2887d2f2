//! Labels: on `/mcp`, a question of a server names the server.
//!
//! People and models see one connection there for several servers. The message of an elicitation
//! begins with `[<server>]`, the system prompt of a sampling request with a sentence that names the
//! server, and both have `_meta["toolgate/server"]`.
//!
//! Invariant: nothing else in a question changes. A question that cannot be labelled is not asked.

use toolgate_json::{Edit, EditError, entries, items, members, peek, quote, text};
use toolgate_mcp::{code, method};

/// The key of `_meta` that names the server.
const KEY: &str = "toolgate/server";

/// The question cannot be labelled with its server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CannotLabel;

/// The labelled `params` of a question; `None` if the method is not labelled.
pub(crate) fn params(
    method: &str,
    params: Option<&str>,
    server: &str,
) -> Result<Option<String>, CannotLabel> {
    let (key, name) = match method {
        method::ELICITATION_CREATE => ("message", format!("[{server}] ")),
        method::SAMPLING_CREATE_MESSAGE => {
            ("systemPrompt", format!("This request comes from the MCP server `{server}`. "))
        }
        _ => return Ok(None),
    };
    let params = params.filter(|raw| raw.starts_with('{')).ok_or(CannotLabel)?;
    let [text_of_key, meta] = members(params, [key, "_meta"]).map_err(|_| CannotLabel)?;
    let (mut edit, mut new) = (Edit::new(params), Vec::new());
    match text_of_key {
        Some(raw) => {
            let words = text(raw).ok_or(CannotLabel)?;
            edit = edit.replace(raw, quote(&format!("{name}{words}"))).map_err(cannot)?;
        }
        None => new.push(format!(r#""{key}":{}"#, quote(name.trim_end()))),
    }
    let tag = quote(server);
    match meta {
        Some(meta) if meta.starts_with('{') => {
            edit = match peek(meta, &[KEY]).map_err(|_| CannotLabel)? {
                Some(before) => edit.replace(before, tag),
                None => edit.insert(meta, KEY, &tag),
            }
            .map_err(cannot)?;
        }
        Some(_) => return Err(CannotLabel),
        None => new.push(format!(r#""_meta":{{"{KEY}":{tag}}}"#)),
    }
    if !new.is_empty() {
        edit = edit.insert_raw(params, &new.join(",")).map_err(cannot)?;
    }
    finish(edit).map(Some)
}

/// The result with labelled `inputRequests`; `None` if it has none. Requests that cannot be
/// labelled are left out.
pub(crate) fn result(result: &str, server: &str) -> Option<String> {
    memchr::memmem::find(result.as_bytes(), b"inputRequests")?;
    let asked = peek(result, &["inputRequests"]).ok()??;
    let all = entries(asked).ok()??;
    let all = all.into_iter().filter_map(|(key, request)| {
        let [method, inner] = members(request, ["method", "params"]).ok()?;
        let named = params(&text(method?)?, inner, server).ok()?;
        let request = match (named, inner) {
            (Some(named), Some(inner)) => {
                finish(Edit::new(request).replace(inner, named).ok()?).ok()?
            }
            _ => request.to_owned(),
        };
        Some(format!("{key}:{request}"))
    });
    let all = format!("{{{}}}", all.collect::<Vec<_>>().join(","));
    finish(Edit::new(result).replace(asked, all).ok()?).ok()
}

/// A labelled error that asks a person to open a URL first; `None` for any other error.
pub(crate) fn error(error: &str, server: &str) -> Option<String> {
    let number = peek(error, &["code"]).ok()??;
    if number.parse() != Ok(code::URL_ELICITATION_REQUIRED) {
        return None;
    }
    let asked = peek(error, &["data", "elicitations"]).ok()??;
    let (mut edit, name) = (Edit::new(error), format!("[{server}] "));
    for one in items(asked).ok()?? {
        edit = match peek(one, &["message"]).ok()? {
            Some(raw) => edit.replace(raw, quote(&format!("{name}{}", text(raw)?))).ok()?,
            None => edit.insert(one, "message", &quote(name.trim_end())).ok()?,
        };
    }
    finish(edit).ok()
}

fn finish(edit: Edit<'_>) -> Result<String, CannotLabel> {
    String::from_utf8(edit.finish().to_vec()).map_err(|_| CannotLabel)
}

fn cannot(_: EditError) -> CannotLabel {
    CannotLabel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_name_their_server_and_pass_otherwise() {
        let cases = [
            (
                method::ELICITATION_CREATE,
                r#"{"message":"Go \u006fn?","requestedSchema":{"x":1.0}}"#,
                r#"{"_meta":{"toolgate/server":"files"},"message":"[files] Go on?","requestedSchema":{"x":1.0}}"#,
            ),
            (
                method::ELICITATION_CREATE,
                r#"{"mode":"url","message":"[bank] sign","_meta":{"toolgate/server":"bank"}}"#,
                r#"{"mode":"url","message":"[files] [bank] sign","_meta":{"toolgate/server":"files"}}"#,
            ),
            (
                method::SAMPLING_CREATE_MESSAGE,
                r#"{"messages":[],"systemPrompt":"Be kind.","_meta":{"a":1}}"#,
                r#"{"messages":[],"systemPrompt":"This request comes from the MCP server `files`. Be kind.","_meta":{"toolgate/server":"files","a":1}}"#,
            ),
        ];
        for (method, before, after) in cases {
            let named = params(method, Some(before), "files").unwrap();
            assert_eq!(named.as_deref(), Some(after), "{before}");
        }
        assert_eq!(params(method::ROOTS_LIST, None, "files"), Ok(None));
        for odd in [
            r#"{"message":7}"#,
            "[]",
            r#"{"message":"a","_meta":7}"#,
            r#"{"message":"a","message":"b"}"#,
        ] {
            assert_eq!(
                params(method::ELICITATION_CREATE, Some(odd), "files"),
                Err(CannotLabel),
                "{odd}"
            );
        }
    }

    #[test]
    fn questions_in_answers_name_their_server() {
        let asked = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m"}},"b":{"method":"roots/list"}}}"#;
        let named = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"_meta":{"toolgate/server":"files"},"message":"[files] m"}},"b":{"method":"roots/list"}}}"#;
        assert_eq!(result(asked, "files").as_deref(), Some(named));
        assert_eq!(result(r#"{"content":[]}"#, "files"), None);
        let failed = r#"{"code":-32042,"message":"m","data":{"elicitations":[{"message":"sign"},{"url":"u"}]}}"#;
        let named = r#"{"code":-32042,"message":"m","data":{"elicitations":[{"message":"[files] sign"},{"message":"[files]","url":"u"}]}}"#;
        assert_eq!(error(failed, "files").as_deref(), Some(named));
        assert_eq!(error(r#"{"code":-32602,"message":"m"}"#, "files"), None);
    }
}
