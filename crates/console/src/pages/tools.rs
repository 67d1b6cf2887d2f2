//! Tools: everything that agents can call.

use std::collections::BTreeSet;

use askama::Template;

use crate::assets;
use crate::items::{KnownTools, Tool};
use crate::shell::Shell;
use crate::shown::foreign;
use crate::visit::{Outcome, Visit, page, part};

#[derive(Template)]
#[template(path = "tools.html")]
struct ToolsPage {
    s: Shell,
    assets: &'static str,
    tools: Vec<ToolLine>,
    total: usize,
    unlisted: Vec<String>,
    servers: Vec<String>,
    q: String,
    class: String,
    server: String,
    state: String,
    classes: Vec<(&'static str, String)>,
}

struct ToolLine {
    server: String,
    name: String,
    href: String,
    class: String,
    class_text: String,
    is_quarantined: bool,
}

/// How many tools one page shows.
const MOST: usize = 1_000;

const CLASSES: [&str; 6] = ["read", "write", "execute", "destructive", "financial", "other"];

/// All tools: those of servers with their state, then those of sessions and built-ins.
pub(crate) async fn all(
    visit: &Visit,
) -> Result<(Vec<Tool>, Vec<String>), crate::problem::Problem> {
    let mut tools: Vec<Tool> = visit.list("/api/v1/tools").await?;
    let known: KnownTools = visit.get("/api/v1/known_tools").await?;
    let have: BTreeSet<(String, String)> =
        tools.iter().map(|tool| (tool.server.clone(), tool.name.clone())).collect();
    let mut seen = BTreeSet::new();
    tools.extend(known.tools.into_iter().filter(|tool| {
        let key = (tool.server.clone(), tool.name.clone());
        !have.contains(&key) && seen.insert(key)
    }));
    Ok((tools, known.unlisted))
}

/// The page.
pub(crate) async fn show(visit: Visit) -> Outcome {
    let s = Shell::of(&visit, "tools").await?;
    let (tools, unlisted) = all(&visit).await?;
    let total = tools.len();
    let query = &visit.query;
    let (q, class, server, state) =
        (query.text("q"), query.text("class"), query.text("server"), query.text("state"));
    let lower = q.to_lowercase();
    let servers: BTreeSet<String> = tools.iter().map(|tool| tool.server.clone()).collect();
    let matches = |tool: &&Tool| {
        (lower.is_empty()
            || tool.name.to_lowercase().contains(&lower)
            || tool.server.to_lowercase().contains(&lower))
            && (class.is_empty() || tool.class == class)
            && (server.is_empty() || tool.server == server)
            && (state.is_empty() || (tool.state == "quarantined") == (state == "quarantined"))
    };
    let line = |tool: &Tool| ToolLine {
        href: format!("/tools/{}/{}", part(&tool.server), part(&tool.name)),
        class_text: s.tr(&format!("class-{}", tool.class)),
        class: tool.class.clone(),
        is_quarantined: tool.state == "quarantined",
        server: foreign(&tool.server, 80),
        name: foreign(&tool.name, 120),
    };
    let tools = tools.iter().filter(matches).take(MOST).map(line).collect();
    page(&ToolsPage {
        assets: &assets::VERSION,
        tools,
        total,
        unlisted,
        servers: servers.into_iter().collect(),
        classes: CLASSES.map(|class| (class, s.tr(&format!("class-{class}")))).to_vec(),
        q: q.to_owned(),
        class: class.to_owned(),
        server: server.to_owned(),
        state: state.to_owned(),
        s,
    })
}
