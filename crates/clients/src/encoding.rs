//! The encoding of a text file: UTF-8, with or without a byte order mark. Others are named, never
//! guessed silently.

use std::fmt;

/// An encoding that is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-16, as Windows PowerShell 5 writes it.
    Utf16,
    /// Windows-1251: Russian Windows without Unicode.
    Cp1251,
    /// Not recognised.
    Unknown,
}

/// A text that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the file is {0}, not UTF-8; save it as UTF-8 in your editor, or convert it: {fix}", fix = .0.fix())]
pub struct NotUtf8(pub Encoding);

impl Encoding {
    fn fix(self) -> &'static str {
        match self {
            Self::Utf16 => "`iconv -f UTF-16 -t UTF-8 OLD > NEW`",
            Self::Cp1251 => "`iconv -f CP1251 -t UTF-8 OLD > NEW`",
            Self::Unknown => "`iconv -f ITS_ENCODING -t UTF-8 OLD > NEW`",
        }
    }

    /// The encoding of bytes that are not UTF-8, as far as it can be recognised.
    fn of(bytes: &[u8]) -> Self {
        let marked = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        // ASCII text in UTF-16 has a zero in every other byte.
        let is_sparse = bytes.chunks(2).any(|pair| pair.contains(&0));
        if marked || is_sparse {
            return Self::Utf16;
        }
        // Cyrillic words are consecutive letters, which Western texts do not have.
        let letter = |byte: &u8| matches!(byte, 0xc0..=0xff | 0xa8 | 0xb8);
        let high = bytes.iter().filter(|byte| **byte >= 0x80).count();
        let letters = bytes.iter().filter(|byte| letter(byte)).count();
        let pairs = bytes.windows(2).filter(|pair| pair.iter().all(letter)).count();
        if pairs > 0 && letters * 10 >= high * 9 { Self::Cp1251 } else { Self::Unknown }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf16 => "UTF-16",
            Self::Cp1251 => "Windows-1251 (cp1251)",
            Self::Unknown => "in an encoding that is not recognised",
        })
    }
}

/// The text of a file. A byte order mark stays in it.
pub fn text_of(bytes: Vec<u8>) -> Result<String, NotUtf8> {
    if bytes.contains(&0) {
        return Err(NotUtf8(Encoding::of(&bytes)));
    }
    String::from_utf8(bytes).map_err(|error| NotUtf8(Encoding::of(error.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_named() {
        let utf16: Vec<u8> = "{\"a\": 1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = [&[0xff, 0xfe][..], &utf16].concat();
        // «Сервер» in cp1251.
        let cp1251 = b"{\"name\": \"\xd1\xe5\xf0\xe2\xe5\xf0\"}".to_vec();
        for (bytes, expected) in [
            (utf16, Err(NotUtf8(Encoding::Utf16))),
            (marked, Err(NotUtf8(Encoding::Utf16))),
            (cp1251, Err(NotUtf8(Encoding::Cp1251))),
            (vec![b'{', 0x80, 0x81, b'}'], Err(NotUtf8(Encoding::Unknown))),
            ("\u{feff}Сервер".into(), Ok("\u{feff}Сервер".to_owned())),
        ] {
            assert_eq!(text_of(bytes), expected);
        }
        let shown = NotUtf8(Encoding::Cp1251).to_string();
        assert!(shown.contains("cp1251") && shown.contains("iconv -f CP1251"), "{shown}");
    }
}
