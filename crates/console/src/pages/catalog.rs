//! The catalogue: risk classes, attack patterns and what stops them.

use askama::Template;
use toolgate_catalog::{AttackPattern, Class};
use toolgate_policy::RECOMMENDED;

use crate::assets;
use crate::shell::Shell;
use crate::visit::{Outcome, Visit, page};

#[derive(Template)]
#[template(path = "catalog.html")]
struct Catalog {
    s: Shell,
    assets: &'static str,
    patterns: Vec<Pattern>,
    classes: Vec<ClassLine>,
    recommended: &'static str,
    q: String,
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
    let q = visit.query.text("q").to_owned();
    let lower = q.to_lowercase();
    let patterns = AttackPattern::ALL.into_iter().map(|pattern| {
        let slug = pattern.slug();
        Pattern {
            slug,
            name: s.tr(&format!("attack-{slug}")),
            what: s.tr(&format!("attack-{slug}-what")),
            stops: s.tr(&format!("attack-{slug}-stops")),
        }
    });
    let matches = |it: &Pattern| {
        [it.slug, &it.name, &it.what, &it.stops]
            .iter()
            .any(|text| text.to_lowercase().contains(&lower))
    };
    let patterns = patterns.filter(matches).collect();
    let classes = CLASSES.map(|class| {
        let name = class.as_str();
        ClassLine {
            class: name,
            name: s.tr(&format!("class-{name}")),
            level: s.tr(&format!("level-{}", class.level().as_str())),
            what: s.tr(&format!("class-{name}-what")),
        }
    });
    page(&Catalog {
        s,
        assets: &assets::VERSION,
        patterns,
        classes: classes.into_iter().collect(),
        recommended: RECOMMENDED,
        q,
    })
}
