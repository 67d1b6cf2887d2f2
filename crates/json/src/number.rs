//! The grammar of JSON numbers.

/// Whether `text` is `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`.
pub fn is_number(text: &str) -> bool {
    let rest = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((m, e)) => (m, Some(e)),
        None => (rest, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((w, f)) => (w, Some(f)),
        None => (mantissa, None),
    };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

#[cfg(test)]
mod tests {
    use super::is_number;

    #[test]
    fn numbers_of_the_grammar() {
        for text in ["0", "-0", "10", "1.50", "-1.5e2", "0E+7", "1e-400"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["", "-", "01", "+1", ".5", "1.", "1e", "1e+", "0x1", "1_0", " 1", "NaN"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
