//! Exact numbers: JSON numbers compared by value from their spelling, and amounts that counters sum.
//!
//! Invariant: `1`, `1.0` and `10e-1` are equal, `0.1 + 0.2` is `0.3`, and a sum that would overflow
//! counts as over every limit.
//! Invariant: binary floating point is used only to find out what readers that round would see; a
//! comparison holds if it holds by both readings.

use std::{cmp::Ordering, fmt};

use toolgate_json::is_number;

/// A JSON number as spelled, ready to be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    /// Leading zeros of `whole` followed by `fraction`.
    zeros: usize,
    /// Power of ten of the first significant digit, plus one.
    magnitude: i64,
}

/// Exponents beyond this are refused: no two of them could be told apart safely.
const MAX_EXPONENT: i64 = 1_000_000_000;

impl<'a> Number<'a> {
    /// `None` for anything but a JSON number with a sane exponent.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if !is_number(text) {
            return None;
        }
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i64 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
        if exponent.abs() > MAX_EXPONENT {
            return None;
        }
        let (whole, fraction) = (whole.as_bytes(), fraction.as_bytes());
        let zeros = whole.iter().chain(fraction).take_while(|d| **d == b'0').count();
        let length = |n: usize| i64::try_from(n).unwrap_or(i64::MAX / 4);
        let magnitude = length(whole.len()) - length(zeros) + exponent;
        Some(Self { negative, whole, fraction, zeros, magnitude })
    }

    /// How two spellings compare by exact value; `None` if one of them is not a number.
    pub(crate) fn compare_texts(a: &str, b: &str) -> Option<Ordering> {
        // Most numbers are short and whole, and the machine compares those by itself.
        if let (Some(a), Some(b)) = (short_integer(a), short_integer(b)) {
            return Some(a.cmp(&b));
        }
        Some(Number::parse(a)?.compare(&Number::parse(b)?))
    }

    /// How two spellings compare, as far as `holds` tells: by exact value, and by the IEEE 754
    /// doubles that many readers make of both. `None` if the two disagree, or if one of them is no
    /// number that a double holds.
    pub(crate) fn agrees(a: &str, b: &str, holds: impl Fn(Ordering) -> bool) -> Option<bool> {
        if let (Some(a), Some(b)) = (short_integer(a), short_integer(b)) {
            return Some(holds(a.cmp(&b)));
        }
        let exact = holds(Number::parse(a)?.compare(&Number::parse(b)?));
        let rounded = holds(double(a)?.partial_cmp(&double(b)?)?);
        (exact == rounded).then_some(exact)
    }

    /// Whether the spelling is a number that every reader can hold, exactly or rounded.
    pub(crate) fn is_held(text: &str) -> bool {
        short_integer(text).is_some() || double(text).is_some()
    }

    /// The value of an integer that no reader rounds.
    pub(crate) fn whole(text: &str) -> Option<String> {
        let whole = Number::parse(text)?.integer()?;
        let rounded = format!("{:.0}", double(text)?);
        let same = rounded == whole || (whole == "0" && rounded == "-0");
        same.then_some(whole)
    }

    fn is_zero(&self) -> bool {
        self.zeros == self.whole.len() + self.fraction.len()
    }

    /// Significant digits, most significant first.
    fn digits(&self) -> impl Iterator<Item = u8> + '_ {
        self.whole.iter().chain(self.fraction).copied().skip(self.zeros)
    }

    pub(crate) fn compare(&self, other: &Number<'_>) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return sign(!other.negative),
            (false, true) => return sign(self.negative),
            (false, false) => {}
        }
        if self.negative != other.negative {
            return sign(self.negative);
        }
        let by_size = self.magnitude.cmp(&other.magnitude).then_with(|| self.compare_digits(other));
        if self.negative { by_size.reverse() } else { by_size }
    }

    fn compare_digits(&self, other: &Number<'_>) -> Ordering {
        let (mut mine, mut theirs) = (self.digits(), other.digits());
        loop {
            match (mine.next(), theirs.next()) {
                (None, None) => return Ordering::Equal,
                (a, b) => match a.unwrap_or(b'0').cmp(&b.unwrap_or(b'0')) {
                    Ordering::Equal => {}
                    unequal => return unequal,
                },
            }
        }
    }

    /// One spelling for each value: digits without zeros at either end, and a power of ten.
    pub(crate) fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let mut digits: Vec<u8> = self.digits().collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        let power = self.magnitude - i64::try_from(digits.len()).unwrap_or(i64::MAX / 4);
        let sign = if self.negative { "-" } else { "" };
        let digits = String::from_utf8_lossy(&digits);
        if power == 0 { format!("{sign}{digits}") } else { format!("{sign}{digits}e{power}") }
    }

    /// A whole number's one spelling without an exponent, if it is short enough to write out.
    pub(crate) fn integer(&self) -> Option<String> {
        if self.is_zero() {
            return Some("0".to_owned());
        }
        let length = usize::try_from(self.magnitude).ok().filter(|n| *n <= 256)?;
        let digits: Vec<u8> = self.digits().collect();
        if digits.iter().skip(length).any(|d| *d != b'0') {
            return None;
        }
        let mut out = String::from(if self.negative { "-" } else { "" });
        out.extend(digits.into_iter().chain(std::iter::repeat(b'0')).take(length).map(char::from));
        Some(out)
    }
}

/// The double that readers make of a number; `None` if it is too large or too small for one.
fn double(text: &str) -> Option<f64> {
    let number = Number::parse(text)?;
    let double: f64 = text.parse().ok()?;
    (double.is_finite() && (double != 0.0 || number.is_zero())).then_some(double)
}

/// The value of a JSON number without fraction and exponent that surely fits.
fn short_integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        // No JSON, or zero itself; fifteen digits always fit, into a double too.
        [] | [b'0', _, ..] => return None,
        long if long.len() > 15 => return None,
        _ => {}
    }
    let mut value = 0_i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

fn sign(less: bool) -> Ordering {
    if less { Ordering::Less } else { Ordering::Greater }
}

/// A non-negative exact decimal that counters add up: up to 10²⁰, with up to 18 decimal places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u128);

/// Why a number cannot be added to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountError {
    /// Not a JSON number.
    NotANumber,
    /// Below zero: it would refill the counter.
    Negative,
    /// More than 18 decimal places.
    TooFine,
    /// Above 10²⁰.
    TooLarge,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount(0);
    /// One call.
    pub const ONE: Amount = Amount(UNIT);
    /// The largest amount; every sum that would pass it is refused.
    pub const MAX: Amount = Amount(100_000_000_000_000_000_000 * UNIT);

    /// A whole number.
    pub fn whole(n: u64) -> Self {
        Amount(u128::from(n) * UNIT)
    }

    /// Reads a JSON number, exactly.
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let number = Number::parse(text).ok_or(AmountError::NotANumber)?;
        if number.is_zero() {
            return Ok(Self::ZERO);
        }
        if number.negative {
            return Err(AmountError::Negative);
        }
        if number.magnitude > 21 {
            return Err(AmountError::TooLarge);
        }
        let mut value: u128 = 0;
        // The place of the next digit, counted in units of 10⁻¹⁸.
        let mut place = number.magnitude + 18;
        for digit in number.digits() {
            place -= 1;
            match u32::try_from(place) {
                Ok(power) => {
                    // 4·10²⁰ and more do not fit into the units either.
                    let part = 10u128.pow(power).checked_mul(u128::from(digit - b'0'));
                    let sum = part.and_then(|part| value.checked_add(part));
                    value = sum.ok_or(AmountError::TooLarge)?;
                }
                Err(_) if digit == b'0' => {}
                Err(_) => return Err(AmountError::TooFine),
            }
        }
        if value > Self::MAX.0 { Err(AmountError::TooLarge) } else { Ok(Self(value)) }
    }

    /// The sum, or `None` when it passes [`Amount::MAX`].
    pub fn plus(self, other: Self) -> Option<Self> {
        let sum = Self(self.0.checked_add(other.0)?);
        (sum <= Self::MAX).then_some(sum)
    }

    /// The difference, not below zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    pub(crate) fn is_whole(self) -> bool {
        self.0.is_multiple_of(UNIT)
    }
}

const UNIT: u128 = 1_000_000_000_000_000_000;

impl serde::Serialize for Amount {
    /// An exact JSON number.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        serde_json::value::RawValue::from_string(self.to_string())
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / UNIT, self.0 % UNIT);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let fraction = format!("{rest:018}");
        write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests;
