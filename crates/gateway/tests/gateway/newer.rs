//! Servers of protocol 2026-07-28 behind the gateway, in front of them agents of either era.
//!
//! `newer/equals.rs` has clients of the same protocol, `newer/older.rs` agents of older ones,
//! `newer/eras.rs` both, and servers whose era is to be found; in `newer/shared.rs` they share one.

use toolgate_json::{peek, text};

use crate::bed::{Agent, Bed, settings};
use crate::script::{Kind, Line, Peer, Sent};

mod equals;
mod eras;
mod older;
mod shared;

/// What a server says of itself.
pub(crate) const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"instructions":"be kind","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"2"}}}"#;
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CALL: &str = r#""name":"t","arguments":{"n":1.0}"#;
const OLDER: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"roots":{"listChanged":true},"tasks":{}},"clientInfo":{"name":"a","version":"0"}}}"#;

fn modern(kind: Kind) -> (Bed, Peer) {
    Bed::of(settings("files"), Peer::modern(kind, DISCOVERED))
}

/// An agent of an older protocol and the line that was made for it.
async fn older(bed: &Bed, peer: &mut Peer) -> (Agent, Line) {
    (bed.open("files", OLDER).await.unwrap(), peer.line().await)
}

fn older_call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{CALL},"_meta":{{"progressToken":"p"}}}}}}"#
    )
}

/// The call of an older agent; over HTTP the tools are asked for before it.
async fn called(line: &mut Line) -> Sent {
    let sent = line.next().await;
    if sent.method() != "tools/list" {
        return sent;
    }
    sent.answer(r#"{"tools":[]}"#);
    line.next().await
}

fn meta<'a>(sent: &'a Sent, key: &str) -> Option<&'a str> {
    sent.part(&["params", "_meta", key])
}

/// The answer that asks the client, and the state in it.
fn state_in(answer: &str) -> String {
    let state = peek(answer, &["result", "requestState"]).unwrap().unwrap();
    text(state).unwrap().into_owned()
}
