//! The work of one request: a panic ends it and nothing else.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

/// The work of one request. When it ends, the request is answered.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wraps work so that a panic only ends it. Everything that the work held is dropped, so values that
/// must not be lost (a ticket, a reply) act in `drop`.
pub fn contained<F>(work: impl FnOnce() -> F + Send + 'static) -> Work
where
    F: Future<Output = ()> + Send,
{
    // The work is large, so it is created where it stays.
    Box::pin(async move {
        let mut work = pin!(work());
        poll_fn(move |context| {
            let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
            polled.unwrap_or_else(|_| {
                tracing::error!("panic while handling a request; aborted it (please report this)");
                Poll::Ready(())
            })
        })
        .await;
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_work_and_drops_what_it_held() {
        let held = Arc::new(());
        let lent = Arc::clone(&held);
        contained(move || async move {
            tokio::task::yield_now().await;
            assert!(Arc::strong_count(&lent) == 0, "on purpose");
        })
        .await;
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
