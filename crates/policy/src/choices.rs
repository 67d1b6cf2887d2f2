//! The list of an `in` or `not_in`, with an index of the members that a value could equal, so that the
//! cost of a lookup does not grow with the list.
//!
//! Invariant: every member that equals a value, or that cannot be compared with it, is among its
//! candidates. The caller compares them.

use std::{
    collections::{HashMap, HashSet},
    ops::Deref,
};

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::{
    json::Value,
    number::Number,
    scalar::{Scalar, print_number, print_scalar},
};

/// Shorter lists are compared one by one.
const SHORT: usize = 16;

/// A list of values.
#[derive(Debug)]
pub(crate) struct Choices {
    list: Vec<Scalar>,
    /// Absent for a short list.
    index: Option<Index>,
}

#[derive(Debug, Default)]
struct Index {
    /// By the text that Intercept's rules compare; that of a string is the string.
    texts: HashMap<String, Places, FixedState>,
    /// By the IEEE 754 double they are read as: numbers of equal value have the same.
    numbers: HashMap<u64, Places, FixedState>,
    /// Numbers that a double cannot hold; they are always candidates.
    always: Places,
    /// A number of the list. It is always a candidate, so that an ambiguous number is detected.
    number: Option<u32>,
}

type Places = SmallVec<[u32; 2]>;

impl Choices {
    pub(crate) fn new(list: Vec<Scalar>) -> Self {
        if list.len() <= SHORT {
            return Self { list, index: None };
        }
        let mut index = Index::default();
        for (place, scalar) in list.iter().enumerate() {
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            index.texts.entry(print_scalar(scalar)).or_default().push(place);
            if let Scalar::Number(text) = scalar {
                index.number = index.number.or(Some(place));
                match double(text) {
                    Some(bits) => index.numbers.entry(bits).or_default().push(place),
                    None => index.always.push(place),
                }
            }
        }
        Self { list, index: Some(index) }
    }

    /// The members that may equal a value, each perhaps more than once.
    pub(crate) fn candidates(&self, value: &Value<'_>) -> impl Iterator<Item = &Scalar> {
        let (mut found, mut all) = (SmallVec::<[u32; 8]>::new(), [].as_slice());
        match &self.index {
            None => all = self.list.as_slice(),
            Some(index) => index.find(value, &mut found),
        }
        let place = |place: u32| usize::try_from(place).ok().and_then(|at| self.list.get(at));
        all.iter().chain(found.into_iter().filter_map(place))
    }
}

impl Index {
    fn find(&self, value: &Value<'_>, found: &mut SmallVec<[u32; 8]>) {
        found.extend_from_slice(&self.always);
        let mut add = |places: Option<&Places>| found.extend(places.into_iter().flatten().copied());
        match value {
            Value::Null => add(self.texts.get("<nil>")),
            Value::Bool(flag) => add(self.texts.get(if *flag { "true" } else { "false" })),
            Value::String(text) => add(self.texts.get(&**text)),
            Value::Number(text) => {
                add(double(text).and_then(|bits| self.numbers.get(&bits)));
                add(self.texts.get(&print_number(text)));
                found.extend(self.number);
            }
            Value::List(_) | Value::Object(_) | Value::Words(_) => {}
        }
    }
}

/// The bits of the double that a number is read as; `None` if none holds it.
fn double(text: &str) -> Option<u64> {
    Number::parse(text)?;
    let double: f64 = text.parse().ok()?;
    // Both zeros are one number.
    let bits = if double == 0.0 { 0 } else { double.to_bits() };
    double.is_finite().then_some(bits)
}

/// The hosts of a `host_in`, in the form URLs give them.
#[derive(Debug)]
pub(crate) struct Hosts {
    list: Vec<String>,
    set: HashSet<String, FixedState>,
}

impl Hosts {
    pub(crate) fn new(list: Vec<String>) -> Self {
        Self { set: list.iter().cloned().collect(), list }
    }

    pub(crate) fn has(&self, host: &str) -> bool {
        self.set.contains(host)
    }
}

impl Deref for Hosts {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.list
    }
}

impl Deref for Choices {
    type Target = [Scalar];

    fn deref(&self) -> &[Scalar] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::{Choices, SHORT};
    use crate::{intercept, json::Value, scalar::Scalar, truth::among};

    fn scalars(rolled: u64) -> Vec<Scalar> {
        let mut list = vec![
            Scalar::Null,
            Scalar::Bool(true),
            Scalar::String("5".into()),
            Scalar::String("true".into()),
            Scalar::String("<nil>".into()),
        ];
        for n in 0..rolled {
            let number = [
                n.to_string(),
                format!("{n}.0"),
                format!("{n}e1"),
                format!("-{n}"),
                format!("900719925474099{n}"),
            ];
            list.push(Scalar::Number(number[usize::try_from(n % 5).unwrap()].clone()));
            list.push(Scalar::String(format!("t{n}")));
        }
        list
    }

    #[test]
    fn a_lookup_finds_what_a_walk_finds() {
        let texts = ["t1", "t999", "5", "true", "", "<nil>", "1"];
        let numbers =
            ["5", "5.0", "50e-1", "-0", "0", "0.0", "9007199254740993", "1e400", "1e-400"];
        for rolled in [0, 4, 400] {
            let choices = Choices::new(scalars(rolled));
            assert_eq!(choices.index.is_some(), choices.len() > SHORT);
            let texts = texts.iter().map(|text| Value::String((*text).into()));
            let numbers = numbers.iter().map(|text| Value::Number(text));
            let words = [Value::Null, Value::Bool(true), Value::Bool(false), Value::List("[]")];
            for value in texts.chain(numbers).chain(words) {
                let walked = among(&value, choices.iter());
                let found = among(&value, choices.candidates(&value));
                assert_eq!(found, walked, "{value:?} of {rolled}");
                let walked = choices.iter().any(|wanted| intercept::equal(&value, wanted));
                let found = choices.candidates(&value).any(|w| intercept::equal(&value, w));
                assert_eq!(found, walked, "printed {value:?} of {rolled}");
                let few = choices.candidates(&value).count();
                assert!(few <= SHORT + 5, "{value:?} of {rolled} has {few} candidates");
            }
        }
    }
}
