//! A future that is polled again at once if it has woken itself.
//!
//! A task that wakes itself while it runs is queued again, and another worker is woken to help: two
//! system calls and a second thread for what one more poll settles. hyper does this for every
//! request whose body is read inside the service, and so does an answer that arrives on the task
//! that waits for it. Measured: half of the system calls of a short call.
//!
//! Invariant: after [`TURNS`] polls other tasks run.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

const TURNS: usize = 16;

/// See the module.
pub(crate) struct Repoll<F> {
    inner: Pin<Box<F>>,
    bell: Arc<Bell>,
    /// Rings `bell`.
    waker: Waker,
}

struct Bell {
    state: AtomicU8,
    /// The waker of the outer task.
    outer: Mutex<Option<Waker>>,
}

const IDLE: u8 = 0;
const POLLING: u8 = 1;
const WOKEN: u8 = 2;

// === impl Repoll ===

impl<F: Future> Repoll<F> {
    pub(crate) fn new(inner: F) -> Self {
        let bell = Arc::new(Bell { state: AtomicU8::new(IDLE), outer: Mutex::new(None) });
        let waker = Waker::from(Arc::clone(&bell));
        Self { inner: Box::pin(inner), bell, waker }
    }
}

impl<F: Future> Future for Repoll<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        this.bell.set_outer(cx.waker());
        let mut inner = Context::from_waker(&this.waker);
        for _ in 0..TURNS {
            this.bell.state.store(POLLING, Ordering::Release);
            if let Poll::Ready(output) = this.inner.as_mut().poll(&mut inner) {
                return Poll::Ready(output);
            }
            if this.bell.swap(POLLING, IDLE).is_ok() {
                return Poll::Pending;
            }
        }
        this.bell.state.store(IDLE, Ordering::Release);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

// === impl Bell ===

impl Bell {
    fn set_outer(&self, waker: &Waker) {
        let mut outer = self.outer.lock();
        if !outer.as_ref().is_some_and(|outer| outer.will_wake(waker)) {
            *outer = Some(waker.clone());
        }
    }

    fn swap(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.swap(POLLING, WOKEN) == Err(IDLE) {
            let outer = self.outer.lock().clone();
            if let Some(outer) = outer {
                outer.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    /// Counts how often the outer task is woken.
    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakes itself `times` times before it is ready.
    fn wakes_itself(times: usize) -> impl Future<Output = usize> {
        let mut polls = 0;
        poll_fn(move |cx| {
            polls += 1;
            if polls > times {
                return Poll::Ready(polls);
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    #[test]
    fn waking_itself_costs_one_poll_of_the_task() {
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let mut cx = Context::from_waker(&waker);
        let mut future = Box::pin(Repoll::new(wakes_itself(TURNS - 1)));
        assert_eq!(future.as_mut().poll(&mut cx), Poll::Ready(TURNS));
        assert_eq!(counter.0.load(Ordering::Relaxed), 0);

        let mut future = Box::pin(Repoll::new(wakes_itself(TURNS)));
        assert_eq!(future.as_mut().poll(&mut cx), Poll::Pending, "others have their turn");
        assert_eq!(counter.0.load(Ordering::Relaxed), 1, "and it asks to be polled again");
        assert_eq!(future.as_mut().poll(&mut cx), Poll::Ready(TURNS + 1));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_wake_from_elsewhere_is_lost() {
        for _ in 0..2_000 {
            let (send, receive) = oneshot::channel();
            let waiting = tokio::spawn(Repoll::new(receive));
            tokio::spawn(async move { send.send(7) });
            let got = tokio::time::timeout(Duration::from_secs(30), waiting).await;
            assert_eq!(got.unwrap().unwrap(), Ok(7));
        }
    }
}
