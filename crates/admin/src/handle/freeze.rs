//! Freezes: a person stops a grant, a server, a session, or everything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_control::{FreezeItem, LOCAL, NotChanged, STDIO};
use toolgate_store::{Change, ChangeError, Freeze, FreezeTarget};

use super::grants::{self, id};
use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, created, done, ok, page};
use crate::suggest::unknown;

/// All sessions, where a server is named.
const SESSIONS: &str = "sessions";

/// The longest reason, in bytes.
const REASON: usize = 512;

/// What to freeze: exactly one of these.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewFreeze")]
pub(crate) struct What {
    /// A grant, by id or label.
    grant: Option<String>,
    /// A server, by name; `sessions` is all sessions.
    server: Option<String>,
    /// A session, by id.
    session: Option<String>,
    /// Everything.
    #[serde(default)]
    all: bool,
    /// The reason, for the audit.
    reason: Option<String>,
}

/// A new freeze.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FreezeMade")]
pub(crate) struct Made {
    /// Its id.
    id: String,
}

pub(crate) async fn list(ask: Ask) -> Answer {
    page(ask.admin.view().freezes.clone(), &ask.query)
}

pub(crate) async fn create(ask: Ask) -> Answer {
    let mut what: What = ask.json()?;
    let reason = what.reason.take();
    if reason.as_ref().is_some_and(|reason| reason.len() > REASON) {
        return Err(Fault::bad_request(format!("`reason` must have at most {REASON} bytes")));
    }
    // Not the lock of other changes: a freeze never waits for them.
    let _turn = ask.admin.freezing.lock().await;
    let (frozen, words) = target(&ask, what)?;
    let view = ask.admin.view();
    if let Some(same) = view.freezes.iter().find(|freeze| is_of(freeze, &frozen)) {
        return ok(&Made { id: same.id.clone() });
    }
    let id = id("f-", &ask.admin.random()?);
    let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let mut row = ask.row(&format!("froze {words}{why}"));
    match &frozen {
        FreezeTarget::Grant(label) => row.grant = Some(label.clone()),
        FreezeTarget::Server(name) => row.server = Some(name.clone()),
        FreezeTarget::Session(id) => row.session_id = Some(id.clone()),
        FreezeTarget::All => {}
    }
    let made = Made { id: id.to_string() };
    let freeze = Freeze {
        id,
        what: frozen,
        created: ask.admin.now(),
        person: row.person.clone(),
        reason: reason.as_deref().map(Into::into),
    };
    ask.check_person()?;
    match ask.admin.given.control.change(Change::Freeze(freeze), row).await {
        Ok(()) => created(&made),
        // Another process was faster.
        Err(NotChanged::Store(ChangeError::AlreadyFrozen(id))) => ok(&Made { id }),
        Err(error) => Err(error.into()),
    }
}

/// The target of a freeze, and its description.
fn target(ask: &Ask, what: What) -> Result<(FreezeTarget, String), Fault> {
    let view = ask.admin.view();
    match (what.grant, what.server, what.session, what.all) {
        (Some(grant), None, None, false) => {
            let label = match grants::find(&view, &grant) {
                Ok(found) => &found.label,
                Err(_) if view.local && grant == LOCAL => LOCAL,
                Err(_) if grant == STDIO => STDIO,
                Err(fault) => return Err(fault),
            };
            Ok((FreezeTarget::Grant(label.into()), format!("the grant `{label}`")))
        }
        (None, Some(server), None, false) => {
            if server != SESSIONS && !view.servers.iter().any(|known| known.name == server) {
                let names = view.servers.iter().map(|known| known.name.as_str());
                return Err(unknown("server", &server, names));
            }
            Ok((FreezeTarget::Server(server.as_str().into()), format!("the server `{server}`")))
        }
        (None, None, Some(session), false) => {
            let known = ask.admin.given.sessions.as_ref().map(|sessions| sessions());
            let is_it =
                |item: &Value| item.get("session_id").and_then(Value::as_str) == Some(&session);
            if !known.unwrap_or_default().iter().any(is_it) {
                let why = format!(
                    "there is no session `{session}`; a freeze of the server `{SESSIONS}` freezes all sessions"
                );
                return Err(Fault::not_found(why));
            }
            Ok((FreezeTarget::Session(session.as_str().into()), format!("the session `{session}`")))
        }
        (None, None, None, true) => Ok((FreezeTarget::All, "everything".to_owned())),
        _ => {
            let why = "give exactly one of `grant`, `server`, `session` and `\"all\": true`";
            Err(Fault::bad_request(why))
        }
    }
}

/// Whether this freeze has exactly this target.
fn is_of(freeze: &FreezeItem, what: &FreezeTarget) -> bool {
    match what {
        FreezeTarget::All => freeze.all,
        FreezeTarget::Grant(label) => freeze.grant.as_deref() == Some(label),
        FreezeTarget::Server(name) => freeze.server.as_deref() == Some(name),
        FreezeTarget::Session(id) => freeze.session.as_deref() == Some(id),
    }
}

pub(crate) async fn end(ask: Ask) -> Answer {
    let _turn = ask.admin.freezing.lock().await;
    let view = ask.admin.view();
    let id = ask.param("id");
    let found = view.freezes.iter().find(|freeze| freeze.id == id);
    let freeze = found.ok_or_else(|| Fault::not_found(format!("there is no freeze `{id}`")))?;
    let words = match (&freeze.grant, &freeze.server, &freeze.session) {
        (Some(grant), _, _) => format!("the grant `{grant}`"),
        (_, Some(server), _) => format!("the server `{server}`"),
        (_, _, Some(session)) => format!("the session `{session}`"),
        _ => "everything".to_owned(),
    };
    let mut row = ask.row(&format!("ended the freeze of {words}"));
    row.grant = freeze.grant.as_deref().map(Into::into);
    row.server = freeze.server.as_deref().map(Into::into);
    row.session_id = freeze.session.as_deref().map(Into::into);
    ask.change(Change::Unfreeze(id.into()), row).await?;
    done()
}
