//! The conformance fixture as a child, in either era, in front of it clients of either.

use serde_json::json;

use crate::ASKED;
use crate::agent::{call, connect};
use crate::gate::Gate;
use crate::upstream::{BOTH, Era};

pub(crate) async fn any_client_with_any_child() {
    let gate = Gate::start(&config());
    for client_era in BOTH {
        for server in BOTH.map(Era::server) {
            for (path, prefix) in [
                (format!("/mcp/{server}"), String::new()),
                ("/mcp".to_owned(), format!("{server}__")),
            ] {
                let what = format!("{client_era:?} client, {server} child, {path}");
                let name = format!("{client_era:?}-{server}");
                let (client, agent) = connect(&gate, &path, client_era, &name).await;
                let sampling = format!("{prefix}test_sampling");
                // On `/mcp` it may be listed later; it can be called at once.
                if prefix.is_empty() {
                    let tools = client.list_all_tools().await.expect(&what);
                    assert!(tools.iter().any(|tool| *tool.name == *sampling), "{what}: {tools:?}");
                }

                let tool = format!("{prefix}test_tool_with_progress");
                call(&client, tool, &json!({})).await.expect(&what);
                assert!(!agent.progress.lock().unwrap().is_empty(), "{what}: no progress");

                let asked = json!({"prompt": format!("{name}?")});
                let answer = call(&client, sampling, &asked).await.expect(&what);
                assert!(answer.contains(&format!("{name} answers")), "{what}: {answer}");
                client.cancel().await.unwrap();
            }
        }
    }
}

fn config() -> String {
    let program = std::env::current_exe().unwrap();
    let child = |era: Era| {
        let (name, program) = (era.server(), program.display());
        format!("  {name}: {{ command: '{program}', args: [{ASKED}, stdio, --era, {name}] }}\n")
    };
    format!("servers:\n{}{}", child(Era::Sessionful), child(Era::Sessionless))
}
