//! What the audit and the store record of an edit of the file.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::timeout;
use toolgate_audit::{Draft, RowKind};
use toolgate_store::ChangeError;

use super::{Control, State};
use crate::edits::{self, Edit};
use crate::error::NotActive;
use crate::local_mode::LocalMode;
use crate::policies::{FileState, Meanings};

/// How long the store may take to record an edit.
const RECORD_TIMEOUT: Duration = Duration::from_secs(10);

impl Control {
    /// Records an edit of the file before it takes effect, also one that was made while toolgate was
    /// stopped.
    pub(super) async fn record_edits(
        &self,
        state: &State,
        file: &FileState,
        meanings: &Meanings,
    ) -> Result<(), NotActive> {
        let now = Timestamp::now();
        let edits = if let Some(before) = &state.file {
            edits::rows((&before.config, &state.meanings), (&file.config, meanings), now)
        } else {
            let kept = self.parts.store.documents(edits::SPACE).await?;
            edits::since_last_start(&edits::recorded(&kept), meanings, now)
        };
        for edit in edits {
            let recorded = timeout(RECORD_TIMEOUT, self.record_edit(edit)).await;
            recorded.map_err(|_| NotActive::TimedOut)?.map_err(NotActive::NotRecorded)?;
        }
        Ok(())
    }

    async fn record_edit(&self, (change, row): Edit) -> Result<(), ChangeError> {
        match change {
            Some(change) => self.parts.store.change(change, row).await.map(drop),
            None => Ok(self.parts.store.record(row).await.map(drop)?),
        }
    }

    /// The first grant ends local mode for good, also one of the file.
    pub(super) async fn end_local_mode(&self) {
        let mut row = Draft::new(RowKind::Admin, Timestamp::now());
        row.message = Some("local mode has ended: toolgate.yaml has a new grant".into());
        if let Err(error) = self.parts.store.change(LocalMode::Ended.keep(), row).await {
            tracing::error!(%error, "the end of local mode is not stored");
        }
    }
}
