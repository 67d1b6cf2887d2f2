//! Local mode: whether calls without a token may be anybody's again.
//!
//! The store keeps a word about it: `enabled` if a person wanted it back, `ended` if a grant of the
//! file has ended it. Without a word it is on as long as no grant has ever existed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_store::{Change, Kept};

use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, ok};

/// Where the word is kept.
pub const SPACE: &str = "local";
const KEY: &str = "mode";
/// Wanted by a person.
pub const ENABLED: &str = "\"enabled\"";
/// Ended by a grant.
pub const ENDED: &str = "\"ended\"";

/// Whether calls without a token are taken.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LocalMode")]
pub(crate) struct Wish {
    /// Take them.
    enabled: bool,
}

/// The change that keeps a word about local mode.
pub fn word(word: &str) -> Change {
    Change::Keep(Kept { space: SPACE.into(), key: KEY.into(), json: word.into() })
}

pub(crate) async fn put(ask: Ask) -> Answer {
    let wish: Wish = ask.json()?;
    let _turn = ask.admin.turn.lock().await;
    if wish.enabled {
        let row = ask.row("took calls without a token again (local mode)");
        ask.change(word(ENABLED), row).await?;
        if !ask.admin.view().local {
            let why = "it is kept, but calls without a token are still refused: `local` is off in \
                       toolgate.yaml, or a listener is not on loopback";
            return Err(Fault::conflict(why));
        }
    } else {
        let row = ask.row("ended calls without a token (local mode)");
        ask.change(word(ENDED), row).await?;
    }
    ok(&wish)
}

/// Ends local mode if a person had wanted it back. A first grant ends it by being there.
pub(crate) async fn end(ask: &Ask, why: &str) -> Result<(), Fault> {
    let kept = ask.admin.given.store.kept(SPACE).await?;
    if kept.iter().any(|kept| &*kept.json == ENABLED) {
        let row = ask.row(&format!("ended calls without a token (local mode): {why}"));
        ask.change(word(ENDED), row).await?;
    }
    Ok(())
}
