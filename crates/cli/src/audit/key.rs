//! The value of `--key`.

use std::path::Path;

use anyhow::Context as _;
use data_encoding::BASE64_NOPAD;
use toolgate_audit::{Hash, PublicKey};
use toolgate_control::trusted;

use crate::exit::Usage;

/// A public key or its fingerprint.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// The key itself.
    Key(PublicKey),
    /// Its fingerprint, as it is printed.
    Fingerprint(String),
}

/// Reads a key, its fingerprint, or a file that contains one of them.
pub(super) fn read(text: &str) -> anyhow::Result<Given> {
    if let Some(given) = parse(text) {
        return Ok(given);
    }
    let path = Path::new(text);
    if !path.exists() {
        let why = "`--key` takes 64 hex digits, base64, a fingerprint `sha256:…`, or a file";
        return Err(Usage(why.to_owned()).into());
    }
    let held = trusted::read_named(path).with_context(|| format!("cannot read `{text}`"))?;
    parse(&held).with_context(|| format!("`{text}` contains no public key"))
}

fn parse(text: &str) -> Option<Given> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("sha256:") {
        return Hash::parse(hex).ok().map(|hash| Given::Fingerprint(format!("sha256:{hash}")));
    }
    let bytes = match Hash::parse(text) {
        Ok(Hash(bytes)) => bytes,
        Err(_) => base64(text)?,
    };
    PublicKey::new(&bytes).map(Given::Key)
}

/// 32 bytes in base64, of either alphabet, with or without padding.
fn base64(text: &str) -> Option<[u8; 32]> {
    let text = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    BASE64_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use toolgate_audit::Signer;

    use super::*;

    #[test]
    fn a_key_is_read_in_every_form() {
        let key = Signer::new(&[7; 32]).public_key();
        let hex = Hash(key.to_bytes()).to_string();
        assert_eq!(parse(&format!(" {hex}\n")), Some(Given::Key(key)));
        let base64 = "6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=";
        assert_eq!(parse(base64), Some(Given::Key(key)));
        assert_eq!(parse(&base64.replace('+', "-")), Some(Given::Key(key)));
        let fingerprint = key.fingerprint();
        assert_eq!(parse(&fingerprint), Some(Given::Fingerprint(fingerprint.clone())));
        for wrong in ["", "abc", "sha256:abc", base64.trim_start_matches('6')] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
