//! Durations as people write them: `45s`, `15m`, `1h30m`, `100ms`, `7d`.
//!
//! Grammar: one or more whole numbers, each with a unit of `d`, `h`, `m`, `s`, `ms`, larger units
//! first, each at most once, no spaces.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::number::{Bounded, digits};
use crate::problem::code;
use crate::reader::{Read, Reader};
use crate::syntax::{Kind, Node};

/// A duration in the file.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Period(pub(crate) Duration);

/// Largest first: the order in which they may appear.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

impl Period {
    pub(crate) const fn millis(count: u64) -> Self {
        Self(Duration::from_millis(count))
    }
    pub(crate) const fn secs(count: u64) -> Self {
        Self(Duration::from_secs(count))
    }
    pub(crate) const fn days(count: u64) -> Self {
        Self::secs(count * 86_400)
    }

    fn parse(text: &str) -> Option<Self> {
        let (mut rest, mut units, mut total) = (text, UNITS.iter(), 0_u64);
        while !rest.is_empty() {
            let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
            let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
            let (unit, next) = after.split_at(end);
            // Taking from one iterator keeps the units in order and each at most once.
            let (_, millis) = units.find(|(name, _)| *name == unit)?;
            total = total.checked_add(
                digits(number).filter(|_| !number.is_empty())?.checked_mul(*millis)?,
            )?;
            rest = next;
        }
        (!text.is_empty()).then_some(Self::millis(total))
    }
}

impl Bounded for Period {
    fn written(self) -> String {
        let (mut left, mut text) = (self.0.as_millis(), String::new());
        for (unit, millis) in UNITS {
            let count = left / u128::from(millis);
            left %= u128::from(millis);
            if count > 0 {
                text = format!("{text}{count}{unit}");
            }
        }
        if text.is_empty() { "0s".to_owned() } else { text }
    }
}

impl Read for Period {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Kind::Scalar(scalar) = &node.kind else {
            reader.wrong_type(node, "a duration", Some(HINT.to_owned()));
            return None;
        };
        let period = Self::parse(&scalar.text);
        if period.is_none() {
            let text = &scalar.text;
            if digits(text).is_some() {
                let hint = format!("write `{text}s`, or `{text}ms` if milliseconds are meant");
                reader.error_hint(
                    code::INVALID_VALUE,
                    node.span,
                    format!("`{text}` has no unit"),
                    hint,
                );
            } else {
                let message = format!("`{text}` is not a duration");
                reader.error_hint(code::INVALID_VALUE, node.span, message, HINT);
            }
        }
        period
    }
}

const HINT: &str = "write `45s`, `15m`, `1h30m`, `100ms` or `7d`";

impl JsonSchema for Period {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(?=[0-9])([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("45s", Some(45_000)),
            ("15m", Some(900_000)),
            ("1h30m", Some(5_400_000)),
            ("100ms", Some(100)),
            ("7d", Some(604_800_000)),
            ("1m500ms", Some(60_500)),
            ("0s", Some(0)),
            ("", None),
            ("45", None),
            ("s", None),
            ("30m1h", None),
            ("1h1h", None),
            ("1h 30m", None),
            ("-1s", None),
            ("1.5h", None),
            ("1w", None),
            ("99999999999999999999d", None),
            ("213503982335d", None),
        ] {
            assert_eq!(Period::parse(text), millis.map(Period::millis), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(millis in 0_u64..100_000_000_000) {
            let period = Period::millis(millis);
            prop_assert_eq!(Period::parse(&period.written()), Some(period));
        }
    }
}
