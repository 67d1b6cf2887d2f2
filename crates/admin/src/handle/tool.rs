//! One tool: its definition, its risk and why; a call of it by a person.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolgate_catalog::{
    Assessment, Definition, What, attack_patterns, classify, classify_session, hidden_text,
    recommended, what_could_go_wrong,
};
use toolgate_gateway::{Acting, Gateway, KnownDefinition, NotCalled};

use super::tools::{Rejection, rejection, unknown_tool};
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
    /// Whether it may be used, and what is reviewed if not. Absent for tools without pins.
    #[serde(flatten)]
    review: Option<Reviewed>,
    /// Who rejected this definition; null if no person did.
    rejected: Option<Rejection>,
    /// The definition.
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

/// A definition under review.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolReviewed")]
pub(crate) struct Reviewed {
    /// `listed`, or `quarantined`: neither listed nor callable until a person approves it.
    state: &'static str,
    /// Why it is quarantined.
    reason: Option<String>,
    /// The newest definition as its server wrote it, if it has at most 64 KiB.
    source: Option<String>,
    /// The fingerprint of the definition that may be used: the approved one, else the first one.
    approved: Option<String>,
    /// That definition as its server wrote it.
    approved_source: Option<String>,
}

impl Reviewed {
    pub(super) fn of(known: &KnownDefinition) -> Self {
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        Self {
            state: if known.quarantine.is_some() { "quarantined" } else { "listed" },
            reason: known.quarantine.as_ref().map(ToString::to_string),
            source: text(&known.facts.definition),
            approved: known.approved.map(|hash| hash.to_string()),
            approved_source: text(&known.approved_definition),
        }
    }
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
    // Programs that dial in may define a tool several times. A quarantined one first: it is the one
    // to review.
    let known = gateway.definitions(server, tool);
    let reviewed = known.iter().find(|it| it.quarantine.is_some()).or_else(|| known.first());
    let newest = reviewed.and_then(|known| known.facts.definition.as_deref());
    let raw = newest.map(str::to_owned).or_else(|| gateway.tool_definition(server, tool));
    let raw = raw.ok_or_else(|| unknown_tool(server, tool))?;
    let named = |_| Definition::named(tool);
    let definition = Definition::parse(&raw).unwrap_or_else(named);
    let class = reviewed.map(|known| known.class);
    let class = class.unwrap_or_else(|| gateway.resolve_tool(Some(server), tool, None).class);
    let is_quarantined = reviewed.is_some_and(|known| known.quarantine.is_some());
    let found = assessed(server, &definition, class, is_quarantined);
    let hidden = hidden_text(&raw).len();
    let fingerprint = toolgate_catalog::fingerprint(&raw).ok();
    let quarantined = reviewed.filter(|known| known.quarantine.is_some());
    let rejected = match quarantined.and_then(|known| known.facts.fingerprint) {
        Some(fingerprint) => rejection(&ask, server, tool, fingerprint).await?,
        None => None,
    };
    ok(&Detail {
        rejected,
        server: server.to_owned(),
        name: tool.to_owned(),
        class: found.class.as_str(),
        level: found.level.as_str(),
        confidence: found.confidence,
        fingerprint,
        review: reviewed.map(Reviewed::of),
        hidden,
        recommended: recommended(tool, &found, hidden > 0),
        could_go_wrong: what_could_go_wrong(server, &definition, &found),
        attack_patterns: attack_patterns(&definition, &found, hidden > 0),
        labels: found.labels,
        signals: found.signals,
        definition: RawValue::from_string(raw.clone())
            .map_err(|_| Fault::conflict("the definition is not valid JSON"))?,
    })
}

/// Why a tool has this class, in one sentence.
pub(super) fn class_reason(
    gateway: &Gateway,
    server: &str,
    tool: &str,
    class: toolgate_catalog::Class,
) -> String {
    let known = gateway.definitions(server, tool);
    let newest = known.first().and_then(|known| known.facts.definition.as_deref());
    let raw = newest.map(str::to_owned).or_else(|| gateway.tool_definition(server, tool));
    let raw = raw.unwrap_or_default();
    let definition = Definition::parse(&raw).unwrap_or_else(|_| Definition::named(tool));
    assessed(server, &definition, class, false).reason()
}

/// The assessment of a definition, with the class that calls are decided with. No call of a quarantined
/// one is decided: it is judged by its own words if they are worse.
fn assessed(
    server: &str,
    definition: &Definition<'_>,
    class: toolgate_catalog::Class,
    is_quarantined: bool,
) -> Assessment {
    let found = match server {
        SESSIONS => classify_session(definition),
        _ => classify(definition),
    };
    let is_worse = is_quarantined && found.class.raised(class) == found.class;
    if found.class == class || is_worse {
        found
    } else {
        found.with_class(class, What::Configured(class))
    }
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
