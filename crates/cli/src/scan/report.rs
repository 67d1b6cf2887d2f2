//! The result of a scan: every tool judged, the riskiest first.

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_catalog::{
    Assessment, AttackPattern, Catalogue, CatalogueComparison, Definition, HiddenText, Level,
    Recommended, Shadowing, Trifecta, attack_patterns, classify, fingerprint, hidden_text,
    recommended, shadowing, trifecta,
};

use crate::serve::NotListed;

/// All servers that were scanned.
pub(super) struct Report {
    pub(super) servers: Vec<Scanned>,
    /// Whether they come from a client's configuration.
    pub(super) many: bool,
    pub(super) trifecta: Trifecta,
    pub(super) shadowing: Vec<Shadowing>,
    /// Whether it has only what changed since a baseline.
    pub(super) is_compared: bool,
}

/// One server.
pub(super) struct Scanned {
    pub(super) name: String,
    /// Its tools, the riskiest first, or why they are not known.
    pub(super) tools: Result<Vec<ScannedTool>, NotListed>,
    /// How they compare with the catalogue.
    pub(super) catalogue: Option<CatalogueComparison>,
}

/// One tool.
#[derive(Serialize)]
pub(super) struct ScannedTool {
    pub(super) name: String,
    #[serde(skip)]
    pub(super) description: Option<String>,
    #[serde(flatten)]
    pub(super) assessment: Assessment,
    pub(super) parameters: usize,
    pub(super) required: usize,
    /// The names of its arguments.
    pub(super) arguments: Vec<String>,
    pub(super) recommended: Recommended,
    pub(super) attacks: Vec<AttackPattern>,
    pub(super) fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) hidden_text: Vec<HiddenText>,
    /// What changed since the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) change: Option<&'static str>,
}

impl Report {
    pub(super) fn new(servers: Vec<Scanned>, many: bool) -> Self {
        let (found, shadows) = (Trifecta::default(), Vec::new());
        let mut report =
            Self { servers, many, trifecta: found, shadowing: shadows, is_compared: false };
        let tools = report.tools();
        let key = |server: &str, tool: &ScannedTool| format!("{server}/{}", tool.name);
        let found = trifecta(
            tools.iter().map(|(server, tool)| (key(server, tool), tool.assessment.labels)),
        );
        let shadows = shadowing(tools.iter().map(|(server, tool)| (*server, tool.name.as_str())));
        (report.trifecta, report.shadowing) = (found, shadows);
        report
    }

    /// Every tool with its server, server by server.
    pub(super) fn tools(&self) -> Vec<(&str, &ScannedTool)> {
        let mut all = Vec::new();
        for server in &self.servers {
            let tools = server.tools.as_deref().unwrap_or_default();
            all.extend(tools.iter().map(|tool| (server.name.as_str(), tool)));
        }
        all
    }

    /// The highest level of all tools. Hidden text is critical.
    pub(super) fn highest(&self) -> Option<Level> {
        let tools = self.tools();
        tools
            .iter()
            .filter(|(_, tool)| tool.change != Some("removed"))
            .map(|(_, t)| t.level())
            .max()
    }

    /// What is written of a server without entries.
    pub(super) fn nothing(&self) -> &'static str {
        if self.is_compared { "no changes" } else { "no tools" }
    }

    /// Whether the baseline differs.
    pub(super) fn has_changes(&self) -> bool {
        self.tools().iter().any(|(_, tool)| tool.change.is_some())
    }

    pub(super) fn json(&self) -> Value {
        let server = |server: &Scanned| {
            let mut object = Map::new();
            object.insert("server".to_owned(), server.name.as_str().into());
            match &server.tools {
                Ok(tools) => object.insert("tools".to_owned(), json!(tools)),
                Err(why) => object.insert("error".to_owned(), why.to_string().into()),
            };
            if let Some(compared) = &server.catalogue {
                object.insert("catalogue".to_owned(), json!(compared));
            }
            Value::Object(object)
        };
        match self.servers.as_slice() {
            [one] if !self.many => server(one),
            all => json!({
                "servers": all.iter().map(server).collect::<Vec<_>>(),
                "trifecta": self.trifecta,
                "shadowing": self.shadowing,
            }),
        }
    }
}

impl Scanned {
    /// Judges the definitions of a server.
    pub(super) fn new(name: String, listed: Result<Vec<String>, NotListed>) -> Self {
        let tools = listed.map(|definitions| {
            let mut tools: Vec<ScannedTool> =
                definitions.iter().filter_map(|raw| ScannedTool::new(raw)).collect();
            tools.sort_by(|a, b| b.rank().cmp(&a.rank()).then_with(|| a.name.cmp(&b.name)));
            tools
        });
        let catalogue = tools.as_ref().ok().and_then(|tools| compare(tools));
        Self { name, tools, catalogue }
    }
}

fn compare(tools: &[ScannedTool]) -> Option<CatalogueComparison> {
    let pair = |tool: &'_ ScannedTool| (tool.name.clone(), tool.fingerprint.clone());
    let pairs: Vec<(String, Option<String>)> = tools.iter().map(pair).collect();
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(name, fingerprint)| (name.as_str(), fingerprint.as_deref().unwrap_or_default()))
        .collect();
    Catalogue::shipped().compare(&pairs)
}

impl ScannedTool {
    fn new(raw: &str) -> Option<Self> {
        let definition = Definition::parse(raw).ok()?;
        let mut assessment = classify(&definition);
        let hidden = hidden_text(raw);
        // A definition with hidden text is critical, whatever it states.
        if !hidden.is_empty() {
            assessment.level = Level::Critical;
        }
        Some(Self {
            recommended: recommended(&definition.name, &assessment, !hidden.is_empty()),
            attacks: attack_patterns(&definition, &assessment, !hidden.is_empty()),
            arguments: definition.argument_names().map(str::to_owned).collect(),
            name: definition.name.into_owned(),
            description: definition.description.map(std::borrow::Cow::into_owned),
            assessment,
            parameters: definition.parameters,
            required: definition.required,
            fingerprint: fingerprint(raw).ok(),
            hidden_text: hidden,
            change: None,
        })
    }

    pub(super) fn level(&self) -> Level {
        self.assessment.level
    }

    fn rank(&self) -> (Level, toolgate_catalog::Class) {
        (self.level(), self.assessment.class)
    }

    /// Why it has its class, in one line.
    pub(super) fn reason(&self) -> String {
        match self.hidden_text.first() {
            Some(hidden) => format!("hidden text in {}: {}", hidden.field, hidden.shown),
            None => self.assessment.reason(),
        }
    }

    /// How many arguments it has.
    pub(super) fn counts(&self) -> String {
        format!("{} ({} required)", self.parameters, self.required)
    }
}

/// Sentences about all tools together.
pub(super) fn remarks(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for server in &report.servers {
        let of = if report.many { format!("{}: ", server.name) } else { String::new() };
        lines.extend(server.catalogue.iter().map(|compared| format!("{of}{compared}")));
    }
    let three = &report.trifecta;
    if three.present {
        let list = |keys: &[String]| {
            let shown: Vec<&str> = keys.iter().take(3).map(String::as_str).collect();
            let more = keys.len().saturating_sub(3);
            if more == 0 {
                shown.join(", ")
            } else {
                format!("{} and {more} more", shown.join(", "))
            }
        };
        lines.push(format!(
            "lethal trifecta: an agent with these tools can read private data ({}), take in untrusted \
             text ({}), and send data out ({})",
            list(&three.reads_private),
            list(&three.ingests_untrusted),
            list(&three.sends_out)
        ));
    }
    for shadow in &report.shadowing {
        let keys: Vec<String> =
            shadow.tools.iter().map(|(server, tool)| format!("{server}/{tool}")).collect();
        let how = if shadow.is_same { "the same name" } else { "names that people confuse" };
        lines.push(format!("shadowing: {} have {how}", keys.join(", ")));
    }
    lines
}
