//! Reads the members of a large message without looking into its objects and arrays.

use memchr::memchr2;
use serde::de::IgnoredAny;

use super::members::Members;
use crate::skip::nested_len;

#[cfg(test)]
mod tests;

/// From this size on skimming pays.
pub(super) const LARGE: usize = 16 * 1024;

/// The members of the object that `json` is. `None` if it does not come out even: then
/// [`Members::read`] is asked, which also says what is wrong.
pub(super) fn skim(json: &str) -> Option<Members<'_>> {
    let mut members = Members::default();
    let mut rest = Rest { json, at: 0 };
    rest.expect(b'{')?;
    loop {
        rest.skip_space();
        let key = rest.take(string_len(rest.bytes()?)?)?;
        rest.expect(b':')?;
        rest.skip_space();
        let value = rest.value()?;
        members.take(key, value);
        if rest.expect(b',').is_none() {
            rest.expect(b'}')?;
            break;
        }
    }
    rest.skip_space();
    members.find_duplicate();
    (rest.at == json.len()).then_some(members)
}

/// What has not been read yet.
struct Rest<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn bytes(&self) -> Option<&'a [u8]> {
        self.json.as_bytes().get(self.at..)
    }

    fn take(&mut self, length: usize) -> Option<&'a str> {
        let part = self.json.get(self.at..self.at + length)?;
        self.at += length;
        Some(part)
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.json.as_bytes().get(self.at) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        (self.json.as_bytes().get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    fn value(&mut self) -> Option<&'a str> {
        let bytes = self.bytes()?;
        if let b'{' | b'[' = bytes.first()? {
            return self.take(nested_len(bytes)?);
        }
        let length = match bytes.first()? {
            b'"' => string_len(bytes)?,
            _ => bytes.iter().position(|byte| b",} \t\r\n".contains(byte))?,
        };
        // What is small is read properly: the id is among it.
        self.take(length).filter(|value| serde_json::from_str::<IgnoredAny>(value).is_ok())
    }
}

/// The length of the string with which `bytes` begin.
fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut at = (bytes.first() == Some(&b'"')).then_some(1)?;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}
