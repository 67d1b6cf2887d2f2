//! Making the content of the store active, and reading its counters.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::timeout;
use toolgate_policy::Usage;
use toolgate_store::NotReadable;

use super::Admission;
use crate::fair_queue::NotRun;
use crate::store_timeout::STORE_TIMEOUT;

/// Builds an [`crate::access::Access`] from the content of the store and makes it active.
pub type Refresh =
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), RefreshError>> + Send>> + Send + Sync;

/// The content of the store could not become active.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// It is not valid, or cannot be read.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
    /// It took longer than a call may wait.
    #[error("reading grants and policies takes too long")]
    Timeout,
}

/// The counters could not be read.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// Too many reads of the grant wait.
    #[error(transparent)]
    NotRun(#[from] NotRun),
    /// The store failed.
    #[error(transparent)]
    NotReadable(#[from] NotReadable),
    /// The store did not answer in time.
    #[error("the store has not answered for {} s", STORE_TIMEOUT.as_secs())]
    Timeout,
    /// The store dropped the request.
    #[error("the store gave no answer")]
    NoAnswer,
}

impl Admission {
    /// Sets what makes the content of the store active; once.
    pub fn set_refresh(&self, refresh: Box<Refresh>) {
        if self.refresh.set(refresh).is_err() {
            tracing::error!("`set_refresh` called twice; keeping the first");
        }
    }

    /// Makes the content of the store active.
    pub async fn refresh(&self) -> Result<(), RefreshError> {
        match self.refresh.get() {
            Some(refresh) => refresh().await,
            None => Ok(()),
        }
    }

    /// The same, no longer than a call may wait.
    pub(crate) async fn refresh_in_time(&self) -> Result<(), RefreshError> {
        timeout(STORE_TIMEOUT, self.refresh()).await.unwrap_or(Err(RefreshError::Timeout))
    }

    /// Reads the counters; takes nothing. Reads of one grant run one at a time.
    pub async fn read_usage<T: Send + 'static>(
        &self,
        grant: &Arc<str>,
        read: impl FnOnce(&dyn Usage, Timestamp) -> T + Send + 'static,
    ) -> Result<T, UsageError> {
        let _slot = self.usage_reads.slot(grant).await?;
        let (send, receive) = oneshot::channel();
        // The receiver may be gone.
        let read = Box::new(|usage: &dyn Usage, now: Timestamp| drop(send.send(read(usage, now))));
        let done = timeout(STORE_TIMEOUT, self.store.read_usage(self.clock.now(), read)).await;
        done.map_err(|_| UsageError::Timeout)??;
        receive.await.map_err(|_| UsageError::NoAnswer)
    }
}
