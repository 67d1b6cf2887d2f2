//! Limits wrong tokens: after ten within a minute, an address has to wait.
//!
//! Invariant: pure; addresses cost bounded memory.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use jiff::{SignedDuration, Timestamp};

/// How many wrong tokens an address may send within [`WINDOW`].
pub(crate) const MOST: u32 = 10;
const WINDOW: SignedDuration = SignedDuration::from_mins(1);
/// How many addresses are remembered; beyond that all others share one count.
const MAX_ADDRESSES: usize = 10_000;

/// Wrong tokens, by address.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    addresses: HashMap<IpAddr, Wrong>,
    others: Wrong,
}

/// Wrong tokens within the window that began then.
#[derive(Debug, Clone, Copy, Default)]
struct Wrong {
    count: u32,
    began: Timestamp,
}

impl Throttle {
    /// How many seconds this address has to wait before its next token is looked at.
    pub(crate) fn wait(&self, address: Option<IpAddr>, now: Timestamp) -> Option<i64> {
        let known = address.and_then(|address| self.addresses.get(&network(address)));
        let wrong = known.copied().unwrap_or(self.others);
        let left = (wrong.began + WINDOW).duration_since(now);
        (wrong.count >= MOST && left.is_positive()).then(|| left.as_secs() + 1)
    }

    /// Counts a wrong token.
    pub(crate) fn wrong(&mut self, address: Option<IpAddr>, now: Timestamp) {
        if self.addresses.len() >= MAX_ADDRESSES {
            self.addresses.retain(|_, wrong| now < wrong.began + WINDOW);
        }
        let has_room = self.addresses.len() < MAX_ADDRESSES;
        let wrong = match address.map(network) {
            Some(network) if has_room || self.addresses.contains_key(&network) => {
                self.addresses.entry(network).or_default()
            }
            _ => &mut self.others,
        };
        if now >= wrong.began + WINDOW {
            *wrong = Wrong { count: 0, began: now };
        }
        wrong.count = wrong.count.saturating_add(1);
    }
}

/// One customer of a provider has a whole /64 of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1) + SignedDuration::from_secs(seconds)
    }

    fn address(text: &str) -> Option<IpAddr> {
        text.parse().ok()
    }

    #[test]
    fn the_eleventh_token_within_a_minute_waits() {
        let (mut all, one) = (Throttle::default(), address("192.0.2.1"));
        for second in 0..10 {
            assert_eq!(all.wait(one, at(second)), None, "{second}");
            all.wrong(one, at(second));
        }
        assert_eq!(all.wait(one, at(10)), Some(51));
        assert_eq!(all.wait(address("192.0.2.2"), at(10)), None, "another address is free");
        assert_eq!(all.wait(one, at(60)), None);
    }

    #[test]
    fn addresses_of_one_network_share_a_count() {
        let mut all = Throttle::default();
        for n in 1..=10 {
            all.wrong(address(&format!("2001:db8::{n}")), at(0));
        }
        assert!(all.wait(address("2001:db8::ffff"), at(1)).is_some());
        assert!(all.wait(address("2001:db8:0:1::1"), at(1)).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let mut all = Throttle::default();
        for n in 0..u32::try_from(MAX_ADDRESSES).unwrap() + 20 {
            all.wrong(Some(IpAddr::from(n.to_be_bytes())), at(0));
        }
        assert_eq!(all.addresses.len(), MAX_ADDRESSES);
        assert!(all.wait(address("203.0.113.1"), at(1)).is_some(), "unknown ones share a count");
    }
}
