//! Ids and tokens from the operating system's randomness.

use std::sync::{Mutex, PoisonError};

use data_encoding::HEXLOWER;
use toolgate_gateway::Ids;

/// For how many calls random bytes are fetched at once.
const BATCH: usize = 64;

/// Unpredictable ids.
#[derive(Default)]
pub(crate) struct SystemIds {
    /// Random bytes for later calls, each used once: saves a system call per call.
    ahead: Mutex<Vec<[u8; 10]>>,
}

impl Ids for SystemIds {
    fn agent_session(&self) -> Option<String> {
        match random_hex() {
            Ok(id) => Some(id),
            Err(error) => {
                tracing::error!(%error, "no randomness from the operating system");
                None
            }
        }
    }

    fn call(&self) -> Option<[u8; 10]> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if ahead.is_empty() {
            let bytes: [u8; 10 * BATCH] =
                bytes().inspect_err(|error| tracing::error!("{error:#}")).ok()?;
            let (ids, _) = bytes.as_chunks::<10>();
            ahead.extend_from_slice(ids);
        }
        ahead.pop()
    }
}

/// Random bytes.
pub(crate) fn bytes<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    Ok(bytes)
}

/// A new token.
pub(crate) fn token() -> anyhow::Result<String> {
    Ok(toolgate_admin::token(&bytes()?))
}

/// Random bytes for the admin API.
pub(crate) fn bits() -> Option<[u8; 32]> {
    bytes().inspect_err(|error| tracing::error!("{error:#}")).ok()
}

fn random_hex() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)?;
    Ok(HEXLOWER.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_id_is_used_twice() {
        let ids = SystemIds::default();
        let given: HashSet<[u8; 10]> = (0..10 * BATCH).filter_map(|_| ids.call()).collect();
        assert_eq!(given.len(), 10 * BATCH);
    }
}
