//! The SQL statements, one file each.

use rusqlite::{Connection, ToSql};
use toolgate_store::StoreError;

use crate::error::OrStoreError as _;

pub(crate) const APPEND: &str = include_str!("../sql/append.sql");
pub(crate) const APPROVAL_ALL: &str = include_str!("../sql/approval_all.sql");
pub(crate) const APPROVAL_DELIVER: &str = include_str!("../sql/approval_deliver.sql");
pub(crate) const APPROVAL_DELIVERIES: &str = include_str!("../sql/approval_deliveries.sql");
pub(crate) const APPROVAL_EXPIRED: &str = include_str!("../sql/approval_expired.sql");
pub(crate) const APPROVAL_FORGET: &str = include_str!("../sql/approval_forget.sql");
pub(crate) const APPROVAL_GET: &str = include_str!("../sql/approval_get.sql");
pub(crate) const APPROVAL_GROW: &str = include_str!("../sql/approval_grow.sql");
pub(crate) const APPROVAL_IN_STATE: &str = include_str!("../sql/approval_in_state.sql");
pub(crate) const APPROVAL_LIVE: &str = include_str!("../sql/approval_live.sql");
pub(crate) const APPROVAL_PENDING: &str = include_str!("../sql/approval_pending.sql");
pub(crate) const APPROVAL_PENDING_OF: &str = include_str!("../sql/approval_pending_of.sql");
pub(crate) const APPROVAL_PRUNE: &str = include_str!("../sql/approval_prune.sql");
pub(crate) const APPROVAL_PUT: &str = include_str!("../sql/approval_put.sql");
pub(crate) const APPROVAL_USED: &str = include_str!("../sql/approval_used.sql");
pub(crate) const STANDING_ALL: &str = include_str!("../sql/standing_all.sql");
pub(crate) const STANDING_DUE: &str = include_str!("../sql/standing_due.sql");
pub(crate) const STANDING_END: &str = include_str!("../sql/standing_end.sql");
pub(crate) const STANDING_PUT: &str = include_str!("../sql/standing_put.sql");
pub(crate) const BEGIN: &str = include_str!("../sql/begin.sql");
pub(crate) const CALL_BETWEEN: &str = include_str!("../sql/call_between.sql");
pub(crate) const CHECKPOINT_ADD: &str = include_str!("../sql/checkpoint_add.sql");
pub(crate) const CHECKPOINT_ALL: &str = include_str!("../sql/checkpoint_all.sql");
pub(crate) const CHECKPOINT_LAST: &str = include_str!("../sql/checkpoint_last.sql");
pub(crate) const COUNTER_PRUNE: &str = include_str!("../sql/counter_prune.sql");
pub(crate) const COUNTER_READ: &str = include_str!("../sql/counter_read.sql");
pub(crate) const COUNTER_WRITE: &str = include_str!("../sql/counter_write.sql");
pub(crate) const FLIGHT_ADD: &str = include_str!("../sql/flight_add.sql");
pub(crate) const FLIGHT_COUNT: &str = include_str!("../sql/flight_count.sql");
pub(crate) const FLIGHT_END: &str = include_str!("../sql/flight_end.sql");
pub(crate) const FREEZE_ALL: &str = include_str!("../sql/freeze_all.sql");
pub(crate) const FREEZE_END: &str = include_str!("../sql/freeze_end.sql");
pub(crate) const FREEZE_OF: &str = include_str!("../sql/freeze_of.sql");
pub(crate) const FREEZE_PUT: &str = include_str!("../sql/freeze_put.sql");
pub(crate) const GRANT_ALL: &str = include_str!("../sql/grant_all.sql");
pub(crate) const GRANT_PUT: &str = include_str!("../sql/grant_put.sql");
pub(crate) const GRANT_REVOKE: &str = include_str!("../sql/grant_revoke.sql");
pub(crate) const GRANT_TAKEN: &str = include_str!("../sql/grant_taken.sql");
pub(crate) const GRANT_TOUCH: &str = include_str!("../sql/grant_touch.sql");
pub(crate) const GRANT_USE: &str = include_str!("../sql/grant_use.sql");
pub(crate) const GRANT_USE_ALL: &str = include_str!("../sql/grant_use_all.sql");
pub(crate) const GROW_GENERATION: &str = include_str!("../sql/grow_generation.sql");
pub(crate) const HEAD: &str = include_str!("../sql/head.sql");
pub(crate) const KEPT_ALL: &str = include_str!("../sql/kept_all.sql");
pub(crate) const KEPT_FORGET: &str = include_str!("../sql/kept_forget.sql");
pub(crate) const KEPT_PUT: &str = include_str!("../sql/kept_put.sql");
pub(crate) const OPEN_ADD: &str = include_str!("../sql/open_add.sql");
pub(crate) const OPEN_COUNT: &str = include_str!("../sql/open_count.sql");
pub(crate) const OPEN_END: &str = include_str!("../sql/open_end.sql");
pub(crate) const OPEN_FIND: &str = include_str!("../sql/open_find.sql");
pub(crate) const OPEN_OF_OWNER: &str = include_str!("../sql/open_of_owner.sql");
pub(crate) const OPEN_OWNERS: &str = include_str!("../sql/open_owners.sql");
pub(crate) const OPEN_PARK: &str = include_str!("../sql/open_park.sql");
pub(crate) const OPEN_RESUME: &str = include_str!("../sql/open_resume.sql");
pub(crate) const OPEN_ROWS: &str = include_str!("../sql/open_rows.sql");
pub(crate) const OPEN_WAIT: &str = include_str!("../sql/open_wait.sql");
pub(crate) const OPEN_WAITING: &str = include_str!("../sql/open_waiting.sql");
pub(crate) const OWNED_END: &str = include_str!("../sql/owned_end.sql");
pub(crate) const OWNED_PRUNE: &str = include_str!("../sql/owned_prune.sql");
pub(crate) const OWNED_READ: &str = include_str!("../sql/owned_read.sql");
pub(crate) const OWNED_WRITE: &str = include_str!("../sql/owned_write.sql");
pub(crate) const OWNER_END: &str = include_str!("../sql/owner_end.sql");
pub(crate) const OWNER_OTHERS: &str = include_str!("../sql/owner_others.sql");
pub(crate) const OWNER_PUT: &str = include_str!("../sql/owner_put.sql");
pub(crate) const OWNER_SINCE: &str = include_str!("../sql/owner_since.sql");
pub(crate) const PERSON_ALL: &str = include_str!("../sql/person_all.sql");
pub(crate) const PERSON_PUT: &str = include_str!("../sql/person_put.sql");
pub(crate) const PERSON_REVOKE: &str = include_str!("../sql/person_revoke.sql");
pub(crate) const PERSON_TAKEN: &str = include_str!("../sql/person_taken.sql");
pub(crate) const POLICY_ALL: &str = include_str!("../sql/policy_all.sql");
pub(crate) const POLICY_PUT: &str = include_str!("../sql/policy_put.sql");
pub(crate) const POLICY_VERSIONS: &str = include_str!("../sql/policy_versions.sql");
pub(crate) const POLICY_REMOVE: &str = include_str!("../sql/policy_remove.sql");
pub(crate) const REBASE: &str = include_str!("../sql/rebase.sql");
pub(crate) const ROWS_ALL: &str = include_str!("../sql/rows_all.sql");
pub(crate) const ROWS_CALL: &str = include_str!("../sql/rows_call.sql");
pub(crate) const ROWS_SELECT: &str = include_str!("../sql/rows_select.sql");
pub(crate) const ROWS_SINCE: &str = include_str!("../sql/rows_since.sql");
pub(crate) const ROW_AT: &str = include_str!("../sql/row_at.sql");
pub(crate) const SEEN_BACK: &str = include_str!("../sql/seen_back.sql");
pub(crate) const SEEN_PRUNE: &str = include_str!("../sql/seen_prune.sql");
pub(crate) const SEEN_READ: &str = include_str!("../sql/seen_read.sql");
pub(crate) const SEEN_WRITE: &str = include_str!("../sql/seen_write.sql");
pub(crate) const SET_MARK: &str = include_str!("../sql/set_mark.sql");
pub(crate) const SLIDING_ADD: &str = include_str!("../sql/sliding_add.sql");
pub(crate) const SLIDING_BACK: &str = include_str!("../sql/sliding_back.sql");
pub(crate) const SLIDING_FORGET: &str = include_str!("../sql/sliding_forget.sql");
pub(crate) const SLIDING_PRUNE: &str = include_str!("../sql/sliding_prune.sql");
pub(crate) const SLIDING_READ: &str = include_str!("../sql/sliding_read.sql");
pub(crate) const SPAN_ADD: &str = include_str!("../sql/span_add.sql");
pub(crate) const SPAN_ALL: &str = include_str!("../sql/span_all.sql");
pub(crate) const SPAN_PRUNE: &str = include_str!("../sql/span_prune.sql");
pub(crate) const STATE: &str = include_str!("../sql/state.sql");
pub(crate) const STORY_ADD: &str = include_str!("../sql/story_add.sql");
pub(crate) const STORY_TOLD: &str = include_str!("../sql/story_told.sql");
pub(crate) const TASK_ADD: &str = include_str!("../sql/task_add.sql");
pub(crate) const TASK_CALLS: &str = include_str!("../sql/task_calls.sql");
pub(crate) const TASK_END: &str = include_str!("../sql/task_end.sql");

/// Runs a statement; returns the number of changed rows.
pub(crate) fn execute(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
) -> Result<usize, StoreError> {
    connection.prepare_cached(sql).or_store_error()?.execute(values).or_store_error()
}
