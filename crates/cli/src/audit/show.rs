//! `toolgate audit show`: the story of one call.

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
    let (call, more) = match find(&audit, &args.call)?.as_slice() {
        [] => (None, "no call"),
        [call] => (Some(*call), ""),
        _ => (None, "more than one call"),
    };
    let Some(call) = call else {
        print::err(&format!(
            "{more} has an id that begins with `{}`: `toolgate audit list -o jsonl` shows ids, as `call_id`\n",
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
            let told: String = rows.iter().map(|row| tell(row, &documents)).collect();
            print::out(&visible(&format!("call {call}\n{told}")));
        }
    }
    Ok(Done::Ok)
}

/// The calls that the beginning of an id may mean; at most two.
fn find(audit: &AuditReader, text: &str) -> anyhow::Result<Vec<CallId>> {
    let hex = text.replace('-', "").to_ascii_lowercase();
    let is_id = (1..=32).contains(&hex.len()) && hex.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_id {
        return Err(Usage(format!("`{text}` is no id of a call, nor the beginning of one")).into());
    }
    let bound = |fill: char| u128::from_str_radix(&fill_up(&hex, fill), 16);
    Ok(audit.calls_between(CallId(bound('0')?.to_be_bytes()), CallId(bound('f')?.to_be_bytes()))?)
}

fn fill_up(hex: &str, fill: char) -> String {
    hex.chars().chain(std::iter::repeat(fill)).take(32).collect()
}

fn tell(row: &Row, documents: &Documents) -> String {
    let d = &row.draft;
    let said = match d.kind {
        RowKind::Intent => asked(d, "was admitted", documents),
        RowKind::Denied => asked(d, "was refused; nothing was sent", documents),
        RowKind::Outcome => ended(d),
        other => vec![format!("A row of kind {other} was written.")],
    };
    let message = d.message.iter().map(|message| format!("It says: {message}"));
    // What agents have sent must not look like a line of this story.
    let lines = said.into_iter().chain(message).map(|line| line.replace('\n', "\\n"));
    let lines = lines.map(|line| format!("  {line}\n"));
    let time = d.time.strftime("%Y-%m-%d %H:%M:%S%.3fZ");
    format!("\n{time}  row {}\n{}", row.seq, lines.collect::<String>())
}

fn asked(d: &Draft, became: &str, documents: &Documents) -> Vec<String> {
    let name = |field: &Option<Arc<str>>| field.as_deref().unwrap_or("?").to_owned();
    let mut said = vec![format!("Grant {} asked at {}.", name(&d.grant), name(&d.via))];
    said.extend(d.identity.iter().map(|identity| format!("It stands for {identity}.")));
    said.extend(d.client.iter().map(|client| format!("The client calls itself {client}.")));
    let method = d.method.as_deref().unwrap_or("tools/call");
    said.push(format!("It wanted {method} {} of server {}.", name(&d.tool), name(&d.server)));
    said.extend(d.argument_keys.iter().map(|keys| match keys.as_ref() {
        "[]" => "It had no arguments.".to_owned(),
        keys => format!("Names of its arguments: {keys}."),
    }));
    said.extend(d.arguments.iter().map(|values| format!("What is kept of them: {values}.")));
    said.push(format!("The call {became}."));
    if let Some(decision) = d.decision {
        let place = documents.place(d);
        let rule = d.rule.as_ref().map(|rule| format!(" by rule {rule}{place}"));
        said.push(format!("The decision was {decision}{}.", rule.unwrap_or_default()));
    }
    if let Some(policy) = &d.policy {
        let hash = d.policy_hash.map(|hash| format!(", hash {hash}")).unwrap_or_default();
        said.push(format!("The policy was {policy}{hash}."));
    }
    said.extend(d.error_code.iter().map(|code| format!("The agent was told {code}.")));
    said.extend(d.counters.iter().map(|change| {
        format!("Counter {} went from {} to {}.", change.counter, change.before, change.after)
    }));
    said.extend(d.count.map(|count| format!("This row stands for {count} such calls.")));
    said
}

fn ended(d: &Draft) -> Vec<String> {
    let outcome = d.outcome.map_or("?", |outcome| outcome.as_str());
    let effect = match d.effect {
        Some(Effect::NotStarted) => "the tool did not run",
        Some(Effect::Done) => "the tool ran",
        Some(Effect::Unknown) | None => "the tool may have run",
    };
    let mut said = vec![format!("It ended: {outcome}; {effect}.")];
    said.extend(d.upstream_ms.map(|ms| format!("The server took {ms} ms.")));
    said.extend(d.total_ms.map(|ms| format!("All of it took {ms} ms.")));
    said
}
