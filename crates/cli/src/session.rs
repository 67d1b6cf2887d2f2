//! `toolgate session`: connected sessions and their tokens.

use serde_json::Value;
use toolgate_control::visible;

use crate::admin_client::AdminClient;
use crate::args::{ListOutput, OneOutput, SessionArgs, SessionTokenArgs, SessionVerb};
use crate::data::{announced, find_data};
use crate::exit::Done;
use crate::freeze::is_frozen;
use crate::{listing, print, serve};

const COLUMNS: &[(&str, &str)] = &[
    ("SESSION", "session_id"),
    ("KIND", "kind"),
    ("BASE", "infobase_name"),
    ("HOST", "host_id"),
    ("STATE", "state"),
    ("TOOLS", "tools"),
    ("RUNNING", "inflight"),
    ("QUEUED", "queued"),
    ("LAST ANSWER", "last_answer"),
];

pub(crate) fn run(args: &SessionArgs) -> anyhow::Result<Done> {
    let args = match &args.verb {
        SessionVerb::List(args) => args,
        SessionVerb::Token(args) => return token(args),
    };
    let client = AdminClient::new(&args.admin)?;
    let mut items = client.list("/api/v1/sessions")?;
    if args.output == ListOutput::Table {
        items.iter_mut().for_each(add_last_answer);
        let freezes = client.list("/api/v1/freeze")?;
        for item in &mut items {
            mark_frozen(item, &freezes);
        }
        items.iter_mut().for_each(show_peer);
    }
    listing::list(args.output, &items, COLUMNS);
    if args.output == ListOutput::Table {
        if items.is_empty() {
            print::err(NO_SESSIONS);
        }
        for (remark, count) in counted(items.iter().flat_map(remarks)) {
            let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
            print::err(&format!("{}{times}\n", visible(&remark)));
        }
    }
    Ok(Done::Ok)
}

/// The address if no gateway runs on the data folder.
const DEFAULT_URL: &str = "ws://127.0.0.1:4000/sessions";
const VARIABLE: &str = "TOOLGATE_SESSION_TOKEN";

/// Prints a new token and the lines that use it.
fn token(args: &SessionTokenArgs) -> anyhow::Result<Done> {
    let folder = find_data(args.data.data.as_deref(), args.data.config.as_deref())?;
    let running = announced(&folder, "--data").ok();
    let running = running.and_then(|line| serde_json::from_str::<Value>(&line).ok());
    let url = running.as_ref().and_then(|line| line.get("sessions")).and_then(Value::as_str);
    let (token, url) = (serve::new_token()?, url.unwrap_or(DEFAULT_URL).to_owned());
    let url = format!("{}/{token}", url.trim_end_matches('/'));
    let export = format!("export {VARIABLE}={token}");
    let config = format!("sessions: {{ tokens: [env:{VARIABLE}] }}");
    let launch = format!("/C\"mcpMode=ws;manager_url={url};\"");
    print::out(&match args.output {
        OneOutput::Json => format!(
            "{}\n",
            serde_json::json!({"token": token, "url": url, "export": export, "config": config, "launch": launch})
        ),
        OneOutput::Table => format!(
            "# in the environment of `toolgate serve`\n{export}\n\
             # in toolgate.yaml\n{config}\n\
             # at the end of the command line of the 1C client\n{launch}\n"
        ),
    });
    Ok(Done::Ok)
}

const NO_SESSIONS: &str = "no session is connected; `toolgate demo onec` simulates one\n";

/// Each remark once, with its count: a thousand sockets do not print a thousand lines.
fn counted(remarks: impl Iterator<Item = String>) -> Vec<(String, usize)> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for remark in remarks {
        match counted.iter_mut().find(|(known, _)| *known == remark) {
            Some((_, count)) => *count += 1,
            None => counted.push((remark, 1)),
        }
    }
    counted
}

/// Adds the time of the last answer, for people.
fn add_last_answer(item: &mut Value) {
    let ago = item.get("last_answer_secs_ago").and_then(Value::as_u64);
    let text = ago.map(|secs| match secs {
        0..120 => format!("{secs} s ago"),
        120..7_200 => format!("{} min ago", secs / 60),
        _ => format!("{} h ago", secs / 3_600),
    });
    if let (Some(text), Some(item)) = (text, item.as_object_mut()) {
        item.insert("last_answer".to_owned(), text.into());
    }
}

/// Shows a freeze in the state.
fn mark_frozen(item: &mut Value, freezes: &[Value]) {
    let (Some(id), Some(state)) = (listing::text(item, "session_id"), listing::text(item, "state"))
    else {
        return;
    };
    let state = format!("{state}, frozen");
    if is_frozen(freezes, "session", id)
        && let Some(item) = item.as_object_mut()
    {
        item.insert("state".to_owned(), state.into());
    }
}

/// A program that has not registered has no host name; its address is shown instead.
fn show_peer(item: &mut Value) {
    let peer = item.get("peer").filter(|peer| peer.is_string()).cloned();
    if let (Some(peer), Some(item)) = (peer, item.as_object_mut()) {
        item.entry("host_id").or_insert(peer);
    }
}

/// Problems of a session.
fn remarks(item: &Value) -> Vec<String> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let socket =
        || text("peer").map_or("a socket".to_owned(), |peer| format!("a socket from {peer}"));
    let name = text("session_id").map_or_else(socket, str::to_owned);
    let mut remarks = Vec::new();
    if let Some(hosts) = item.get("conflict").and_then(Value::as_array) {
        let hosts: Vec<&str> = hosts.iter().filter_map(Value::as_str).collect();
        remarks.push(format!(
            "{name}: conflict, two programs use the same client_uid (hosts {}); give each its own \
             one",
            hosts.join(", ")
        ));
    }
    if item.get("unresponsive").and_then(Value::as_bool) == Some(true) {
        remarks.push(format!("{name}: unresponsive, several calls in a row timed out"));
    }
    remarks.extend(text("what_to_do").map(|what| format!("{name}: {what}")));
    remarks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_relative() {
        for (secs, expected) in
            [(0, "0 s ago"), (119, "119 s ago"), (120, "2 min ago"), (9_000, "2 h ago")]
        {
            let mut item = json!({"last_answer_secs_ago": secs});
            add_last_answer(&mut item);
            assert_eq!(item["last_answer"], expected);
        }
        let mut never = json!({"last_answer_secs_ago": null});
        add_last_answer(&mut never);
        assert_eq!(never.get("last_answer"), None);
    }

    #[test]
    fn problems_are_reported() {
        let fine = json!({"session_id": "u1", "conflict": null, "unresponsive": false});
        assert!(remarks(&fine).is_empty());
        let bad = json!({"session_id": "u1", "conflict": ["a", "b"], "unresponsive": true});
        let bad = remarks(&bad);
        assert!(bad[0].contains("hosts a, b") && bad[1].contains("unresponsive"), "{bad:?}");
        let mut socket =
            json!({"session_id": null, "what_to_do": "restart it", "peer": "192.0.2.7"});
        assert_eq!(remarks(&socket), ["a socket from 192.0.2.7: restart it"]);
        show_peer(&mut socket);
        assert_eq!(socket["host_id"], "192.0.2.7");
    }
}
