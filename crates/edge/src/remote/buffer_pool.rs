//! Reused buffers for large bodies.
//!
//! A freed buffer of many megabytes is returned to the kernel, and the pages of the next one must
//! be mapped and cleared, which takes longer than copying the body. So the last ones are kept for
//! the next large body.
//!
//! Invariant: keeps at most [`KEPT`] buffers of at most [`LARGEST`] bytes each.

use std::mem;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

/// The allocator itself keeps smaller ones.
const SMALLEST: usize = 1024 * 1024;
const LARGEST: usize = 16 * 1024 * 1024;
const KEPT: usize = 2;

/// Free buffers.
#[derive(Debug, Default)]
pub(super) struct BufferPool(Mutex<Vec<Vec<u8>>>);

impl BufferPool {
    /// An empty buffer with this capacity.
    pub(super) fn take(&self, room: usize) -> Vec<u8> {
        let kept = if room < SMALLEST { None } else { self.0.lock().pop() };
        let mut buffer = kept.unwrap_or_default();
        buffer.reserve(room);
        buffer
    }

    /// The body in a pooled buffer, which returns to the pool with its last reference.
    pub(super) fn lend(self: &Arc<Self>, body: Vec<u8>) -> Bytes {
        if !(SMALLEST..=LARGEST).contains(&body.capacity()) {
            return body.into();
        }
        Bytes::from_owner(Lent { body, home: Arc::downgrade(self) })
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut kept = self.0.lock();
        if kept.len() < KEPT {
            kept.push(buffer);
        }
    }
}

/// A buffer in use.
struct Lent {
    body: Vec<u8>,
    home: Weak<BufferPool>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.give_back(mem::take(&mut self.body));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(buffer: &[u8]) -> usize {
        buffer.as_ptr().addr()
    }

    #[test]
    fn a_large_buffer_comes_back_when_the_last_part_of_its_body_is_dropped() {
        let buffers = Arc::new(BufferPool::default());
        let mut buffer = buffers.take(SMALLEST);
        buffer.extend_from_slice(b"first");
        let first = position(&buffer);
        let body = buffers.lend(buffer);
        let part = body.slice(1..3);
        drop(body);
        assert_ne!(position(&buffers.take(SMALLEST)), first, "it is still in use");
        assert_eq!(&part[..], b"ir");
        drop(part);
        let again = buffers.take(SMALLEST);
        assert_eq!((position(&again), again.len()), (first, 0));
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let buffers = Arc::new(BufferPool::default());
        let kept = || buffers.0.lock().iter().map(Vec::capacity).collect::<Vec<_>>();
        for room in [10, LARGEST + 1] {
            drop(buffers.lend(Vec::with_capacity(room)));
            assert_eq!(kept(), [0; 0], "{room}");
        }
        let bodies: Vec<_> = (0..4).map(|_| buffers.lend(Vec::with_capacity(LARGEST))).collect();
        drop(bodies);
        assert_eq!(kept(), [LARGEST; KEPT]);
        assert_eq!(buffers.take(10).capacity(), 10);
        assert_eq!(kept().len(), KEPT, "a small body needs none of them");
        let late = buffers.lend(buffers.take(LARGEST));
        drop(buffers);
        assert_eq!(late.len(), 0);
    }
}
