//! Local mode: whether calls without a token are accepted again.
//!
//! The store keeps the last decision: a person enabled it, with the grants that the file had at
//! that time; or a grant of the file has ended it. Without a decision it is on as long as no grant
//! has ever existed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_store::{Change, Kept};

use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, ok};
use crate::view::Place;

/// The key of the decision in the store.
pub const SPACE: &str = "local";
const KEY: &str = "mode";

/// The last decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Enabled by a person, while the file had grants with these labels. Any other grant ends it
    /// again.
    Enabled(Vec<String>),
    /// Ended by a grant.
    Ended,
}

/// Whether calls without a token are accepted.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LocalMode")]
pub(crate) struct Wish {
    /// Accept them.
    enabled: bool,
}

impl Word {
    /// Parses a stored decision; an invalid one ends local mode.
    pub fn read(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or(Self::Ended)
    }

    /// The change that stores it.
    pub fn keep(&self) -> Change {
        let json = serde_json::to_string(self).unwrap_or_default();
        Change::Keep(Kept { space: SPACE.into(), key: KEY.into(), json: json.into() })
    }

    /// Whether a file with grants of these labels ends local mode.
    pub fn is_ended_by<'a>(word: Option<&Self>, mut labels: impl Iterator<Item = &'a str>) -> bool {
        match word {
            None => labels.next().is_some(),
            Some(Self::Enabled(known)) => labels.any(|label| !known.iter().any(|k| k == label)),
            Some(Self::Ended) => false,
        }
    }
}

pub(crate) async fn put(ask: Ask) -> Answer {
    let wish: Wish = ask.json()?;
    let _turn = ask.admin.turn.lock().await;
    if wish.enabled {
        let row = ask.row("enabled local mode (calls without a token)");
        let grants = ask.admin.view().grants.clone().into_iter();
        let of_file = grants.filter(|grant| grant.source == Place::File);
        let word = Word::Enabled(of_file.map(|grant| grant.label).collect());
        ask.change(word.keep(), row).await?;
        if !ask.admin.view().local {
            let why = "it is kept, but calls without a token are still refused: `local` is off in \
                       toolgate.yaml, or a listener is not on loopback";
            return Err(Fault::conflict(why));
        }
    } else {
        let row = ask.row("ended local mode (calls without a token)");
        ask.change(Word::Ended.keep(), row).await?;
    }
    ok(&wish)
}

/// Ends local mode if a person had enabled it. A first grant ends it by existing.
pub(crate) async fn end(ask: &Ask, why: &str) -> Result<(), Fault> {
    let kept = ask.admin.given.store.kept(SPACE).await?;
    if kept.iter().any(|kept| matches!(Word::read(&kept.json), Word::Enabled(_))) {
        let row = ask.row(&format!("ended local mode (calls without a token): {why}"));
        ask.change(Word::Ended.keep(), row).await?;
    }
    Ok(())
}
