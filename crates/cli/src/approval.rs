//! `toolgate approval`: answer calls that wait for a person.

mod watch;

use http::Method;
use serde_json::{Map, Value, json};
use toolgate_control::visible;

use crate::admin_client::{AdminClient, part};
use crate::args::{
    AdminArgs, ApprovalAnswerArgs, ApprovalArgs, ApprovalListArgs, ApprovalShowArgs, ApprovalVerb,
    ListOutput, OneOutput,
};
use crate::exit::Done;
use crate::listing::{self, cell, text};
use crate::print;

const COLUMNS: &[(&str, &str)] = &[
    ("ID", "id"),
    ("STATE", "state"),
    ("GRANT", "grant"),
    ("SERVER", "server"),
    ("TOOL", "tool"),
    ("CLASS", "class"),
    ("EXPIRES", "expires"),
];

const STANDING: &[(&str, &str)] = &[
    ("ID", "id"),
    ("GRANT", "grant"),
    ("SERVER", "server"),
    ("TOOL", "tool"),
    ("KEEP", "keep"),
    ("BY", "person"),
    ("EXPIRES", "expires"),
];

pub(crate) fn run(args: &ApprovalArgs) -> anyhow::Result<Done> {
    match &args.verb {
        ApprovalVerb::List(args) => list(args),
        ApprovalVerb::Show(args) => show(args),
        ApprovalVerb::Approve(args) => approve(args),
        ApprovalVerb::Deny(args) => {
            let path = format!("/api/v1/approvals/{}/deny", part(&args.id));
            answer(&args.admin, &path, reasoned(args.reason.as_deref()), args.output)
        }
        ApprovalVerb::Watch(args) => watch::run(args),
        ApprovalVerb::Revoke(args) => {
            let path = format!("/api/v1/approvals/standing/{}", part(&args.id));
            AdminClient::new(&args.admin)?.send(&Method::DELETE, &path, None)?;
            print::done(&format!("{} has ended: similar calls are held again", args.id));
            Ok(Done::Ok)
        }
    }
}

fn approve(args: &ApprovalAnswerArgs) -> anyhow::Result<Done> {
    let mut body = reasoned(args.reason.as_deref());
    if let Some(time) = &args.similar {
        body.insert("similar".to_owned(), json!({"for": time, "keep": args.keep}));
    }
    let path = format!("/api/v1/approvals/{}/approve", part(&args.id));
    answer(&args.admin, &path, body, args.output)
}

fn reasoned(reason: Option<&str>) -> Map<String, Value> {
    reason.map(|reason| ("reason".to_owned(), reason.into())).into_iter().collect()
}

fn list(args: &ApprovalListArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    if args.standing {
        listing::list(args.output, &client.list("/api/v1/approvals/standing")?, STANDING);
        return Ok(Done::Ok);
    }
    let path = match (&args.state, args.all) {
        (Some(state), _) => format!("/api/v1/approvals?state={}", part(state)),
        (None, true) => "/api/v1/approvals".to_owned(),
        (None, false) => "/api/v1/approvals?state=pending".to_owned(),
    };
    let items = client.list(&path)?;
    listing::list(args.output, &items, COLUMNS);
    if args.output == ListOutput::Table && items.is_empty() {
        print::err("no approval is pending\n");
    }
    Ok(Done::Ok)
}

fn show(args: &ApprovalShowArgs) -> anyhow::Result<Done> {
    let client = AdminClient::new(&args.admin)?;
    let approval = client.get(&format!("/api/v1/approvals/{}", part(&args.id)))?;
    match args.output {
        OneOutput::Json => listing::one(args.output, &approval),
        OneOutput::Table => print::out(&shown(&approval)),
    }
    Ok(Done::Ok)
}

fn answer(
    admin: &AdminArgs,
    path: &str,
    body: Map<String, Value>,
    output: OneOutput,
) -> anyhow::Result<Done> {
    let client = AdminClient::new(admin)?;
    let answered = client.send(&Method::POST, path, Some(&Value::Object(body)))?;
    match output {
        OneOutput::Json => listing::one(output, &answered),
        OneOutput::Table => print::done(&result(&answered)),
    }
    Ok(Done::Ok)
}

/// The result of an answer, for people.
fn result(approval: &Value) -> String {
    let (id, state) = (text(approval, "id"), text(approval, "state"));
    let (id, state) = (id.unwrap_or_default(), state.unwrap_or_default());
    let tool = cell(approval.get("tool").unwrap_or(&Value::Null));
    match state {
        "approved" => format!(
            "{id} is approved: the call of `{tool}` is sent once, when its agent waits for it or repeats it"
        ),
        "denied" => format!("{id} is denied"),
        "pending" => {
            let given = approval.get("answers").and_then(Value::as_array).map_or(0, Vec::len);
            let people = approval.get("people").cloned().unwrap_or_else(|| json!(1));
            format!("{id} is approved by {given} of {people} people and stays pending")
        }
        state => format!("{id} is {state}"),
    }
}

/// An approval for people, one fact per line.
pub(crate) fn shown(approval: &Value) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12} {value}\n"));
    for name in ["id", "state", "grant", "identity", "client", "server", "session_id", "tool"] {
        line(name, cell(approval.get(name).unwrap_or(&Value::Null)));
    }
    line("arguments", text(approval, "shown").map_or_else(|| "(erased)".to_owned(), visible));
    for name in
        ["class", "class_reason", "undo", "rule", "note", "asked", "created", "expires", "digest"]
    {
        line(name, cell(approval.get(name).unwrap_or(&Value::Null)));
    }
    if let Some(differs) = approval.get("differs").filter(|differs| !differs.is_null()) {
        let of = |name: &str| cell(differs.get(name).unwrap_or(&Value::Null));
        let (since, added, removed) = (of("since"), of("added"), of("removed"));
        line(
            "differs",
            format!("from {since}: changed {}, added {added}, removed {removed}", of("changed")),
        );
    }
    for limit in list_of(approval, "limits") {
        let of = |name: &str| cell(limit.get(name).unwrap_or(&Value::Null));
        let (counter, used, after) = (of("counter"), of("used"), of("after"));
        line(
            "limit",
            format!("{counter}: {used} -> {after} of {} per {}", of("max"), of("window")),
        );
    }
    for answer in list_of(approval, "answers") {
        let of = |name: &str| cell(answer.get(name).unwrap_or(&Value::Null));
        line(
            "answer",
            format!("{} by {} at {}: {}", of("answer"), of("person"), of("at"), of("reason")),
        );
    }
    for row in list_of(approval, "recent") {
        let of = |name: &str| cell(row.get(name).unwrap_or(&Value::Null));
        line("recent", format!("{} {} {} {}", of("time"), of("kind"), of("server"), of("tool")));
    }
    lines.concat()
}

fn list_of<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
