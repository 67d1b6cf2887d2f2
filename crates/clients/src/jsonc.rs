//! JSON with comments and trailing commas, as editors and clients accept it: a tree with positions.
//!
//! Invariant: every position is a boundary of characters of the text that was parsed.

use crate::value::FileValue;

/// Nested deeper, a file is refused.
const MAX_DEPTH: usize = 64;

/// A value and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Object(Vec<Member>),
    List(Vec<Node>),
    Text(String),
    Number(String),
    Bool(bool),
    Null,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    /// Where the key begins.
    pub(crate) start: usize,
    pub(crate) key: String,
    pub(crate) value: Node,
}

/// Why a text is not JSON with comments: the position, and what is expected there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) at: usize,
    pub(crate) expected: &'static str,
}

impl Node {
    pub(crate) fn member(&self, key: &str) -> Option<&Member> {
        match &self.kind {
            Kind::Object(members) => members.iter().find(|member| member.key == key),
            _ => None,
        }
    }

    pub(crate) fn value(&self) -> FileValue {
        match &self.kind {
            Kind::Object(members) => {
                let members = members.iter();
                FileValue::Object(members.map(|it| (it.key.clone(), it.value.value())).collect())
            }
            Kind::List(items) => FileValue::List(items.iter().map(Node::value).collect()),
            Kind::Text(text) => FileValue::Text(text.clone()),
            Kind::Number(written) => FileValue::Number(written.clone()),
            Kind::Bool(value) => FileValue::Bool(*value),
            Kind::Null => FileValue::Null,
        }
    }
}

/// Parses a whole text.
pub(crate) fn parse(text: &str) -> Result<Node, Malformed> {
    let mut parser = Parser { text, at: 0 };
    parser.skip()?;
    let node = parser.value(0)?;
    parser.skip()?;
    if parser.at == text.len() { Ok(node) } else { Err(parser.expected("the end of the file")) }
}

/// The position after blanks and comments from `at` on.
pub(crate) fn skip_from(text: &str, at: usize) -> usize {
    let mut parser = Parser { text, at };
    // An open comment ends with the text.
    if parser.skip().is_err() { text.len() } else { parser.at }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn expected(&self, expected: &'static str) -> Malformed {
        Malformed { at: self.at, expected }
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Skips blanks and comments.
    fn skip(&mut self) -> Result<(), Malformed> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.at += blanks;
            if self.rest().starts_with("//") {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if self.rest().starts_with("/*") {
                match self.rest().find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return Err(self.expected("the end of a comment, `*/`")),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Malformed> {
        if depth > MAX_DEPTH {
            return Err(self.expected("less nesting"));
        }
        let start = self.at;
        let kind = match self.rest().chars().next() {
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Kind::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            _ if self.eat("true") => Kind::Bool(true),
            _ if self.eat("false") => Kind::Bool(false),
            _ if self.eat("null") => Kind::Null,
            _ => return Err(self.expected("a value")),
        };
        Ok(Node { start, end: self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Malformed> {
        self.at += 1;
        let mut members: Vec<Member> = Vec::new();
        loop {
            self.skip()?;
            if self.eat("}") {
                return Ok(Kind::Object(members));
            }
            let start = self.at;
            if !self.rest().starts_with('"') {
                return Err(self.expected("a key in quotes, or `}`"));
            }
            let key = self.string()?;
            self.skip()?;
            if !self.eat(":") {
                return Err(self.expected("`:`"));
            }
            self.skip()?;
            let value = self.value(depth + 1)?;
            if members.iter().any(|member| member.key == key) {
                return Err(Malformed { at: start, expected: "each key once" });
            }
            members.push(Member { start, key, value });
            self.skip()?;
            if !self.eat(",") && !self.rest().starts_with('}') {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Kind, Malformed> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip()?;
            if self.eat("]") {
                return Ok(Kind::List(items));
            }
            items.push(self.value(depth + 1)?);
            self.skip()?;
            if !self.eat(",") && !self.rest().starts_with(']') {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn string(&mut self) -> Result<String, Malformed> {
        let start = self.at;
        let mut escaped = false;
        let end = self.rest().char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = end else { return Err(self.expected("the end of a string")) };
        self.at += end + 1;
        let raw = self.text.get(start..self.at).unwrap_or_default();
        serde_json::from_str(raw).map_err(|_| Malformed { at: start, expected: "a valid string" })
    }

    fn number(&mut self) -> Result<Kind, Malformed> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
        let written = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().to_owned();
        if serde_json::from_str::<serde_json::Number>(&written).is_err() {
            return Err(self.expected("a number"));
        }
        self.at += written.len();
        Ok(Kind::Number(written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_accepted() {
        let text = "// a\n{ /* b */ \"a\": [1, 2.50, ], // c\n \"ключ\": {\"x\": null,}, }\n// end";
        let node = parse(text).unwrap();
        assert_eq!(node.value().to_string(), r#"{"a": [1, 2.50], "ключ": {"x": null}}"#);
        let member = node.member("ключ").unwrap();
        assert_eq!(text.get(member.value.start..member.value.end), Some("{\"x\": null,}"));
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        for (text, at, expected) in [
            ("", 0, "a value"),
            ("{", 1, "a key in quotes, or `}`"),
            ("{\"a\" 1}", 5, "`:`"),
            ("{\"a\":1 \"b\":2}", 7, "`,` or `}`"),
            ("{} x", 3, "the end of the file"),
            ("/* x", 0, "the end of a comment, `*/`"),
            ("{\"a\":1,\"a\":2}", 7, "each key once"),
            ("[01]", 1, "a number"),
            ("\"abc", 0, "the end of a string"),
            ("[\"\\q\"]", 1, "a valid string"),
        ] {
            assert_eq!(parse(text), Err(Malformed { at, expected }), "{text}");
        }
        assert!(parse(&"[".repeat(100)).is_err());
    }
}
