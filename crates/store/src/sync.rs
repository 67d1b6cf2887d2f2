//! Threads, channels, locks and atomics of the engine: those of the system, or, with the feature
//! `shuttle`, those of shuttle, which explores their schedules (`tests/schedules.rs`). Only that
//! test enables the feature.

#[cfg(not(feature = "shuttle"))]
pub(crate) use system::*;
#[cfg(feature = "shuttle")]
pub(crate) use tried::*;

#[cfg(not(feature = "shuttle"))]
mod system {
    pub(crate) use std::{
        sync::{atomic, mpsc},
        thread,
    };

    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
}

/// The same types based on shuttle, with the interface of `parking_lot`.
#[cfg(feature = "shuttle")]
mod tried {
    use std::{
        ops::{Deref, DerefMut},
        sync::PoisonError,
        time::Duration,
    };

    use shuttle::{
        rand::{RngCore as _, thread_rng},
        sync,
    };
    pub(crate) use shuttle::{
        sync::{atomic, mpsc},
        thread,
    };

    /// A lock without poisoning.
    #[derive(Default)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    /// `None` only while it waits.
    pub(crate) struct MutexGuard<'a, T>(&'a sync::Mutex<T>, Option<sync::MutexGuard<'a, T>>);

    #[derive(Default)]
    pub(crate) struct Condvar(sync::Condvar);

    pub(crate) struct Waited {
        timed_out: bool,
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(inner: T) -> Self {
            Self(sync::Mutex::new(inner))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(&self.0, Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            let guard = self.0.try_lock().ok()?;
            Some(MutexGuard(&self.0, Some(guard)))
        }
    }

    #[expect(clippy::expect_used, reason = "only for a test, and only empty inside `wait`")]
    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            self.1.as_ref().expect("held")
        }
    }

    #[expect(clippy::expect_used, reason = "only for a test, and only empty inside `wait`")]
    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.1.as_mut().expect("held")
        }
    }

    impl Condvar {
        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            if let Some(held) = guard.1.take() {
                guard.1 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
            }
        }

        /// Shuttle has no time: other threads run for a while, then the wait has timed out or was
        /// notified.
        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> Waited {
            drop(guard.1.take());
            thread::yield_now();
            guard.1 = Some(guard.0.lock().unwrap_or_else(PoisonError::into_inner));
            Waited { timed_out: thread_rng().next_u64().is_multiple_of(2) }
        }
    }

    impl Waited {
        pub(crate) fn timed_out(&self) -> bool {
            self.timed_out
        }
    }
}
