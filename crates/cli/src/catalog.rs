//! `toolgate catalog`: what is known about public MCP servers.
//!
//! `search` and `show` read the catalogue that is part of this binary and what `import` stored in the
//! data folder. No verb needs a running gateway or the network.

mod import;
mod search;
mod show;

use toolgate_catalog::Catalogue;

use crate::admin_client::AdminClient;
use crate::args::{CatalogArgs, CatalogVerb};
use crate::exit::Done;
use crate::listing::text;

pub(crate) fn run(args: &CatalogArgs) -> anyhow::Result<Done> {
    match &args.verb {
        CatalogVerb::Search(args) => search::run(args),
        CatalogVerb::Show(args) => show::run(args),
        CatalogVerb::Import(args) => import::run(args),
    }
}

/// How the tools of a server of the running gateway compare with the catalogue; `None` if they are
/// not listed yet or no server of the catalogue is like it.
pub(crate) fn compare_running(client: &AdminClient, server: &str) -> Option<String> {
    let tools = client.list("/api/v1/tools").ok()?;
    let own = tools.iter().filter(|tool| text(tool, "server") == Some(server));
    let pairs: Vec<(&str, &str)> = own
        .map(|tool| {
            (text(tool, "name").unwrap_or_default(), text(tool, "fingerprint").unwrap_or_default())
        })
        .collect();
    Catalogue::shipped().compare(&pairs).map(|compared| compared.to_string())
}
