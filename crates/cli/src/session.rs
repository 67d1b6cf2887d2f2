//! `toolgate session`: programs that have dialled in.

use serde_json::Value;

use crate::admin_client::AdminClient;
use crate::args::{ListOutput, SessionArgs, SessionVerb};
use crate::exit::Done;
use crate::policy::visible;
use crate::{listing, print};

const COLUMNS: &[(&str, &str)] = &[
    ("SESSION", "session_id"),
    ("KIND", "kind"),
    ("BASE", "infobase_name"),
    ("HOST", "host_id"),
    ("STATE", "state"),
    ("TOOLS", "tools"),
    ("RUNNING", "inflight"),
    ("QUEUED", "queued"),
    ("ANSWERED", "last_answer_secs_ago"),
];

pub(crate) fn run(args: &SessionArgs) -> anyhow::Result<Done> {
    let SessionVerb::List(args) = &args.verb;
    let items = AdminClient::new(&args.admin)?.list("/api/v1/sessions")?;
    listing::list(args.output, &items, COLUMNS);
    if args.output == ListOutput::Table {
        for remark in items.iter().flat_map(remarks) {
            print::err(&format!("{}\n", visible(&remark)));
        }
    }
    Ok(Done::Ok)
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
