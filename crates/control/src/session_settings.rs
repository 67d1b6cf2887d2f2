//! Risk classes that the operator set, and the sessions that a stored grant may reach.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_config::{Config, ServerConfig};
use toolgate_gateway::SessionClasses;
use toolgate_policy::{Class, Glob};
use toolgate_session::{KindSettings, Reach};

/// The classes that the operator gave to tools of sessions, by kind.
pub fn classes(config: &Config) -> SessionClasses {
    let settings = &config.sessions.settings;
    let kinds = settings.kinds.iter();
    SessionClasses {
        common: classes_of(&settings.common),
        kinds: kinds.map(|(name, kind)| (name.clone(), classes_of(kind))).collect(),
    }
}

fn classes_of(kind: &KindSettings) -> HashMap<String, Class> {
    let tools = kind.tools.iter();
    tools.filter_map(|(name, tool)| Some((name.clone(), tool.class?))).collect()
}

/// The sessions that a grant of the store may reach. A filter that cannot be parsed reaches none.
pub fn stored_reach(json: &str) -> Arc<Reach> {
    let kept: Option<Map<String, Value>> = serde_json::from_str(json).ok();
    let Some(kept) = kept else {
        return Arc::new(Reach { session_id: Some(Vec::new()), ..Reach::default() });
    };
    let list = |key: &str| {
        let given = kept.get(key).filter(|value| !value.is_null())?;
        let words = given.as_array().into_iter().flatten().filter_map(Value::as_str);
        Some(words.map(Glob::lenient).collect())
    };
    Arc::new(Reach {
        infobase_name: list("infobase_name"),
        kind: list("kind"),
        session_id: list("session_id"),
    })
}

/// The risk class that the operator gave a tool of a server.
pub fn configured_class(server: &ServerConfig, tool: &str) -> Option<Class> {
    let configured = server.tools.iter().find(|one| one.name == tool)?;
    configured.class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_reach_is_as_narrow_as_it_was_given() {
        let cases = [
            ("{}", [true, true]),
            (r#"{"infobase_name":["trade_*"],"kind":null}"#, [true, false]),
            (r#"{"infobase_name":["trade_*"],"kind":["server"]}"#, [false, false]),
            (r#"{"session_id":[]}"#, [false, false]),
            ("not json", [false, false]),
            ("[]", [false, false]),
        ];
        for (json, expected) in cases {
            let reach = stored_reach(json);
            let bases = ["trade_dev", "stock"];
            assert_eq!(bases.map(|base| reach.allows("u1", "client", base)), expected, "{json}");
        }
    }
}
