//! Settings with a fixed set of values.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::problem::code;
use crate::reader::{Read, Reader};
use crate::suggest;
use crate::syntax::{Kind, Node};

/// Defines an enum whose variants are keywords of the file: reader, schema, documentation.
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $word:literal $(| $other:literal)*,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            const WORDS: &'static [&'static str] = &[$($word, $($other,)*)*];

            /// Its keyword in the file.
            $vis const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl crate::reader::Read for $name {
            fn read(node: &crate::syntax::Node, reader: &mut crate::reader::Reader<'_>) -> Option<Self> {
                match crate::value::one_of(node, Self::WORDS, reader)? {
                    $($word $(| $other)* => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "enum": Self::WORDS })
            }
        }
    };
}

pub(crate) use words;

/// A type of another crate whose values have keywords in the file.
pub(crate) trait Keyword: Copy + 'static {
    /// Its values with their keywords.
    const WORDS: &'static [(&'static str, Self)];
}

/// A value that is written as a keyword.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word<T>(pub(crate) T);

impl<T: Keyword> Word<T> {
    fn words() -> Vec<&'static str> {
        T::WORDS.iter().map(|(word, _)| *word).collect()
    }
}

impl<T: Keyword> Read for Word<T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let written = one_of(node, &Self::words(), reader)?;
        T::WORDS.iter().find(|(word, _)| *word == written).map(|(_, value)| Self(*value))
    }
}

impl<T: Keyword> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": Self::words() })
    }
}

/// The scalar if it is one of `words`; else `None`, after a report.
pub(crate) fn one_of<'a>(
    node: &'a Node,
    words: &[&str],
    reader: &mut Reader<'_>,
) -> Option<&'a str> {
    let listed = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let Kind::Scalar(scalar) = &node.kind else {
        reader.wrong_type(node, &format!("one of {listed}"), None);
        return None;
    };
    if words.contains(&scalar.text.as_str()) {
        return Some(&scalar.text);
    }
    let hint = suggest::nearest(&scalar.text, words.iter().copied())
        .map_or_else(|| format!("one of {listed}"), |near| format!("did you mean `{near}`?"));
    let message = format!("unknown value `{}`", scalar.text);
    reader.error_hint(code::INVALID_VALUE, node.span, message, hint);
    None
}

/// `true` or `false`; `on` and `off` mean the same (in YAML 1.2 they are strings).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Switch(pub(crate) bool);

impl Read for Switch {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        match one_of(node, &["on", "off", "true", "false"], reader)? {
            "on" | "true" => Some(Self(true)),
            _ => Some(Self(false)),
        }
    }
}

impl JsonSchema for Switch {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Switch".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [true, false, "on", "off"] })
    }
}
