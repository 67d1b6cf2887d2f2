//! Reads the members of an envelope, and the elements of a batch, as raw slices.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use toolgate_json::strict::Fault;
use toolgate_json::walk::Raw;
use toolgate_json::{imitates, object, text};

use super::ENVELOPE;

/// The members of one message.
#[derive(Default)]
pub(super) struct Members<'a> {
    pub(super) jsonrpc: Option<&'a str>,
    pub(super) id: Option<&'a str>,
    pub(super) method: Option<&'a str>,
    pub(super) params: Option<&'a str>,
    pub(super) result: Option<&'a str>,
    pub(super) error: Option<&'a str>,
    /// Whether the result has `isError: true`, if that was found.
    pub(super) is_error: Option<bool>,
    others: Vec<Other<'a>>,
    /// The first problem with the keys. Parsing continues, so that the id is found.
    fault: Option<Fault<'a>>,
    id_twice: bool,
}

/// A member that the protocol does not name.
struct Other<'a> {
    name: Cow<'a, str>,
    key: &'a str,
    value: &'a str,
}

impl<'a> Members<'a> {
    pub(super) fn read(json: &'a str) -> Result<Self, serde_json::Error> {
        let mut members = Self::default();
        object::for_each(json, |key, value| members.take(key, value))?;
        members.find_duplicate();
        Ok(members)
    }

    pub(super) fn fault(&self) -> Option<&Fault<'a>> {
        self.fault.as_ref()
    }

    /// The values of members that the protocol does not name.
    pub(super) fn others(&self) -> impl Iterator<Item = &'a str> {
        self.others.iter().map(|other| other.value)
    }

    /// The id under which a rejection can be answered.
    pub(super) fn request_id(&self) -> Option<&'a str> {
        let answer = self.result.is_some() || self.error.is_some();
        self.id.filter(|id| !answer && !self.id_twice && is_id(id))
    }

    pub(super) fn take(&mut self, key: &'a str, value: &'a str) {
        let Ok(name) = Raw::of(key).and_then(Raw::string) else {
            self.fault.get_or_insert_with(|| Fault::surrogate(key));
            return;
        };
        let slot = match &*name {
            "jsonrpc" => &mut self.jsonrpc,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => {
                if name.chars().any(char::is_control) {
                    self.fault.get_or_insert_with(|| Fault::control(key));
                } else if let Some(of) = imitates(&name, &ENVELOPE) {
                    self.fault.get_or_insert_with(|| Fault::imitation(key, &name, of));
                }
                self.others.push(Other { name, key, value });
                return;
            }
        };
        if slot.replace(value).is_some() {
            self.id_twice |= name == "id";
            self.fault.get_or_insert_with(|| Fault::duplicate(key, &name));
        }
    }

    pub(super) fn find_duplicate(&mut self) {
        self.others.sort_unstable_by(|a, b| {
            a.name.cmp(&b.name).then_with(|| a.key.as_ptr().cmp(&b.key.as_ptr()))
        });
        let same = self.others.windows(2).find_map(|pair| match pair {
            [a, b] if a.name == b.name => Some(b),
            _ => None,
        });
        if let Some(Other { name, key, .. }) = same {
            self.fault.get_or_insert_with(|| Fault::duplicate(key, name));
        }
    }
}

/// Whether a raw value can be an id. A string with a lone surrogate cannot: parsers disagree about
/// its value.
pub(crate) fn is_id(raw: &str) -> bool {
    match raw.as_bytes().first() {
        Some(b'"') => text(raw).is_some(),
        Some(b'-' | b'0'..=b'9') => true,
        _ => false,
    }
}

/// The elements of a batch.
pub(super) struct Elements<'f> {
    max: usize,
    too_many: &'f mut bool,
}

impl Elements<'_> {
    /// `None` if there are more than `max`; parsing ends there.
    pub(super) fn read(json: &str, max: usize) -> Result<Option<Vec<&str>>, serde_json::Error> {
        let mut too_many = false;
        let mut reader = serde_json::Deserializer::from_str(json);
        let read = reader.deserialize_seq(Elements { max, too_many: &mut too_many });
        if too_many {
            return Ok(None);
        }
        let elements = read?;
        reader.end()?;
        Ok(Some(elements))
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element::<&RawValue>()? {
            if elements.len() == self.max {
                *self.too_many = true;
                return Err(A::Error::custom("too many messages"));
            }
            elements.push(element.get());
        }
        Ok(elements)
    }
}
