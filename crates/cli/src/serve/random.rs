//! Where ids and tokens come from: the operating system's randomness.

use std::fmt::Write;

use toolgate_gateway::Ids;

/// Ids that nobody can guess.
pub(crate) struct SystemIds;

impl Ids for SystemIds {
    fn agent_session(&self) -> Option<String> {
        match random_hex() {
            Ok(id) => Some(id),
            Err(error) => {
                tracing::error!(%error, "the system gives no randomness");
                None
            }
        }
    }

    fn call(&self) -> Option<[u8; 10]> {
        bytes().inspect_err(|error| tracing::error!("{error:#}")).ok()
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
    Ok(bytes.iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _infallible = write!(hex, "{byte:02x}");
        hex
    }))
}
