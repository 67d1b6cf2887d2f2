//! Servers of protocol 2026-07-28 with agents of both eras.
//!
//! `sessionless_servers/same_era.rs` has clients of the same protocol, `sessionless_servers/sessionful_agents.rs` agents of older ones,
//! `sessionless_servers/eras.rs` both, and servers whose era is to be found; in `sessionless_servers/shared.rs` they share one.

use toolgate_json::{peek, text};

use crate::harness::{Agent, Harness, settings};
use crate::script::{Kind, Line, Peer, Sent};

mod eras;
mod same_era;
mod sessionful_agents;
mod shared;

/// What a server says of itself.
pub(crate) const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"instructions":"be kind","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"2"}}}"#;
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CALL: &str = r#""name":"t","arguments":{"n":1.0}"#;
const OLDER: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"roots":{"listChanged":true},"tasks":{}},"clientInfo":{"name":"a","version":"0"}}}"#;

fn modern(kind: Kind) -> (Harness, Peer) {
    Harness::of(settings("files"), Peer::modern(kind, DISCOVERED))
}

/// An agent of an older protocol and the line that was made for it.
async fn older(harness: &Harness, peer: &mut Peer) -> (Agent, Line) {
    (harness.open("files", OLDER).await.unwrap(), peer.line().await)
}

fn older_call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{CALL},"_meta":{{"progressToken":"p"}}}}}}"#
    )
}

/// The next message that is not a list of toolgate's own. Tools are listed before the first call over
/// a connection, and when they may have changed.
async fn called(line: &mut Line) -> Sent {
    loop {
        let sent = line.next().await;
        if !sent.method().ends_with("/list") {
            return sent;
        }
        sent.answer(r#"{"tools":[],"resources":[],"resourceTemplates":[]}"#);
    }
}

fn meta<'a>(sent: &'a Sent, key: &str) -> Option<&'a str> {
    sent.part(&["params", "_meta", key])
}

/// The answer that asks the client, and the state in it.
fn state_in(answer: &str) -> String {
    let state = peek(answer, &["result", "requestState"]).unwrap().unwrap();
    text(state).unwrap().into_owned()
}
