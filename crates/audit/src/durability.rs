//! How durable an intent is.

/// How durable an intent is before its call is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It has reached the operating system: it survives the end of the process and is synced within
    /// 100 ms. If syncing lags more than 5 s, no call is admitted.
    #[default]
    Process,
    /// It is on the disk: it survives a power failure.
    Power,
}
