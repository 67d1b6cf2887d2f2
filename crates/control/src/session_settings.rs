//! The settings of sessions: from the configuration to the session machine, to risk classes and to
//! the sessions that a grant may reach.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_config::{
    Config, Glob, Idle, KindSettings, RiskClass, SchemaConflict, ServerConfig, SessionFilter,
};
use toolgate_gateway::SessionClasses;
use toolgate_policy::Class;
use toolgate_session::{self as session, Reach, SessionSettings, ToolSettings};

/// The settings of the session machine.
pub fn settings(config: &Config) -> SessionSettings {
    let sessions = &config.sessions;
    let kinds = sessions.kinds.iter().map(|(name, own)| (name.clone(), kind(own)));
    SessionSettings {
        reported_idle_secs: sessions.reported_idle_secs,
        heartbeat_interval: sessions.heartbeat_interval,
        ping_interval: sessions.ws_ping_interval,
        dead_after: sessions.ws_ping_timeout,
        register_within: sessions.register_within,
        grace: sessions.reconnection_grace,
        shutdown_grace: sessions.graceful_kill_grace,
        rebind: sessions.rebind,
        ascii_names: sessions.ascii_names,
        conflict: match sessions.conflict {
            SchemaConflict::Merged => session::SchemaConflict::Merged,
            SchemaConflict::Oneof => session::SchemaConflict::OneOf,
        },
        showcase: sessions.cache,
        showcase_life: sessions.cache_life_period,
        // The gateway replaces them by all servers, added ones included.
        servers: config.servers.iter().map(|server| server.name.clone()).collect(),
        common: kind(&sessions.common),
        kinds: kinds.collect(),
        session_timeouts: sessions
            .session_timeouts
            .iter()
            .map(|(of, timeout)| (glob(of), *timeout))
            .collect(),
        ..SessionSettings::default()
    }
}

fn kind(config: &KindSettings) -> session::KindSettings {
    // The settings of the kind itself come first and take precedence.
    let mut tools = BTreeMap::new();
    for tool in &config.tools {
        let concurrency = tool.concurrency.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let settings = ToolSettings { timeout: tool.timeout, concurrency };
        tools.entry(tool.name.clone()).or_insert(settings);
    }
    session::KindSettings {
        reconnect_wait: config.reconnect_wait,
        idle_timeout: config.idle_timeout,
        idle: match config.idle {
            Idle::Hide => session::Idle::Hide,
            Idle::Shutdown => session::Idle::Shutdown,
        },
        queue: size(config.queue),
        late_answer: config.late_answer,
        identifier_keys: config.identifier_keys,
        timeout: config.timeout,
        no_deadline: config.no_deadline,
        tools,
    }
}

/// The risk classes that the operator gave to tools, by kind.
pub fn classes(config: &Config) -> SessionClasses {
    let sessions = &config.sessions;
    let kinds = sessions.kinds.iter();
    SessionClasses {
        common: classes_of(&sessions.common),
        kinds: kinds.map(|(name, kind)| (name.clone(), classes_of(kind))).collect(),
    }
}

/// The class of the kind itself comes first, before that of all kinds.
fn classes_of(kind: &KindSettings) -> HashMap<String, Class> {
    let mut classes = HashMap::new();
    for tool in &kind.tools {
        if let Some(class) = tool.class {
            classes.entry(tool.name.clone()).or_insert(self::class(class));
        }
    }
    classes
}

/// The sessions that a grant of the file may reach.
pub fn reach(filter: &SessionFilter) -> Arc<Reach> {
    let SessionFilter { infobase_name, kind, session_id } = filter;
    Arc::new(Reach {
        infobase_name: infobase_name.as_deref().map(globs),
        kind: kind.as_deref().map(globs),
        session_id: session_id.as_deref().map(globs),
    })
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
        Some(words.map(session::Glob::lenient).collect())
    };
    Arc::new(Reach {
        infobase_name: list("infobase_name"),
        kind: list("kind"),
        session_id: list("session_id"),
    })
}

fn globs(patterns: &[Glob]) -> Vec<session::Glob> {
    patterns.iter().map(glob).collect()
}

fn glob(pattern: &Glob) -> session::Glob {
    session::Glob::lenient(pattern.as_str())
}

fn size(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// The risk class that the operator gave a tool of a server.
pub fn configured_class(server: &ServerConfig, tool: &str) -> Option<Class> {
    let configured = server.tools.iter().find(|one| one.name == tool)?;
    configured.class.map(class)
}

/// The policy's class of a configured one.
pub fn class(class: RiskClass) -> Class {
    match class {
        RiskClass::Read => Class::Read,
        RiskClass::Write => Class::Write,
        RiskClass::Execute => Class::Execute,
        RiskClass::Destructive => Class::Destructive,
        RiskClass::Financial => Class::Financial,
        RiskClass::Other => Class::Other,
    }
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
