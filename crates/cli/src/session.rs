//! `toolgate session`: programs that have dialled in.

use serde_json::Value;
use toolgate_control::visible;

use crate::admin_client::AdminClient;
use crate::args::{ListOutput, OneOutput, SessionArgs, SessionTokenArgs, SessionVerb};
use crate::data::{announced, find_data};
use crate::exit::Done;
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
    let mut items = AdminClient::new(&args.admin)?.list("/api/v1/sessions")?;
    if args.output == ListOutput::Table {
        items.iter_mut().for_each(tell_time);
    }
    listing::list(args.output, &items, COLUMNS);
    if args.output == ListOutput::Table {
        if items.is_empty() {
            print::err(NOBODY);
        }
        for (remark, count) in counted(items.iter().flat_map(remarks)) {
            let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
            print::err(&format!("{}{times}\n", visible(&remark)));
        }
    }
    Ok(Done::Ok)
}

/// Where programs dial in if no gateway says otherwise.
const USUAL: &str = "ws://127.0.0.1:4000/sessions";
const VARIABLE: &str = "TOOLGATE_SESSION_TOKEN";

/// A token, and the lines in which it is used.
fn token(args: &SessionTokenArgs) -> anyhow::Result<Done> {
    let folder = find_data(args.data.data.as_deref(), args.data.config.as_deref())?;
    let running = announced(&folder, "--data").ok();
    let running = running.and_then(|line| serde_json::from_str::<Value>(&line).ok());
    let url = running.as_ref().and_then(|line| line.get("sessions")).and_then(Value::as_str);
    let (token, url) = (serve::new_token()?, url.unwrap_or(USUAL).to_owned());
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
             # at the end of the line that starts the 1C client\n{launch}\n"
        ),
    });
    Ok(Done::Ok)
}

const NOBODY: &str = "nobody has dialled in; `toolgate demo onec` plays a program that does\n";

/// Each remark once, and how often it was made: a thousand sockets need no thousand lines.
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

/// A time as people say it.
fn tell_time(item: &mut Value) {
    let ago = item.get("last_answer_secs_ago").and_then(Value::as_u64);
    let told = ago.map(|secs| match secs {
        0..120 => format!("{secs} s ago"),
        120..7_200 => format!("{} min ago", secs / 60),
        _ => format!("{} h ago", secs / 3_600),
    });
    if let (Some(told), Some(item)) = (told, item.as_object_mut()) {
        item.insert("last_answer".to_owned(), told.into());
    }
}

/// What somebody should look at.
fn remarks(item: &Value) -> Vec<String> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let name = text("session_id").unwrap_or("a socket");
    let mut remarks = Vec::new();
    if let Some(hosts) = item.get("conflict").and_then(Value::as_array) {
        let hosts: Vec<&str> = hosts.iter().filter_map(Value::as_str).collect();
        remarks.push(format!(
            "{name}: conflict, two programs take it from each other (hosts {}); give each its own \
             client_uid",
            hosts.join(", ")
        ));
    }
    if item.get("unresponsive").and_then(Value::as_bool) == Some(true) {
        remarks.push(format!("{name}: unresponsive, its calls time out again and again"));
    }
    remarks.extend(text("what_to_do").map(|what| format!("{name}: {what}")));
    remarks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_told_as_people_do() {
        for (secs, expected) in
            [(0, "0 s ago"), (119, "119 s ago"), (120, "2 min ago"), (9_000, "2 h ago")]
        {
            let mut item = json!({"last_answer_secs_ago": secs});
            tell_time(&mut item);
            assert_eq!(item["last_answer"], expected);
        }
        let mut never = json!({"last_answer_secs_ago": null});
        tell_time(&mut never);
        assert_eq!(never.get("last_answer"), None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fine = json!({"session_id": "u1", "conflict": null, "unresponsive": false});
        assert!(remarks(&fine).is_empty());
        let bad = json!({"session_id": "u1", "conflict": ["a", "b"], "unresponsive": true});
        let bad = remarks(&bad);
        assert!(bad[0].contains("hosts a, b") && bad[1].contains("unresponsive"), "{bad:?}");
        let socket = remarks(&json!({"session_id": null, "what_to_do": "restart it"}));
        assert_eq!(socket, ["a socket: restart it"]);
    }
}
