//! A fleet: many simulated sessions with equal tools, which answer at once.
//!
//! [`start_fleet`] returns when all members have registered. Member `n` is `fleet-n` of kind
//! `client` in the infobase `base-(n mod bases)`. `echo` returns its arguments unchanged; every
//! other tool also returns the member and the tool, so that an answer of a wrong member is
//! detected.
//!
//! Invariant: a member that loses its socket or is refused is an error of [`Fleet::ended`]; it
//! never reconnects.

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// The size of a fleet, and what it publishes.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// The URL: `ws://HOST:PORT/sessions`.
    pub url: String,
    /// The number of members.
    pub sessions: usize,
    /// The number of tools of each, including `echo`.
    pub tools: usize,
    /// The number of infobases.
    pub bases: usize,
}

/// A registered fleet; dropping it closes its sockets without a close frame.
#[derive(Debug)]
pub struct Fleet(JoinSet<Result<()>>);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A received frame, as far as it is needed.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Connects all members concurrently, and waits until all have registered.
pub async fn start_fleet(options: &FleetOptions) -> Result<Fleet> {
    let tools = definitions(options.tools);
    let mut joining = JoinSet::new();
    for number in 0..options.sessions {
        let uid = uid(number);
        let register = register(&uid, number % options.bases.max(1), &tools);
        joining.spawn(join(options.url.clone(), uid, register));
    }
    let mut fleet = JoinSet::new();
    while let Some(joined) = joining.join_next().await {
        let (uid, socket) = joined.context("a member failed")??;
        fleet.spawn(serve(uid, socket));
    }
    Ok(Fleet(fleet))
}

impl Fleet {
    /// Waits until the first member has ended, and returns why.
    pub async fn ended(&mut self) -> Result<()> {
        match self.0.join_next().await {
            Some(ended) => ended.context("a member failed")?,
            None => bail!("the fleet is empty"),
        }
    }
}

/// The id of a member.
pub fn uid(number: usize) -> String {
    format!("fleet-{number}")
}

/// The name of tool `number` of a member; the first is `echo`.
pub fn tool(number: usize) -> String {
    if number == 0 { "echo".to_owned() } else { format!("tool_{number}") }
}

/// The answer of a member to a call of a tool other than `echo`.
pub fn signed(uid: &str, tool: &str, arguments: &str) -> String {
    format!("{uid} {tool} {arguments}")
}

/// Tools of about the size that 1C programs publish.
fn definitions(tools: usize) -> Value {
    let definition = |number| {
        json!({
            "name": tool(number),
            "description": "Находит документы по условию и возвращает их ссылки и реквизиты",
            "input_schema": {"type": "object", "properties": {
                "text": {"type": "string", "description": "Текст запроса"},
                "Количество": {"type": "integer", "description": "Не больше стольких строк"},
            }},
        })
    };
    (0..tools).map(definition).collect()
}

fn register(uid: &str, base: usize, tools: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": "register", "method": "session.register", "params": {
        "client_uid": uid, "kind": "client", "version": "8.3.27.1508",
        "infobase_name": format!("base-{base}"), "ib_session_number": 1, "tools": tools,
    }})
    .to_string()
}

async fn join(url: String, uid: String, register: String) -> Result<(String, Socket)> {
    let small = WebSocketConfig::default().read_buffer_size(4 * 1024).write_buffer_size(0);
    let (mut socket, _) = connect_async_with_config(url.as_str(), Some(small), true)
        .await
        .with_context(|| format!("`{uid}` cannot connect"))?;
    socket.send(Message::text(register)).await?;
    loop {
        match socket.next().await.context("closed before it could register")?? {
            Message::Text(text) => {
                let answer: Value = serde_json::from_str(&text)?;
                let id = answer.get("result").and_then(|result| result.get("session_id"));
                ensure!(id.is_some_and(|id| *id == uid), "`{uid}` was answered `{text}`");
                return Ok((uid, socket));
            }
            Message::Close(frame) => bail!("`{uid}` was turned away: {frame:?}"),
            _ => {}
        }
    }
}

async fn serve(uid: String, mut socket: Socket) -> Result<()> {
    while let Some(message) = socket.next().await {
        match message? {
            Message::Text(text) => {
                if let Some(answer) = answer(&uid, &text)? {
                    socket.send(Message::text(answer)).await?;
                }
            }
            Message::Close(frame) => bail!("the socket of `{uid}` was closed: {frame:?}"),
            _ => {}
        }
    }
    bail!("the socket of `{uid}` ended")
}

fn answer(uid: &str, text: &str) -> Result<Option<String>> {
    let frame: Frame<'_> = serde_json::from_str(text)?;
    let (Some("tool.call"), Some(id), Some(call)) = (frame.method, frame.id, frame.params) else {
        return Ok(None);
    };
    let name = call.name.context("a call without a name")?;
    let arguments = call.arguments.context("a call without arguments")?.get();
    let words = if name == "echo" { arguments.to_owned() } else { signed(uid, &name, arguments) };
    let words = serde_json::to_string(&words)?;
    Ok(Some(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{words}}}]}}}}"#
    )))
}
