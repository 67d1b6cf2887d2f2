//! The contract between the gateway and whatever keeps its data.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use toolgate_audit::{CallId, Checkpoint, Draft, Row};

use crate::{
    AdmitOutcome, AdmitRequest, Change, ChangeError, Document, NotAudited, NotReadable, ReadUsage,
    RowQuery, Snapshot, StoreStatus,
};

/// Admits calls, keeps what people set up, and tells what happened.
///
/// Every method gives its work to the store at once and never blocks; the future is only the
/// answer, and dropping it takes nothing back. When a write answers `Ok`, it has reached the
/// operating system (or the disk, if so configured) in one transaction with its audit row; when it
/// answers `Err`, nothing of it happened.
pub trait Store: Send + Sync + fmt::Debug {
    /// Decides a call and, if it may pass, takes its counters and writes its intent, all in one
    /// transaction. Only this makes an [`crate::Admitted`]. A limit of N admits N, never N + 1,
    /// however many tasks and processes ask.
    fn admit(&self, request: AdmitRequest) -> BoxFuture<'static, Result<AdmitOutcome, NotAudited>>;

    /// Writes a refusal that the policy did not make (frozen, unknown tool, …). Of one (grant,
    /// tool, rule) ten a minute are rows; the rest become one row with a count.
    fn deny(&self, denial: Draft) -> BoxFuture<'static, Result<(), NotAudited>>;

    /// Writes any other row; answers its place.
    fn record(&self, row: Draft) -> BoxFuture<'static, Result<u64, NotAudited>>;

    /// Changes what people set up, together with the row that says who did. Answers the new
    /// generation.
    fn change(&self, change: Change, row: Draft) -> BoxFuture<'static, Result<u64, ChangeError>>;

    /// A grant (by id) was used. Kept with the next tick, without a row.
    fn touch(&self, grant: Arc<str>, now: Timestamp);

    /// A number that grows whenever what [`Store::snapshot`] gives changes, or a document of a
    /// [`crate::SETUP_SPACES`] space, in whichever process.
    /// Cheap; at most one tick old. [`AdmitRequest::generation`] makes admission exact.
    fn generation(&self) -> u64;

    /// Everything people set up.
    fn snapshot(&self) -> BoxFuture<'static, Result<Snapshot, NotReadable>>;

    /// What was kept in a space, by key.
    fn documents(&self, space: &str) -> BoxFuture<'static, Result<Vec<Document>, NotReadable>>;

    /// Rows of the audit, ascending.
    fn rows(&self, page: RowQuery) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>>;

    /// All rows of one call, ascending.
    fn call_rows(&self, call: CallId) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>>;

    /// Every checkpoint, ascending.
    fn checkpoints(&self) -> BoxFuture<'static, Result<Vec<Checkpoint>, NotReadable>>;

    /// The head of the chain, the clock's high-water mark, calls that are open.
    fn status(&self) -> BoxFuture<'static, Result<StoreStatus, NotReadable>>;

    /// Shows what has been used, for explaining and for `my_permissions`; takes nothing.
    fn read_usage(
        &self,
        now: Timestamp,
        read: Box<ReadUsage>,
    ) -> BoxFuture<'static, Result<(), NotReadable>>;

    /// Time has passed; to be called about once a second. Ends minutes of denials, signs
    /// checkpoints, forgets what can no longer count, notices changes of other processes.
    fn tick(&self, now: Timestamp);

    /// Writes what waits, signs a last checkpoint and lets go of the data. Later writes are
    /// refused; the outcome of a call that is still open will be `unknown`.
    fn close(&self, now: Timestamp) -> BoxFuture<'static, Result<(), NotAudited>>;
}
