//! The catalogue: shipped servers with recommended policies, attack patterns and what stops them,
//! risk classes.

use askama::Template;
use toolgate_catalog::{AttackPattern, Catalogue, CatalogueServer, Class, policy_key};
use toolgate_policy::RECOMMENDED;

use crate::assets;
use crate::shell::Shell;
use crate::visit::{Outcome, Visit, page};

#[derive(Template)]
#[template(path = "catalog.html")]
struct Catalog {
    s: Shell,
    assets: &'static str,
    servers: Vec<ServerCard>,
    total: usize,
    patterns: Vec<Pattern>,
    classes: Vec<ClassLine>,
    recommended: &'static str,
    q: String,
}

/// A server of the catalogue.
struct ServerCard {
    name: &'static str,
    package: String,
    summary: &'static str,
    date: &'static str,
    /// How many tools of each class it has.
    classes: Vec<(&'static str, String, usize)>,
    /// What the page shows if the person asked for this server.
    open: Option<ServerDetail>,
    href: String,
}

struct ServerDetail {
    tools: Vec<ToolLine>,
    policy: String,
    command: String,
}

struct ToolLine {
    name: &'static str,
    class: &'static str,
    class_text: String,
    summary: &'static str,
    labels: Vec<String>,
}

struct Pattern {
    slug: &'static str,
    name: String,
    what: String,
    stops: String,
}

struct ClassLine {
    class: &'static str,
    name: String,
    level: String,
    what: String,
}

const CLASSES: [Class; 6] =
    [Class::Read, Class::Write, Class::Execute, Class::Destructive, Class::Financial, Class::Other];

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "catalog").await?;
    let (q, open) = (visit.query.text("q").to_owned(), visit.query.text("server"));
    let words: Vec<String> = q.split_whitespace().map(str::to_owned).collect();
    let found = Catalogue::shipped().search(&words);
    let servers = found.iter().map(|it| card(&s, it.server, open, &q)).collect();
    let lower = q.to_lowercase();
    let matches = |it: &Pattern| {
        [it.slug, &it.name, &it.what, &it.stops]
            .iter()
            .any(|text| text.to_lowercase().contains(&lower))
    };
    let patterns = AttackPattern::ALL.into_iter().map(|pattern| Pattern::of(&s, pattern));
    let patterns = patterns.filter(matches).collect();
    page(&Catalog {
        assets: &assets::VERSION,
        servers,
        total: Catalogue::shipped().servers().len(),
        patterns,
        classes: CLASSES.map(|class| ClassLine::of(&s, class)).into_iter().collect(),
        recommended: RECOMMENDED,
        q,
        s,
    })
}

fn card(s: &Shell, server: &'static CatalogueServer, open: &str, q: &str) -> ServerCard {
    let count = |class: Class| server.tools.iter().filter(|tool| tool.class == class).count();
    let classes = CLASSES.map(|class| {
        let name = class.as_str();
        (name, s.tr(&format!("class-{name}")), count(class))
    });
    let query: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("q", q), ("server", &server.server)])
        .finish();
    ServerCard {
        name: &server.server,
        package: format!("{} {} {}", server.registry, server.package, server.version),
        summary: &server.summary,
        date: &server.date,
        classes: classes.into_iter().filter(|(_, _, count)| *count > 0).collect(),
        open: (server.server == open).then(|| detail(s, server)),
        href: format!("/catalog?{query}#server-{}", server.server),
    }
}

fn detail(s: &Shell, server: &'static CatalogueServer) -> ServerDetail {
    let line = |tool: &'static toolgate_catalog::CatalogueTool| ToolLine {
        name: &tool.name,
        class: tool.class.as_str(),
        class_text: s.tr(&format!("class-{}", tool.class.as_str())),
        summary: &tool.summary,
        labels: tool
            .labels
            .names()
            .map(|name| s.tr(&format!("label-{}", name.replace('_', "-"))))
            .collect(),
    };
    let rules = server.tools.iter().map(|tool| {
        let class = tool.class.as_str();
        format!("  {}: {} # {class}\n", policy_key(&tool.name), tool.recommended().entry())
    });
    let command = match server.registry.as_str() {
        "npm" => format!("npx -y {}@{}", server.package, server.version),
        _ => format!("uvx {}@{}", server.package, server.version),
    };
    ServerDetail {
        tools: server.tools.iter().map(line).collect(),
        policy: format!("version: \"1\"\ndefault: deny\ntools:\n{}", rules.collect::<String>()),
        command,
    }
}

impl Pattern {
    fn of(s: &Shell, pattern: AttackPattern) -> Self {
        let slug = pattern.slug();
        Self {
            slug,
            name: s.tr(&format!("attack-{slug}")),
            what: s.tr(&format!("attack-{slug}-what")),
            stops: s.tr(&format!("attack-{slug}-stops")),
        }
    }
}

impl ClassLine {
    fn of(s: &Shell, class: Class) -> Self {
        let name = class.as_str();
        Self {
            class: name,
            name: s.tr(&format!("class-{name}")),
            level: s.tr(&format!("level-{}", class.level().as_str())),
            what: s.tr(&format!("class-{name}-what")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::Language;

    #[test]
    fn the_policy_of_every_server_is_valid_and_names_every_tool() {
        let s = Shell::outside(Language::English, "", "/".to_owned());
        for server in Catalogue::shipped().servers() {
            let shown = detail(&s, server);
            let checked = toolgate_policy::document_json(&shown.policy);
            let json: serde_json::Value = serde_json::from_str(&checked.unwrap()).unwrap();
            let rules = json["tools"].as_object().unwrap().len();
            assert_eq!(rules, server.tools.len(), "{}", shown.policy);
        }
    }
}
