//! Spellings of numbers that readers of YAML disagree about.

/// Whether some YAML reader takes a text that is not a JSON number for a number: `010`, `0x1F`,
/// `1_000`, `+5`, `.5`, `5.`, `.inf`, `.nan`.
pub(crate) fn is_ambiguous(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '_') {
        return false;
    }
    let lower = rest.to_ascii_lowercase();
    if matches!(lower.as_str(), ".inf" | ".nan") {
        return true;
    }
    let radix = |prefix: &str, ok: fn(&u8) -> bool| {
        lower.strip_prefix(prefix).is_some_and(|d| !d.is_empty() && d.as_bytes().iter().all(ok))
    };
    if radix("0x", u8::is_ascii_hexdigit) || radix("0o", u8::is_ascii_digit) {
        return true;
    }
    let plain: String = lower.chars().filter(|c| *c != '_').collect();
    let starts = plain.starts_with(|c: char| c.is_ascii_digit())
        || (plain.starts_with('.') && plain.len() > 1);
    starts
        && plain.bytes().any(|b| b.is_ascii_digit())
        && plain.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'e')
        && plain.bytes().filter(|b| *b == b'.').count() <= 1
        && plain.bytes().filter(|b| *b == b'e').count() <= 1
        && !plain.ends_with('e')
}

#[cfg(test)]
mod tests {
    use super::is_ambiguous;

    #[test]
    fn spellings_that_readers_disagree_about_are_found() {
        for text in
            ["010", "0x1F", "0o17", "1_000", "_1", "+5", ".5", "5.", ".inf", "-.inf", ".NaN"]
        {
            assert!(is_ambiguous(text), "{text}");
        }
        for text in ["", "-", ".", "_", "a1", "1a", "0x", "1.2.3", "1e", "e1", "get_user", "1-2"] {
            assert!(!is_ambiguous(text), "{text}");
        }
    }
}
