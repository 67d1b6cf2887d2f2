//! Local mode: whether calls without a token may be anybody's again.
//!
//! The store keeps a word about it: that a person wanted it back, and which grants the file had
//! then; or that a grant of the file has ended it. Without a word it is on as long as no grant has
//! ever existed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_store::{Change, Document};

use crate::api::Ask;
use crate::fault::Fault;
use crate::reply::{Answer, ok};
use crate::view::Place;

/// Where the word is kept.
pub const SPACE: &str = "local";
const KEY: &str = "mode";

/// What is kept about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Wanted by a person, when the file had grants of these labels. Any other ends it again.
    Enabled(Vec<String>),
    /// Ended by a grant.
    Ended,
}

/// Whether calls without a token are taken.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LocalMode")]
pub(crate) struct Wish {
    /// Take them.
    enabled: bool,
}

impl Word {
    /// The word that was kept; one that nobody can read ends it.
    pub fn read(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or(Self::Ended)
    }

    /// The change that keeps it.
    pub fn keep(&self) -> Change {
        let json = serde_json::to_string(self).unwrap_or_default();
        Change::PutDocument(Document { space: SPACE.into(), key: KEY.into(), json: json.into() })
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
        let row = ask.row("took calls without a token again (local mode)");
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
        let row = ask.row("ended calls without a token (local mode)");
        ask.change(Word::Ended.keep(), row).await?;
    }
    ok(&wish)
}

/// Ends local mode if a person had wanted it back. A first grant ends it by being there.
pub(crate) async fn end(ask: &Ask, why: &str) -> Result<(), Fault> {
    let kept = ask.admin.given.store.documents(SPACE).await?;
    if kept.iter().any(|kept| matches!(Word::read(&kept.json), Word::Enabled(_))) {
        let row = ask.row(&format!("ended calls without a token (local mode): {why}"));
        ask.change(Word::Ended.keep(), row).await?;
    }
    Ok(())
}
