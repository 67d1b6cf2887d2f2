//! Connection slots: limits on connections, in total and from one address.
//!
//! Invariant: one address that is not on loopback holds at most half of the slots, its upgraded
//! connections included. An IPv6 /64 network is one address, because one machine may have all of
//! it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of one listener.
#[derive(Debug, Clone)]
pub(super) struct ConnectionSlots {
    free: Arc<Semaphore>,
    shares: Arc<Shares>,
}

#[derive(Debug)]
struct Shares {
    most: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// The slot of one connection.
#[derive(Debug)]
pub(super) struct Slot {
    _permit: OwnedSemaphorePermit,
    pub(super) share: PeerShare,
    /// The address of the client.
    pub(super) peer: IpAddr,
}

/// The share of one connection among those of its address; it counts while it is held.
#[derive(Debug, Clone)]
pub(crate) struct PeerShare(
    #[expect(dead_code, reason = "it counts as long as it lives")] Option<Arc<Counted>>,
);

#[derive(Debug)]
struct Counted {
    shares: Arc<Shares>,
    address: IpAddr,
}

/// Why there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSlot {
    /// All are taken.
    Full,
    /// This address has reached its share.
    PeerShare,
}

impl ConnectionSlots {
    pub(super) fn new(connections: usize) -> Self {
        let free = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
        let shares = Shares { most: (connections / 2).max(1), taken: Mutex::default() };
        Self { free, shares: Arc::new(shares) }
    }

    /// A slot for a connection from this address.
    pub(super) fn take(&self, from: IpAddr) -> Result<Slot, NoSlot> {
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| NoSlot::Full)?;
        let share = self.shares.take(from).ok_or(NoSlot::PeerShare)?;
        Ok(Slot { _permit: permit, share, peer: from })
    }
}

impl Shares {
    fn take(self: &Arc<Self>, from: IpAddr) -> Option<PeerShare> {
        let address = counted_as(from);
        if address.is_loopback() {
            return Some(PeerShare(None));
        }
        let mut taken = self.taken.lock();
        let count = taken.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(taken);
        Some(PeerShare(Some(Arc::new(Counted { shares: Arc::clone(self), address }))))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock();
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

/// The address or network under which a client is counted.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let network = u128::from(v6) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_holds_half_of_the_slots() {
        let take = |slots: &ConnectionSlots, from: &str| slots.take(from.parse().unwrap());
        for (one, same, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::ffff:1:2:3", "2001:db8:0:1::1"),
        ] {
            let slots = ConnectionSlots::new(4);
            let first = take(&slots, one).unwrap();
            let second = take(&slots, same).unwrap();
            assert_eq!(take(&slots, one).unwrap_err(), NoSlot::PeerShare, "{one}");
            let third = take(&slots, other).unwrap();
            drop(first);
            // An upgraded connection stays counted.
            let share = second.share.clone();
            drop(second);
            let again = take(&slots, same).unwrap();
            assert_eq!(take(&slots, one).unwrap_err(), NoSlot::PeerShare, "{one}");
            drop((third, again, share));
            assert!(slots.shares.taken.lock().is_empty());
        }
    }

    #[test]
    fn loopback_may_hold_them_all_and_no_more() {
        for local in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            let slots = ConnectionSlots::new(2);
            let held = [slots.take(local.parse().unwrap()), slots.take(local.parse().unwrap())];
            assert!(held.iter().all(Result::is_ok), "{local}");
            assert_eq!(slots.take(local.parse().unwrap()).unwrap_err(), NoSlot::Full);
        }
        assert!(ConnectionSlots::new(1).take("192.0.2.1".parse().unwrap()).is_ok());
    }
}
