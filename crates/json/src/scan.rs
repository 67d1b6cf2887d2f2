//! Steps through JSON at all depths: brackets and strings, nothing else.
//!
//! serde_json cannot pass over a number without parsing it (`1e400` is an error), so checks of
//! untouched values scan their bytes.
//!
//! Invariant: the text was accepted by serde_json before. A scan does not validate, panic or
//! recurse.
//! Start at [`Scan`].

use smallvec::SmallVec;

use crate::skip::{Escapes, is_blank, string_len};
use crate::walk::Raw;

/// What a scan finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// An object starts.
    Object,
    /// A list starts.
    List,
    /// An object ends.
    ObjectEnd,
    /// A list ends.
    ListEnd,
    /// A key, with its quotes.
    Key(Raw<'a>),
    /// A string that is not a key, with its quotes.
    Text(Raw<'a>),
}

/// An iterator over the steps.
#[derive(Debug)]
pub struct Scan<'a> {
    json: &'a str,
    at: usize,
    /// Whether each open bracket is an object's.
    open: SmallVec<[bool; 64]>,
    /// Whether the next string is a key.
    key_next: bool,
}

impl<'a> Scan<'a> {
    /// A scan of `json` from its start.
    pub fn new(json: &'a str) -> Self {
        Self { json, at: 0, open: SmallVec::new(), key_next: false }
    }

    /// The number of brackets that are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    fn open(&mut self, object: bool) {
        self.open.push(object);
        self.key_next = object;
    }

    #[inline]
    fn string(&mut self) -> Raw<'a> {
        let rest = self.json.get(self.at..).unwrap_or_default();
        let (length, escapes) =
            string_len(rest.as_bytes()).unwrap_or((rest.len(), Escapes::Surrogate));
        self.at += length;
        Raw { text: rest.get(..length).unwrap_or(rest), escapes }
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = Step<'a>;

    #[inline]
    fn next(&mut self) -> Option<Step<'a>> {
        loop {
            let byte = *self.json.as_bytes().get(self.at)?;
            if byte == b'"' {
                let key = std::mem::take(&mut self.key_next);
                let string = self.string();
                return Some(if key { Step::Key(string) } else { Step::Text(string) });
            }
            self.at += 1;
            match byte {
                b'{' => {
                    self.open(true);
                    return Some(Step::Object);
                }
                b'[' => {
                    self.open(false);
                    return Some(Step::List);
                }
                b'}' | b']' => {
                    self.key_next = false;
                    self.open.pop();
                    return Some(if byte == b'}' { Step::ObjectEnd } else { Step::ListEnd });
                }
                b',' => self.key_next = self.open.last() == Some(&true),
                _ => {}
            }
        }
    }
}

/// The text from the bracket on that opens one level more than `limit`, if there is one.
pub fn too_deep(json: &str, limit: usize) -> Option<&str> {
    // Nearly every message has fewer brackets than it may have levels.
    if json.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count() <= limit {
        return None;
    }
    let mut scan = Scan::new(json);
    while let Some(step) = scan.next() {
        if matches!(step, Step::Object | Step::List) && scan.depth() > limit {
            return json.get(scan.at.checked_sub(1)?..);
        }
    }
    None
}

/// The same JSON without blanks between its tokens.
pub fn compact(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let (mut at, mut kept) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let rest = bytes.get(at..).unwrap_or_default();
                at += string_len(rest).map_or(rest.len(), |(length, _)| length);
            }
            byte if is_blank(*byte) => {
                out.push_str(json.get(kept..at).unwrap_or_default());
                at += 1;
                kept = at;
            }
            _ => at += 1,
        }
    }
    out.push_str(json.get(kept..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_at_all_depths() {
        let json = r#"{"a":[1,"x",{"b\n":{}}],"c":"{","d":[]}"#;
        let words: Vec<String> = Scan::new(json)
            .map(|step| match step {
                Step::Object => "{".to_owned(),
                Step::List => "[".to_owned(),
                Step::ObjectEnd => "}".to_owned(),
                Step::ListEnd => "]".to_owned(),
                Step::Key(raw) => format!("key {}", raw.text),
                Step::Text(raw) => format!("text {}", raw.text),
            })
            .collect();
        let expected = [
            "{",
            "key \"a\"",
            "[",
            "text \"x\"",
            "{",
            "key \"b\\n\"",
            "{",
            "}",
            "}",
            "]",
            "key \"c\"",
            "text \"{\"",
            "key \"d\"",
            "[",
            "]",
            "}",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn depth_is_counted_outside_strings() {
        for (json, depth) in [
            ("1", 0),
            ("\"[[[\"", 0),
            ("[]", 1),
            ("[[],[],{}]", 2),
            (r#"{"[{":"]}","\"[":[1]}"#, 2),
            (r#"["\\",["\\\"["]]"#, 2),
        ] {
            assert_eq!(too_deep(json, depth), None, "{json}");
            if let Some(limit) = depth.checked_sub(1) {
                assert!(too_deep(json, limit).is_some(), "{json}");
            }
        }
        assert_eq!(too_deep("[1,[2]]", 1), Some("[2]]"));
    }

    #[test]
    fn blanks_are_removed_and_strings_stay() {
        assert_eq!(compact("{ \"a b\" : [ 1.0 ,\n\t2e5 ] }"), r#"{"a b":[1.0,2e5]}"#);
        assert_eq!(compact(r#""\" x ""#), r#""\" x ""#);
    }
}
