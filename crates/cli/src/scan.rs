//! `toolgate scan`: lists the tools of a server, of a URL, or of all servers of an MCP client, judges
//! their risk, and writes a policy for them.
//!
//! `targets` finds what to scan, `report` judges it, the others print it.
//!
//! Invariant: nothing but lists is requested. The scanned servers are started as `serve` starts them.

mod baseline;
mod markdown;
mod report;
mod sarif;
mod table;
mod targets;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::task::JoinSet;
use toolgate_catalog::{PolicyItem, policy_document};
use toolgate_config::names_in_toolgate;
use toolgate_control::{trusted, visible};

use crate::args::{ScanArgs, ScanOutput};
use crate::exit::Done;
use crate::policy::replace;
use crate::print;
use crate::serve::{ListingGateway, NotListed};
use report::{Report, Scanned};
use targets::Targets;

/// How often it is shown which servers have not answered yet.
const PROGRESS: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &ScanArgs) -> anyhow::Result<Done> {
    if let Some(path) = args.write.as_deref().filter(|path| path.exists() && !args.force) {
        bail!("`{}` exists; add `--force` to replace it", path.display());
    }
    let before = args.baseline.as_deref().map(read_baseline).transpose()?;
    let targets = Targets::find(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let scanned = runtime.block_on(scan(&targets))?;
    if let (false, [Scanned { name, tools: Err(why), .. }]) = (targets.many, scanned.as_slice()) {
        bail!("`{name}` cannot be scanned: {why}");
    }
    let mut report = Report::new(scanned, targets.many);
    if let Some(path) = &args.write {
        write_policy(path, &targets, &report)?;
    }
    if let Some(before) = &before {
        baseline::keep_changes(&mut report, before);
    }
    print::out(&match args.output {
        ScanOutput::Table => table::text(&report),
        ScanOutput::Json => format!("{}\n", report.json()),
        ScanOutput::Sarif => format!("{}\n", sarif::log(&report)),
        ScanOutput::Markdown => markdown::text(&report),
    });
    Ok(done(args, &report))
}

fn done(args: &ScanArgs, report: &Report) -> Done {
    let failed = report.servers.iter().any(|server| server.tools.is_err());
    let found = match args.fail_on {
        Some(fail_on) => report.highest().is_some_and(|highest| highest >= fail_on.level()),
        None => args.baseline.is_some() && report.has_changes(),
    };
    if failed || found { Done::Finding } else { Done::Ok }
}

async fn scan(targets: &Targets) -> anyhow::Result<Vec<Scanned>> {
    let gateway = Arc::new(ListingGateway::start(&targets.config)?);
    let mut running = JoinSet::new();
    for (at, server) in targets.config.servers.iter().enumerate() {
        let (gateway, server) = (Arc::clone(&gateway), server.name.clone());
        let name = targets.names.get(at).cloned().unwrap_or_default();
        running.spawn(async move {
            let listed = gateway.definitions(&server).await;
            (at, listed.map_err(|why| why.under_its_name(&server, &name)))
        });
    }
    let mut listed: Vec<Option<Result<Vec<String>, NotListed>>> = vec![None; targets.names.len()];
    loop {
        match tokio::time::timeout(PROGRESS, running.join_next()).await {
            Ok(None) => break,
            Ok(Some(ended)) => {
                let (at, tools) = ended.context("a scan panicked (please report this)")?;
                if let Some(slot) = listed.get_mut(at) {
                    *slot = Some(tools);
                }
            }
            Err(_) => {
                let waiting = targets.names.iter().zip(&listed).filter(|(_, done)| done.is_none());
                let names: Vec<&str> = waiting.map(|(name, _)| name.as_str()).collect();
                print::err(&visible(&format!("waiting for {}\n", names.join(", "))));
            }
        }
    }
    gateway.stop().await;
    let none = || Err(NotListed("no answer".to_owned()));
    let scanned = targets.names.iter().zip(listed);
    Ok(scanned
        .map(|(name, tools)| Scanned::new(name.clone(), tools.unwrap_or_else(none)))
        .collect())
}

fn write_policy(path: &Path, targets: &Targets, report: &Report) -> anyhow::Result<()> {
    let tools = report.tools();
    // The servers of a client have other names in toolgate, if it does not accept theirs.
    let names = names_in_toolgate(targets.names.iter().map(String::as_str));
    let in_toolgate = |called: &str| {
        let at = targets.names.iter().position(|name| name == called)?;
        names.get(at).map(String::as_str)
    };
    let items: Vec<PolicyItem<'_>> = tools
        .iter()
        .map(|(server, tool)| PolicyItem {
            server: in_toolgate(server).filter(|_| report.many),
            tool: &tool.name,
            description: tool.description.as_deref(),
            assessment: &tool.assessment,
            recommended: &tool.recommended,
        })
        .collect();
    replace(path, &policy_document(&targets.names.join(", "), &items))?;
    print::err(&visible(&format!("policy written to {}\n", path.display())));
    Ok(())
}

fn read_baseline(path: &Path) -> anyhow::Result<serde_json::Value> {
    let unusable = || format!("the baseline `{}` cannot be used", path.display());
    let text = trusted::read_text(path).with_context(unusable)?;
    serde_json::from_str(&text).with_context(unusable)
}
