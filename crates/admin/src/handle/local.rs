//! Local mode: a person accepts calls without a token again, or ends that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_control::Origin;
use toolgate_control::local_mode::{LocalMode, SPACE};

use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, ok};

/// Whether calls without a token are accepted.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LocalMode")]
pub(crate) struct Wish {
    /// Accept them.
    enabled: bool,
}

pub(crate) async fn put(ask: Ask) -> Answer {
    let wish: Wish = ask.json()?;
    let _turn = ask.admin.turn.lock().await;
    if wish.enabled {
        let row = ask.row("enabled local mode (calls without a token)");
        let grants = ask.admin.view().grants.clone().into_iter();
        let of_file = grants.filter(|grant| grant.source == Origin::File);
        let mode = LocalMode::Enabled(of_file.map(|grant| grant.label).collect());
        ask.change(mode.keep(), row).await?;
        if !ask.admin.view().local {
            let why = "it is kept, but calls without a token are still refused: `local` is off in \
                       toolgate.yaml, or a listener is not on loopback";
            return Err(Fault::conflict(why));
        }
    } else {
        let row = ask.row("ended local mode (calls without a token)");
        ask.change(LocalMode::Ended.keep(), row).await?;
    }
    ok(&wish)
}

/// Ends local mode if a person had enabled it. A first grant ends it by existing.
pub(crate) async fn end(ask: &Ask, why: &str) -> Result<(), Fault> {
    let kept = ask.admin.store().documents(SPACE).await?;
    if kept.iter().any(|kept| matches!(LocalMode::parse(&kept.json), LocalMode::Enabled(_))) {
        let row = ask.row(&format!("ended local mode (calls without a token): {why}"));
        ask.change(LocalMode::Ended.keep(), row).await?;
    }
    Ok(())
}
