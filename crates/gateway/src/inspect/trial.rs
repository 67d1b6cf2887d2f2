//! Trials: a person wants to know whether a server answers, or what servers have.
//!
//! A trial is an agent session of nobody: its grant has no policy, so it may list and do nothing
//! else, and it ends with the trial.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use toolgate_admission::access::Grant;
use toolgate_json::{items, peek, text};
use toolgate_mcp::{
    Incoming, Limits, Message, Notification, Payload, Request, method, parse_agent, parse_server,
};
use toolgate_upstream::event_buffer::{First, Next};
use toolgate_upstream::list_cache::{ClientProfile, FIRST_LIST_WAIT};

use crate::downstream::agent::AgentSession;
use crate::downstream::endpoint::Endpoint;
use crate::gateway::{Gateway, NotOpened};

/// How long a trial may take.
const TRIAL: Duration = Duration::from_mins(1);

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"toolgate","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}"#
);
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Gateway {
    /// Connects to a server as an agent would, and lists its tools by its own names.
    pub async fn try_server(&self, name: &str) -> Result<Vec<String>, String> {
        timeout(TRIAL, self.trial(name))
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {TRIAL:?}")))
    }

    /// Asks servers that were never heard what they have. Waits for them no longer than a first
    /// list does; what they say later is known later.
    pub async fn hear_servers(self: &Arc<Self>) {
        let servers = self.servers();
        if servers.iter().all(|server| server.list_cache.of(&ClientProfile::default()).is_some()) {
            return;
        }
        if !self.hearing.swap(true, Ordering::AcqRel) {
            let session = self.open_trial(&Endpoint::All).await;
            let (gateway, servers) = (Arc::clone(self), Arc::clone(&servers));
            tokio::spawn(async move {
                if let Ok(session) = session {
                    let settled = async {
                        for server in servers.iter() {
                            server.list_cache.settled().await;
                        }
                        // One that could not be heard before gets as long again.
                        sleep(FIRST_LIST_WAIT).await;
                    };
                    let _late = gateway.unless_stopping(timeout(TRIAL, settled)).await;
                    gateway.end(&session);
                }
                gateway.hearing.store(false, Ordering::Release);
            });
        }
        for server in servers.iter() {
            server.list_cache.wait_for_first_list().await;
        }
    }

    async fn trial(&self, name: &str) -> Result<Vec<String>, String> {
        let session = self.open_trial(&Endpoint::Server(name.to_owned())).await?;
        session.notify(&initialized()?).await.map_err(|refusal| refusal.message)?;
        let listed = list(&session).await;
        self.end(&session);
        listed
    }

    async fn open_trial(&self, endpoint: &Endpoint) -> Result<Arc<AgentSession>, String> {
        let grant = Arc::new(Grant { label: "(trial)".into(), is_trial: true, ..Grant::default() });
        let opened = self.open(endpoint, &request(INITIALIZE)?, &grant).await;
        opened.map(|(session, _)| session).map_err(|why| words(&why))
    }
}

async fn list(session: &Arc<AgentSession>) -> Result<Vec<String>, String> {
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"{}","params":{{{cursor}}}}}"#,
            method::TOOLS_LIST
        );
        let result = answer(session, &request(&body)?).await?;
        let tools = peek(&result, &["tools"]).ok().flatten();
        let entries = tools.and_then(|tools| items(tools).ok().flatten()).unwrap_or_default();
        let name = |entry: &&str| Some(text(peek(entry, &["name"]).ok()??)?.into_owned());
        names.extend(entries.iter().filter_map(name));
        let next = peek(&result, &["nextCursor"]).ok().flatten().filter(|next| *next != "null");
        let Some(next) = next.filter(|_| names.len() < toolgate_upstream::lists::MAX_ITEMS) else {
            return Ok(names);
        };
        cursor = format!(r#""cursor":{next}"#);
    }
}

/// The result of a request, however long it takes, or what its error says.
async fn answer(session: &Arc<AgentSession>, request: &Request<'_>) -> Result<String, String> {
    let mut call = session.request(request).map_err(|refusal| refusal.message)?;
    if let First::Answer(answer, _) = call.first().await {
        return result(&answer.into_bytes()).unwrap_or_else(|| Err(NO_ANSWER.to_owned()));
    }
    let mut attached = session.stream(&call);
    drop(call);
    loop {
        match attached.next().await {
            Next::Event(_, body) => {
                if let Some(result) = result(&body) {
                    return result;
                }
            }
            Next::Gap | Next::Pause(_) => {}
            Next::End => return Err(NO_ANSWER.to_owned()),
        }
    }
}

const NO_ANSWER: &str = "the server gave no answer";

/// What an answer says; none if it is none.
fn result(answer: &[u8]) -> Option<Result<String, String>> {
    let Ok(Incoming::One(Message::Response(response))) = parse_server(answer, &Limits::default())
    else {
        return None;
    };
    Some(match response.payload {
        Payload::Result(result) => Ok(result.to_owned()),
        Payload::Error(error) => Err(message(error)),
    })
}

fn words(why: &NotOpened) -> String {
    match why {
        NotOpened::UnknownServer => "there is no such server".to_owned(),
        NotOpened::TooMany(max) => format!("there are {max} agent sessions already"),
        NotOpened::TooManyOfGrant(max) => format!("{max} trials are under way already"),
        NotOpened::Stopping => "toolgate is stopping".to_owned(),
        NotOpened::NoIds => "no agent session id could be made".to_owned(),
        NotOpened::Answer(answer) => match result(answer) {
            Some(Err(why)) => why,
            _ => "the server refused".to_owned(),
        },
    }
}

fn message(error: &str) -> String {
    let said = peek(error, &["message"]).ok().flatten().and_then(text);
    said.map_or_else(|| "an error without a message".to_owned(), std::borrow::Cow::into_owned)
}

fn request(body: &str) -> Result<Request<'_>, String> {
    match parse_agent(body.as_bytes(), &Limits::default()) {
        Ok(Incoming::One(Message::Request(request))) => Ok(request),
        _ => Err("not a request".to_owned()),
    }
}

fn initialized() -> Result<Notification<'static>, String> {
    match parse_agent(INITIALIZED.as_bytes(), &Limits::default()) {
        Ok(Incoming::One(Message::Notification(notification))) => Ok(notification),
        _ => Err("not a notification".to_owned()),
    }
}
