//! Taking the audit out of toolgate, and verifying it.
//!
//! Invariant: an export is streamed, one page of the API after the other, however long it is.

use axum::body::Body;
use axum::http::{HeaderValue, Method, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use futures_util::stream;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolgate_audit::ROW_FIELDS;

use super::audit::filters;
use crate::look::Look as _;
use crate::problem::Problem;
use crate::shown::grouped;
use crate::visit::{List, Outcome, Visit};

/// How far an export has come.
struct Export {
    visit: Visit,
    is_csv: bool,
    query: String,
    /// The row after which it continues; `None` at the end.
    after: Option<String>,
}

/// The rows that match the filters, oldest first, as a file.
pub(crate) async fn export(visit: Visit) -> Outcome {
    let is_csv = visit.query.text("format") != "jsonl";
    let query = filters(&visit, &[("limit", "1000")]);
    let mut export = Export { visit, is_csv, query, after: Some("0".to_owned()) };
    // An error of the filters is shown as a page.
    let first = export.next().await?;
    let head = if is_csv { format!("\u{feff}{}\r\n", ROW_FIELDS.join(",")) } else { String::new() };
    let first = Bytes::from(head + &first.unwrap_or_default());
    let rest = stream::unfold(export, |mut export| async move {
        let chunk = export.next().await.transpose()?;
        let chunk = chunk.map_err(|_| std::io::Error::other("the export broke off"));
        Some((chunk.map(Bytes::from), export))
    });
    let start = stream::iter([Ok(first)]);
    let body = Body::from_stream(futures_util::StreamExt::chain(start, rest));
    let (kind, name) = if is_csv {
        ("text/csv; charset=utf-8", "attachment; filename=\"audit.csv\"")
    } else {
        ("application/x-ndjson", "attachment; filename=\"audit.jsonl\"")
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static(name)),
    ];
    Ok((headers, body).into_response())
}

impl Export {
    /// The next rows; `None` at the end.
    async fn next(&mut self) -> Result<Option<String>, Problem> {
        let Some(after) = self.after.take() else { return Ok(None) };
        let target = format!("/api/v1/audit?{}&after={after}", self.query);
        let page: List<Box<RawValue>> = self.visit.get(&target).await?;
        self.after = page.next;
        let line = |row: &RawValue| {
            if self.is_csv {
                csv(&serde_json::from_str(row.get()).unwrap_or_default())
            } else {
                format!("{}\n", row.get())
            }
        };
        Ok(Some(page.items.iter().map(|row| line(row)).collect()))
    }
}

fn csv(members: &Map<String, Value>) -> String {
    let cell = |field: &&str| {
        let text = match members.get(*field) {
            None | Some(Value::Null) => String::new(),
            // Spreadsheets evaluate text that begins like this.
            Some(Value::String(text)) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => {
                format!("'{text}")
            }
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        if text.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    };
    format!("{}\r\n", ROW_FIELDS.iter().map(cell).collect::<Vec<_>>().join(","))
}

/// Verifies the whole audit, and says on its page what was found.
pub(crate) async fn verify(visit: Visit) -> Outcome {
    let found = visit.send(&Method::POST, "/api/v1/audit/verify", &Value::Null).await;
    let number = |key: &str| match &found {
        Ok(found) => grouped(found.at(key).as_u64().unwrap_or_default()),
        Err(_) => String::new(),
    };
    if found.as_ref().is_ok_and(|found| found.at("ok") != true) {
        let text = visit.trv("audit-broken", &number("first_bad"));
        let fault = toolgate_admin::Fault::conflict(text);
        return visit.ended(Err::<(), _>(Problem::Refused(fault)), "/audit", String::new());
    }
    let values = [("value", number("rows").into()), ("signed", number("signed").into())];
    let text = visit.language.text("audit-intact", &values);
    visit.ended(found, "/audit", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_and_never_a_formula() {
        let row = serde_json::json!({ "seq": 7, "tool": "=cmd()", "message": "a, \"b\"" });
        let line = csv(row.as_object().unwrap());
        assert!(line.starts_with("7,") && line.ends_with("\r\n"), "{line}");
        assert!(line.contains(",'=cmd(),") && line.contains("\"a, \"\"b\"\"\""), "{line}");
    }
}
