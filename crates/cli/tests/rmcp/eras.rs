//! Every client with every server, each server by itself and among others.

use serde_json::{Value, json};

use crate::agent::{call, connect};
use crate::upstream::{BOTH, Era, gate};

pub(crate) async fn any_client_with_any_server() {
    let gate = gate().await;
    for client_era in BOTH {
        for server in BOTH.map(Era::server) {
            for (path, prefix) in [
                (format!("/mcp/{server}"), String::new()),
                ("/mcp".to_owned(), format!("{server}__")),
            ] {
                let what = format!("{client_era:?} client, {server} server, {path}");
                let name = format!("{client_era:?}-{server}");
                let (client, agent) = connect(&gate, &path, client_era, &name).await;
                let tools = client.list_all_tools().await.expect(&what);
                let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
                assert!(names.contains(&format!("{prefix}echo")), "{what}: {names:?}");

                let arguments = json!({"region": "Привет", "n": 1.5, "deep": [[{"a": null}]]});
                let echoed = call(&client, format!("{prefix}echo"), &arguments).await.expect(&what);
                assert_eq!(serde_json::from_str::<Value>(&echoed).unwrap(), arguments, "{what}");

                let arguments = json!({"question": format!("{name}?")});
                let answer = call(&client, format!("{prefix}ask"), &arguments).await.expect(&what);
                assert!(answer.contains(&format!("{name} answers")), "{what}: {answer}");
                assert_eq!(*agent.progress.lock().unwrap(), ["asking"], "{what}");
                client.cancel().await.unwrap();
            }
        }
    }
}
