//! `toolgate audit show`: everything that the audit has about one call.

use std::sync::Arc;

use toolgate_audit::{CallId, Draft, Effect, Row, RowKind};
use toolgate_control::visible;
use toolgate_store_sqlite::AuditReader;

use super::place::Documents;
use crate::args::{OneOutput, ShowArgs};
use crate::exit::{Done, Usage};
use crate::print;

pub(super) fn run(args: &ShowArgs) -> anyhow::Result<Done> {
    let (folder, mut audit) = super::open(&args.data)?;
    let (call, how_many) = match find(&audit, &args.call)?.as_slice() {
        [] => (None, "no call"),
        [call] => (Some(*call), ""),
        _ => (None, "more than one call"),
    };
    let Some(call) = call else {
        print::err(&format!(
            "{how_many} has an id that begins with `{}`; `toolgate audit list` shows ids, \
             and `-o jsonl` all of each\n",
            args.call
        ));
        return Ok(Done::Finding);
    };
    let rows = audit.call_rows(call)?;
    match args.output {
        OneOutput::Json => {
            let rows: Vec<String> = rows.iter().map(Row::to_json).collect();
            print::out(&format!("{{\"call_id\":\"{call}\",\"rows\":[{}]}}\n", rows.join(",")));
        }
        OneOutput::Table => {
            let documents = Documents::read(args, &folder);
            let text: String = rows.iter().map(|row| describe(row, &documents)).collect();
            print::out(&visible(&format!("call {call}\n{text}")));
        }
    }
    Ok(Done::Ok)
}

/// The calls whose id begins with this text; at most two.
fn find(audit: &AuditReader, text: &str) -> anyhow::Result<Vec<CallId>> {
    let hex = text.replace('-', "").to_ascii_lowercase();
    let is_id = (1..=32).contains(&hex.len()) && hex.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_id {
        return Err(Usage(format!(
            "`{text}` is not the id of a call or its beginning (hexadecimal digits)"
        ))
        .into());
    }
    let bound = |fill: char| u128::from_str_radix(&padded(&hex, fill), 16);
    Ok(audit.calls_between(CallId(bound('0')?.to_be_bytes()), CallId(bound('f')?.to_be_bytes()))?)
}

fn padded(hex: &str, fill: char) -> String {
    hex.chars().chain(std::iter::repeat(fill)).take(32).collect()
}

fn describe(row: &Row, documents: &Documents) -> String {
    let d = &row.draft;
    let lines = match d.kind {
        RowKind::Intent => requested(d, "was admitted", documents),
        RowKind::Denied => requested(d, "was refused; nothing was sent", documents),
        RowKind::Held => requested(d, "was held for a person; nothing was sent", documents),
        RowKind::Outcome => ended(d),
        other => vec![format!("Row of kind {other}.")],
    };
    let message = d.message.iter().map(|message| format!("Message: {message}"));
    // Text of agents must not look like a line of this output.
    let lines = lines.into_iter().chain(message).map(|line| line.replace('\n', "\\n"));
    let lines = lines.map(|line| format!("  {line}\n"));
    let time = d.time.strftime("%Y-%m-%d %H:%M:%S%.3fZ");
    format!("\n{time}  row {}\n{}", row.seq, lines.collect::<String>())
}

fn requested(d: &Draft, became: &str, documents: &Documents) -> Vec<String> {
    let name = |field: &Option<Arc<str>>| field.as_deref().unwrap_or("?").to_owned();
    let mut lines = vec![format!("Grant {}, through {}.", name(&d.grant), name(&d.via))];
    lines.extend(d.person.iter().map(|person| format!("Person: {person}.")));
    lines.extend(d.identity.iter().map(|identity| format!("Identity: {identity}.")));
    lines.extend(d.client.iter().map(|client| format!("Client (self-declared): {client}.")));
    let method = d.method.as_deref().unwrap_or("tools/call");
    lines.push(format!("Request: {method} {} of server {}.", name(&d.tool), name(&d.server)));
    lines.extend(d.argument_keys.iter().map(|keys| match keys.as_ref() {
        "[]" => "Arguments: none.".to_owned(),
        keys => format!("Argument names: {keys}."),
    }));
    lines.extend(d.arguments.iter().map(|values| format!("Recorded argument values: {values}.")));
    lines.push(format!("The call {became}."));
    if let Some(decision) = d.decision {
        let place = documents.place(d);
        let rule = d.rule.as_ref().map(|rule| format!(" by rule {rule}{place}"));
        lines.push(format!("Decision: {decision}{}.", rule.unwrap_or_default()));
    }
    if let Some(policy) = &d.policy {
        let hash = d.policy_hash.map(|hash| format!(", hash {hash}")).unwrap_or_default();
        lines.push(format!("Policy: {policy}{hash}."));
    }
    lines.extend(d.error_code.iter().map(|code| format!("Error code for the agent: {code}.")));
    lines.extend(d.counters.iter().map(|change| {
        format!("Counter {} went from {} to {}.", change.counter, change.before, change.after)
    }));
    lines.extend(d.count.map(|count| format!("This row summarises {count} such calls.")));
    lines
}

fn ended(d: &Draft) -> Vec<String> {
    let outcome = d.outcome.map_or("?", |outcome| outcome.as_str());
    let effect = match d.effect {
        Some(Effect::NotStarted) => "the tool did not run",
        Some(Effect::Done) => "the tool ran",
        Some(Effect::Unknown) | None => "the tool may have run",
    };
    let mut lines = vec![format!("Outcome: {outcome}; {effect}.")];
    lines.extend(d.upstream_ms.map(|ms| format!("The server took {ms} ms.")));
    lines.extend(d.total_ms.map(|ms| format!("The call took {ms} ms in all.")));
    lines
}
