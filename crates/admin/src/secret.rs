//! New tokens: `tg_`, 256 random bits, and a checksum that lets scanners recognise them.

use data_encoding::HEXLOWER;
use toolgate_audit::Hash;

/// The length of the checksum in characters.
const CHECK: usize = 8;

/// The token of these random bits.
pub fn token(bits: &[u8; 32]) -> String {
    let mut token = String::from("tg_");
    HEXLOWER.encode_append(bits, &mut token);
    let sum = Hash::of(token.as_bytes()).to_string();
    token.extend(sum.chars().take(CHECK));
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_carries_its_checksum() {
        let token = token(&[7; 32]);
        assert_eq!(token.len(), 3 + 64 + CHECK);
        let (rest, sum) = token.split_at(token.len() - CHECK);
        assert!(Hash::of(rest.as_bytes()).to_string().starts_with(sum), "{token}");
    }
}
