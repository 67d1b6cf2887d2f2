//! Cuts prose into words, marks that part lists, and ends of sentences.

/// A piece of prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A word. Identifiers are one word: `delete_it`.
    Word(&'a str),
    /// Something that parts a list: `,`, `/`, `&`, `(`.
    Comma,
    /// The end of a sentence or line.
    End,
}

/// A walk through a text in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next word, if it comes before any mark.
    pub(crate) fn peek_word(&self) -> Option<&'a str> {
        match self.clone().next() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Whether a colon comes next, also behind emphasis: `**Tip**: …`.
    pub(crate) fn is_at_colon(&self) -> bool {
        self.rest().trim_start_matches(['*', '_', '`', ' ']).starts_with(':')
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let ascii = rest.bytes().position(|byte| !is_word_byte(byte)).unwrap_or(rest.len());
        let end = match rest.as_bytes().get(ascii) {
            Some(byte) if !byte.is_ascii() => {
                rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
            }
            _ => ascii,
        };
        self.at += end;
        rest.get(..end).unwrap_or_default().trim_end_matches('\'')
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            let is_start = if byte.is_ascii() {
                byte.is_ascii_alphanumeric() || byte == b'_'
            } else {
                self.rest().chars().next().is_some_and(char::is_alphanumeric)
            };
            if is_start {
                return Some(Token::Word(self.word()));
            }
            self.at += self.rest().chars().next().map_or(1, char::len_utf8);
            match byte {
                b',' | b'/' | b'&' | b'(' => return Some(Token::Comma),
                b'!' | b'?' | b';' | b':' | b'\n' => return Some(Token::End),
                b'.' if self.rest().bytes().next().is_none_or(|b| !b.is_ascii_alphanumeric()) => {
                    return Some(Token::End);
                }
                _ => {}
            }
        }
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'\''
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\'' || c == '’'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_cut() {
        let shown: Vec<String> = Tokens::of("reads a.b, it's x_y/удали. end\nnext (no)")
            .map(|token| match token {
                Token::Word(word) => word.to_owned(),
                Token::Comma => ",".to_owned(),
                Token::End => ".".to_owned(),
            })
            .collect();
        assert_eq!(shown.join(" "), "reads a b , it's x_y , удали . end . next , no");
        assert_eq!(Tokens::of("a b").next(), Some(Token::Word("a")));
        assert_eq!(Tokens::of("  a").peek_word(), Some("a"));
        assert_eq!(Tokens::of(", a").peek_word(), None);
    }
}
