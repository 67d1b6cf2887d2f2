//! The contract between the gateway and its storage.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use toolgate_audit::{CallId, Checkpoint, Draft, Row};

use crate::{
    AdmitOutcome, AdmitRequest, ApprovalQuery, Change, ChangeError, Completion, Document,
    DueNotice, HeldCall, NotAudited, NotReadable, PendingApprovals, PolicyVersion, ReadUsage,
    RowQuery, Snapshot, StoreActivity, StoreStatus, StoredApproval,
};

/// Admits calls, persists what people set up, and reads the audit.
///
/// Every method submits its work at once and never blocks. The future only carries the result;
/// dropping it cancels nothing. A write that returns `Ok` has reached the operating system (or the
/// disk, if so configured) in one transaction with its audit row. A write that returns `Err` has
/// had no effect.
pub trait Store: Send + Sync + fmt::Debug {
    /// Decides a call and, if it is allowed, takes its counters and writes its intent row in one
    /// transaction. Only this method creates an [`crate::Admitted`]. A limit of N admits N calls,
    /// never N + 1, however many tasks and processes call concurrently.
    fn admit(&self, request: AdmitRequest) -> BoxFuture<'static, Result<AdmitOutcome, NotAudited>>;

    /// Records a refusal that the policy did not make (frozen, unknown tool, …). Each (grant, tool,
    /// rule) gets at most ten rows a minute; further denials become one row with a count.
    fn deny(&self, denial: Draft) -> BoxFuture<'static, Result<(), NotAudited>>;

    /// Appends any other row; returns its sequence number.
    fn record(&self, row: Draft) -> BoxFuture<'static, Result<u64, NotAudited>>;

    /// Changes what people set up and appends the row that names the person, in one transaction.
    /// Returns the new generation.
    fn change(&self, change: Change, row: Draft) -> BoxFuture<'static, Result<u64, ChangeError>>;

    /// A task of a call that an earlier process admitted has ended (see
    /// [`crate::Ticket::continue_as_task`]). Without such a call nothing happens.
    fn end_task(&self, task: &str, ending: Completion);

    /// Stores and removes documents of a space that is not one of the [`crate::SETUP_SPACES`],
    /// without a row and without a report: for what can be determined again. Other spaces are
    /// ignored.
    fn keep_documents(&self, space: &str, keep: Vec<(Arc<str>, Arc<str>)>, forget: Vec<Arc<str>>);

    /// Records that a grant (by id) was used. Persisted with the next tick, without a row. A grant
    /// that is not stored may have any id; its last use is in [`Snapshot::uses`].
    fn touch(&self, grant: Arc<str>, now: Timestamp);

    /// Records that the notice of an approval is sent again after so many attempts and not before
    /// that time, or that it was delivered. Without a row.
    fn note_delivery(&self, approval: Arc<str>, next: Option<(u32, Timestamp)>);

    /// A number that grows whenever an approval is answered or expires, in any process. Cheap; at most
    /// one tick old.
    fn approvals_version(&self) -> u64;

    /// The approval with this id.
    fn approval(&self, id: &str)
    -> BoxFuture<'static, Result<Option<StoredApproval>, NotReadable>>;

    /// Approvals that match a query, the oldest first. The last one is the first with which their
    /// arguments reach [`crate::LISTED_BYTES`], so that a grant with large arguments cannot occupy
    /// those who read; see [`ApprovalQuery::may_continue`].
    fn approvals(
        &self,
        query: ApprovalQuery,
    ) -> BoxFuture<'static, Result<Vec<StoredApproval>, NotReadable>>;

    /// The last approved call of the same grant, server and tool that was sent.
    fn last_consumed(
        &self,
        like: &HeldCall,
    ) -> BoxFuture<'static, Result<Option<StoredApproval>, NotReadable>>;

    /// How many approvals are pending, and since when.
    fn pending_approvals(&self) -> BoxFuture<'static, Result<PendingApprovals, NotReadable>>;

    /// Pending approvals whose notice is due.
    fn due_deliveries(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<DueNotice>, NotReadable>>;

    /// A number that grows with every change of [`Store::snapshot`] or of a document in one of the
    /// [`crate::SETUP_SPACES`], made by any process. Cheap; at most one tick old.
    /// [`AdmitRequest::generation`] makes admission exact.
    fn generation(&self) -> u64;

    /// Everything that people set up.
    fn snapshot(&self) -> BoxFuture<'static, Result<Snapshot, NotReadable>>;

    /// Every version of a policy, ascending, also of a removed one.
    fn policy_versions(
        &self,
        name: &str,
    ) -> BoxFuture<'static, Result<Vec<PolicyVersion>, NotReadable>>;

    /// The documents of a space, ordered by key.
    fn documents(&self, space: &str) -> BoxFuture<'static, Result<Vec<Document>, NotReadable>>;

    /// Rows of the audit that match a query, ascending unless the query says otherwise.
    fn rows(&self, page: RowQuery) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>>;

    /// The number of rows that match a query, whatever its limit.
    fn count_rows(&self, query: RowQuery) -> BoxFuture<'static, Result<u64, NotReadable>>;

    /// All rows of one call, ascending.
    fn call_rows(&self, call: CallId) -> BoxFuture<'static, Result<Vec<Row>, NotReadable>>;

    /// Every checkpoint, ascending.
    fn checkpoints(&self) -> BoxFuture<'static, Result<Vec<Checkpoint>, NotReadable>>;

    /// The head of the chain, the clock's high-water mark, and the number of open calls.
    fn status(&self) -> BoxFuture<'static, Result<StoreStatus, NotReadable>>;

    /// How many writes there were, and how far the disk lags behind them. Cheap.
    fn activity(&self) -> StoreActivity {
        StoreActivity::default()
    }

    /// Reads the counters, for explanations and for `my_permissions`; takes nothing.
    fn read_usage(
        &self,
        now: Timestamp,
        read: Box<ReadUsage>,
    ) -> BoxFuture<'static, Result<(), NotReadable>>;

    /// Reports the time; call it about once a second. Ends the minutes of coalesced denials, signs
    /// checkpoints, prunes expired counters, and detects changes by other processes.
    fn tick(&self, now: Timestamp);

    /// Writes pending jobs, signs a last checkpoint and closes the data. Later writes are refused;
    /// a call that is still open gets the outcome `unknown`.
    fn close(&self, now: Timestamp) -> BoxFuture<'static, Result<(), NotAudited>>;
}
