//! What an agent does in a day, and that many of them do not meet.

use serde_json::{Value, json};

use crate::agent::{call, connect};
use crate::upstream::{BOTH, Era, gate};

pub(crate) async fn a_tour() {
    let gate = gate().await;
    let (client, _) = connect(&gate, "/mcp/sessionful", Era::Sessionful, "anna").await;
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(), ["echo", "ask"]);

    let arguments = json!({"text": "Привет", "n": 1.5, "deep": [[{"a": null}]]});
    let echoed = call(&client, "echo".to_owned(), &arguments).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&echoed).unwrap(), arguments);

    let error = call(&client, "missing".to_owned(), &json!({})).await.unwrap_err();
    assert!(error.contains("no tool missing"), "{error}");
    client.cancel().await.unwrap();
}

/// Two agents for each pair of eras, all at once.
pub(crate) async fn every_agent_answers_its_own_server() {
    let gate = gate().await;
    let mut running = Vec::new();
    for number in 0..8 {
        let (client_era, server_era) = (BOTH[number % 2], BOTH[number / 2 % 2]);
        let name = format!("agent-{number}");
        let path = format!("/mcp/{}", server_era.server());
        let (client, agent) = connect(&gate, &path, client_era, &name).await;
        running.push(tokio::spawn(async move {
            for round in 0..5 {
                let arguments = json!({"question": format!("{name}, round {round}?")});
                let answer = call(&client, "ask".to_owned(), &arguments).await.unwrap();
                assert!(answer.contains(&format!("{name} answers")), "{answer}");
            }
            assert_eq!(*agent.progress.lock().unwrap(), vec!["asking"; 5], "{name}");
            client.cancel().await.unwrap();
        }));
    }
    for one in running {
        one.await.unwrap();
    }
}
