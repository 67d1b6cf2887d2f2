//! Loopback addresses for tests that must know a port before it is bound, or bind it twice.
//!
//! A port that the system chose (port 0) and that was closed again is the next one's: any outgoing
//! connection of a neighbouring test may get it. The system never chooses the ports of this module.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ephemeral ports of Linux (32768 to 60999), above the usual ports of servers.
const FIRST: u32 = 20_000;
const PORTS: u32 = 12_000;

/// How many ports one process may take before it takes those of a process with a later id.
const PER_PROCESS: u32 = 4;

static TAKEN: AtomicU32 = AtomicU32::new(0);

/// An address on loopback that is free now, and that only another caller of this function could
/// take.
///
/// # Errors
///
/// If none of these ports is free.
pub fn reserved_address() -> io::Result<SocketAddr> {
    let start = std::process::id().wrapping_mul(PER_PROCESS);
    let mut last = io::ErrorKind::AddrInUse.into();
    for _ in 0..PORTS {
        let port = FIRST + start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % PORTS;
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap_or(u16::MAX)));
        match TcpListener::bind(address) {
            Ok(_) => return Ok(address),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_and_can_be_bound_again() {
        let (one, other) = (reserved_address().unwrap(), reserved_address().unwrap());
        assert_ne!(one, other);
        for _ in 0..2 {
            drop(TcpListener::bind(one).unwrap());
        }
    }
}
