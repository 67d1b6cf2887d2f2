//! Whole numbers, sizes, and the bounds that settings put on them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::problem::code;
use crate::reader::{At, Read, Reader};
use crate::syntax::{Kind, Node};

/// A value with bounds.
pub(crate) trait Bounded: Copy + PartialOrd {
    /// Its spelling in the file.
    fn written(self) -> String;
}

/// The value if it is within the bounds; else, after a report, the default.
pub(crate) fn within<T: Bounded>(
    value: Option<At<T>>,
    (least, most): (T, T),
    default: T,
    reader: &mut Reader<'_>,
) -> T {
    let Some(At { value, span }) = value else { return default };
    if (least..=most).contains(&value) {
        return value;
    }
    let message = format!("`{}` is out of range", value.written());
    let hint = format!("from `{}` to `{}`", least.written(), most.written());
    reader.error_hint(code::OUT_OF_RANGE, span, message, hint);
    default
}

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Whole(pub(crate) u64);

impl Bounded for Whole {
    fn written(self) -> String {
        self.0.to_string()
    }
}

impl Read for Whole {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if let Kind::Scalar(scalar) = &node.kind {
            if scalar.plain
                && let Some(number) = digits(&scalar.text)
            {
                return Some(Self(number));
            }
            if scalar.text.parse::<f64>().is_ok() && scalar.plain {
                let hint = "without sign, point or exponent";
                reader.error_hint(code::INVALID_VALUE, node.span, "not a whole number", hint);
                return None;
            }
        }
        reader.wrong_type(node, "a whole number", None);
        None
    }
}

impl JsonSchema for Whole {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Whole".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0 })
    }
}

/// A number of bytes: `4MiB`, `512KiB`, `1048576`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Size(pub(crate) u64);

const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

impl Size {
    pub(crate) const fn kib(count: u64) -> Self {
        Self(count << 10)
    }
    pub(crate) const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(bytes) = digits(text) {
            return Some(Self(bytes));
        }
        let (number, shift) = UNITS
            .iter()
            .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?.trim_end(), *shift)))?;
        Some(Self(digits(number)?.checked_mul(1 << shift)?))
    }
}

impl Bounded for Size {
    fn written(self) -> String {
        let unit = UNITS.iter().find(|(_, shift)| self.0 > 0 && self.0.trailing_zeros() >= *shift);
        match unit {
            Some((_, 0)) | None => self.0.to_string(),
            Some((unit, shift)) => format!("{}{unit}", self.0 >> shift),
        }
    }
}

impl Read for Size {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Kind::Scalar(scalar) = &node.kind else {
            reader.wrong_type(node, "a size", Some(SIZE_HINT.to_owned()));
            return None;
        };
        let size = Self::parse(&scalar.text);
        if size.is_none() {
            let message = format!("`{}` is not a size", scalar.text);
            reader.error_hint(code::INVALID_VALUE, node.span, message, SIZE_HINT);
        }
        size
    }
}

const SIZE_HINT: &str = "write `4MiB`, `512KiB` or a number of bytes";

impl JsonSchema for Size {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "minimum": 0,
            "pattern": "^[0-9]+ *(B|KiB|MiB|GiB)?$",
        })
    }
}

/// Decimal digits and nothing else.
pub(crate) fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("4MiB", Some(4 << 20)),
            ("4 MiB", Some(4 << 20)),
            ("512KiB", Some(512 << 10)),
            ("2GiB", Some(2 << 30)),
            ("17B", Some(17)),
            ("4MB", None),
            ("MiB", None),
            ("-1", None),
            ("1.5MiB", None),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("18446744073709551615KiB", None),
        ] {
            assert_eq!(Size::parse(text).map(|size| size.0), bytes, "{text}");
        }
        for size in [Size::mib(4), Size::kib(512), Size(17), Size(0), Size(1 << 30)] {
            assert_eq!(Size::parse(&size.written()), Some(size));
        }
    }
}
