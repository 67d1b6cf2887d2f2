//! One tool: its definition, its risk and why; a call of it by a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolgate_catalog::{
    Assessment, Definition, What, attack_patterns, classify, classify_session, hidden_text,
    recommended, what_could_go_wrong,
};
use toolgate_gateway::{Acting, NotCalled};

use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, ok};

/// The server of session tools.
const SESSIONS: &str = "sessions";

/// A tool with its definition.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolDetail")]
pub(crate) struct Detail {
    /// The server; `sessions` for tools of sessions, `toolgate` for built-ins.
    server: String,
    /// The server's own name of the tool, of a session tool the name it is published under.
    name: String,
    /// Risk class.
    class: &'static str,
    /// `low`, `medium`, `high` or `critical`.
    level: &'static str,
    /// How probable it is that the class is right, 0 to 1.
    confidence: f64,
    /// What led to the class, the weightiest first: `what`, `where`, `weight`.
    #[schemars(with = "Vec<serde_json::Value>")]
    signals: Vec<toolgate_catalog::Signal>,
    /// What it can do with data.
    #[schemars(with = "serde_json::Value")]
    labels: toolgate_catalog::Labels,
    /// SHA-256 over its canonical definition, in lower-case hex.
    fingerprint: Option<String>,
    /// The definition, as its server wrote it.
    #[schemars(with = "serde_json::Value")]
    definition: Box<RawValue>,
    /// Characters in it that people do not see.
    hidden: usize,
    /// The recommended entry of `tools` in a policy.
    #[schemars(with = "serde_json::Value")]
    recommended: toolgate_catalog::Recommended,
    /// What could go wrong if an agent calls it unwatched.
    could_go_wrong: String,
    /// The attack patterns that apply to it, the most specific first.
    #[schemars(with = "Vec<String>")]
    attack_patterns: Vec<toolgate_catalog::AttackPattern>,
}

/// A call with the rights of a grant.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PersonCall")]
pub(crate) struct Called {
    /// The label of the grant.
    grant: String,
    /// The arguments, an object.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    arguments: Option<Box<RawValue>>,
}

/// The messages of such a call.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PersonCallAnswer")]
pub(crate) struct Messages {
    /// The request, as an agent would send it.
    #[schemars(with = "serde_json::Value")]
    request: Box<RawValue>,
    /// The answer, as an agent would get it.
    #[schemars(with = "serde_json::Value")]
    answer: Box<RawValue>,
}

pub(crate) async fn get(ask: Ask) -> Answer {
    let (server, tool) = (ask.param("server"), ask.param("tool"));
    let gateway = ask.admin.gateway();
    let raw = gateway
        .tool_definition(server, tool)
        .ok_or_else(|| Fault::not_found(format!("the server `{server}` lists no tool `{tool}`")))?;
    let definition = Definition::parse(&raw).map_err(|why| Fault::conflict(why.to_string()))?;
    let class = gateway.resolve_tool(Some(server), tool, None).class;
    let found = assessed(server, &definition, class);
    let hidden = hidden_text(&raw).len();
    let fingerprint = toolgate_catalog::fingerprint(&raw).ok();
    ok(&Detail {
        server: server.to_owned(),
        name: tool.to_owned(),
        class: found.class.as_str(),
        level: found.level.as_str(),
        confidence: found.confidence,
        fingerprint,
        hidden,
        recommended: recommended(tool, &found, hidden > 0),
        could_go_wrong: what_could_go_wrong(server, &definition, &found),
        attack_patterns: attack_patterns(&definition, &found),
        labels: found.labels,
        signals: found.signals,
        definition: RawValue::from_string(raw.clone())
            .map_err(|_| Fault::conflict("the definition is not valid JSON"))?,
    })
}

/// The assessment of a definition, with the class that calls are decided with.
fn assessed(
    server: &str,
    definition: &Definition<'_>,
    class: toolgate_catalog::Class,
) -> Assessment {
    let found = match server {
        SESSIONS => classify_session(definition),
        _ => classify(definition),
    };
    if found.class == class { found } else { found.with_class(class, What::Configured(class)) }
}

pub(crate) async fn call(ask: Ask) -> Answer {
    let Called { grant, arguments } = ask.json()?;
    let arguments = match arguments {
        Some(arguments) if arguments.get().starts_with('{') => arguments,
        Some(_) => return Err(Fault::bad_request("`arguments` must be an object")),
        None => RawValue::from_string("{}".to_owned())
            .map_err(|_| Fault::unavailable("no arguments"))?,
    };
    ask.check_person()?;
    let (server, tool) = (ask.param("server"), ask.param("tool"));
    let acting = Acting { person: ask.who.name.clone(), via: ask.via.unwrap_or("api") };
    let gateway = ask.admin.gateway();
    let called = gateway.call_for_person(&grant, acting, server, tool, &arguments).await;
    let called = called.map_err(|why| match why {
        NotCalled::Grant(_) => Fault::not_found(why.to_string()),
        NotCalled::Refused(_) => Fault::bad_request(why.to_string()),
        NotCalled::NotNow | NotCalled::TooSlow => Fault::unavailable(why.to_string()),
    })?;
    let raw = |text: String| {
        RawValue::from_string(text).map_err(|_| Fault::unavailable("the answer is not valid JSON"))
    };
    let answer = String::from_utf8_lossy(&called.answer).into_owned();
    ok(&Messages { request: raw(called.request)?, answer: raw(answer)? })
}
