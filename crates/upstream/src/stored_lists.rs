//! The lists of a server as the store keeps them across restarts.
//!
//! Definitions are kept as the server wrote them, as text, so that numbers keep their spelling and a
//! changed `names:` applies to them.
//!
//! Invariant: lists of more than [`MAX_STORED`] bytes are not stored.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_admission::list_kind::Kind;
use toolgate_json::{peek, text};
use toolgate_policy::Class;

use crate::link::Server;
use crate::list_cache::{Advertised, ClientProfile};
use crate::listed_names::class_of;
use crate::lists::{Builder, List, definition};
use crate::pins::Facts;

/// The space of the store that holds them; the key is the server's name.
pub const SPACE: &str = "lists";
/// How many bytes of lists are stored for one server.
const MAX_STORED: usize = 4 * 1024 * 1024;

/// The tools in lists that a process stored: the server's own names, and their classes.
pub fn stored_tools(json: &str) -> Option<Vec<(String, Class)>> {
    let stored: Value = serde_json::from_str(json).ok()?;
    let definitions = stored.get(Kind::Tools.member())?.as_array()?.iter();
    let tool = |raw: &str| {
        let own = peek(raw, &["name"]).ok()?.and_then(text)?;
        Some((own.clone().into_owned(), class_of(&own, raw)))
    };
    Some(definitions.filter_map(Value::as_str).filter_map(tool).collect())
}

impl Server {
    /// Its newest lists as JSON, if they have changed since the last call.
    pub fn changed_lists(&self) -> Option<String> {
        if !self.list_cache.take_changed() {
            return None;
        }
        let (profile, advertised) = self.list_cache.newest()?;
        let bytes: usize = Kind::ALL.iter().map(|kind| advertised.list(*kind).text_len()).sum();
        if bytes > MAX_STORED {
            tracing::warn!(server = self.name(), bytes, "lists not stored: too large");
            return None;
        }
        let mut stored = Map::new();
        stored.insert("profile".to_owned(), profile.as_str().into());
        stored.insert("capabilities".to_owned(), (*advertised.capabilities).into());
        stored.insert("instructions".to_owned(), json!(advertised.instructions.as_deref()));
        for kind in Kind::ALL {
            let entries = advertised.list(kind).entries();
            let definitions =
                entries.filter_map(|(own, shown)| definition(kind, &self.naming, own, shown));
            stored.insert(kind.member().to_owned(), definitions.collect::<Vec<_>>().into());
        }
        Some(Value::Object(stored).to_string())
    }

    /// Restores lists that an earlier process stored, if it has none. Returns whether it could.
    pub fn restore_lists(&self, json: &str) -> bool {
        let Some((profile, advertised)) = self.stored(json) else { return false };
        for kind in Kind::ALL {
            self.listed_names.learn_list(kind, advertised.list(kind));
        }
        self.list_cache.restore(profile, advertised);
        true
    }

    fn stored(&self, json: &str) -> Option<(ClientProfile, Advertised)> {
        let stored: Value = serde_json::from_str(json).ok()?;
        let text = |key: &str| stored.get(key).and_then(Value::as_str);
        let profile = ClientProfile::from_text(text("profile")?);
        let mut advertised = Advertised::new("{}");
        advertised.capabilities = text("capabilities")?.into();
        advertised.instructions = text("instructions").map(Into::into);
        for kind in Kind::ALL {
            let definitions = stored.get(kind.member())?.as_array()?;
            let definitions: Vec<&str> = definitions.iter().filter_map(Value::as_str).collect();
            advertised.set_list(kind, Arc::new(self.list_of(kind, &definitions)?));
        }
        Some((profile, advertised))
    }

    fn list_of(&self, kind: Kind, definitions: &[&str]) -> Option<List> {
        let result = format!(r#"{{"{}":[{}]}}"#, kind.member(), definitions.join(","));
        let mut builder = Builder::new(kind, &self.naming);
        builder.add(&result).ok()?;
        let list = builder.finish();
        if kind != Kind::Tools {
            return Some(list);
        }
        self.learn_annotations(&result);
        // Stored lists are judged, and nothing of them is recorded: they may be older than the pins.
        let facts = definitions.iter().filter_map(|raw| {
            let own = peek(raw, &["name"]).ok().flatten().and_then(text)?;
            Some((own.as_ref().into(), Arc::new(Facts::of(&own, raw))))
        });
        Some(list.with_facts(facts.collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::channel::{BoxFuture, Channel, Connector, Inbox, SendError};
    use crate::link::{Instances, ServerSettings};
    use crate::metrics::Metrics;
    use crate::pins::PinMode;
    use crate::results::Results;

    struct Unreachable;

    impl Connector for Unreachable {
        fn connect(&self, _: Arc<dyn Inbox>) -> BoxFuture<'_, Result<Arc<dyn Channel>, SendError>> {
            Box::pin(async { Err(SendError::NotSent("no".to_owned())) })
        }
    }

    fn server(bare_names: bool) -> Server {
        let limit = Duration::from_secs(1);
        let settings = ServerSettings {
            name: "files".to_owned(),
            instances: Instances::PerAgent,
            timeout: limit,
            start_timeout: limit,
            reconnect_timeout: limit,
            tool_timeouts: HashMap::new(),
            tool_classes: HashMap::new(),
            bare_names,
            max_requests: 1,
            backs_off: true,
            pin: PinMode::First,
            validate: false,
            results: Results::Pass,
        };
        Server::new(settings, Arc::new(Unreachable), Metrics::default().of_server("files"))
    }

    fn shown(server: &Server, kind: Kind) -> String {
        let advertised = server.list_cache.of(&ClientProfile::default()).unwrap();
        let (page, _) = advertised.list(kind).page(0, usize::MAX);
        String::from_utf8(page.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn lists_survive_a_restart_as_the_server_wrote_them() {
        let first = server(false);
        let mut advertised =
            Advertised::new(r#"{"capabilities":{"tools":{}},"instructions":"be"}"#);
        let tools = [r#"{"x":1.0,"name":"a","_meta":{"ui":{"resourceUri":"ui://w/1"}}}"#];
        let resources = [r#"{"uri":"demo://a","name":"a"}"#];
        advertised.set_list(Kind::Tools, Arc::new(first.list_of(Kind::Tools, &tools).unwrap()));
        let resources = first.list_of(Kind::Resources, &resources).unwrap();
        advertised.set_list(Kind::Resources, Arc::new(resources));
        assert_eq!(first.changed_lists(), None);
        first.list_cache.put(&ClientProfile::default(), advertised, Instant::now());
        let stored = first.changed_lists().unwrap();
        assert_eq!(first.changed_lists(), None, "stored once");
        let written: Value = serde_json::from_str(&stored).unwrap();
        assert_eq!(written["tools"], json!(tools));

        let second = server(false);
        assert!(second.restore_lists(&stored));
        for kind in Kind::ALL {
            assert_eq!(shown(&second, kind), shown(&first, kind));
        }
        let bare = server(true);
        assert!(bare.restore_lists(&stored));
        // A bare server's URIs still name it.
        assert_eq!(shown(&bare, Kind::Tools), tools.concat().replace("ui://w", "ui://files+w"));
        let restored = bare.list_cache.of(&ClientProfile::default()).unwrap();
        assert_eq!(restored.instructions.as_deref(), Some("be"));
        assert!(restored.can("tools") && bare.listed_names.lists(Kind::Tools, "a") == Some(true));
        for broken in ["", "{}", "[]", r#"{"profile":"","capabilities":"{}","tools":["{"]}"#] {
            assert!(!server(false).restore_lists(broken), "{broken}");
        }
    }
}
