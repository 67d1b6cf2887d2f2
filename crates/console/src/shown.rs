//! Values as pages show them: times, numbers, hashes, text of strangers.

use jiff::{SignedDuration, Timestamp};
use toolgate_catalog::draw;

use crate::texts::{Language, number};

/// A time. Scripts turn it into the reader's own zone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// RFC 3339.
    pub(crate) iso: String,
    /// For people, in UTC.
    pub(crate) utc: String,
}

impl Moment {
    /// The time of an RFC 3339 text; `None` if there is none.
    pub(crate) fn of(text: Option<&str>) -> Option<Self> {
        let time: Timestamp = text?.parse().ok()?;
        Some(Self::at(time))
    }

    /// This time.
    pub(crate) fn at(time: Timestamp) -> Self {
        Self { iso: time.to_string(), utc: time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string() }
    }
}

/// How long ago something was, in words.
pub(crate) fn ago(language: Language, then: Option<&str>, now: Timestamp) -> String {
    let Some(then) = then.and_then(|text| text.parse::<Timestamp>().ok()) else {
        return String::new();
    };
    duration(language, now.duration_since(then))
}

/// A duration in its largest unit.
pub(crate) fn duration(language: Language, duration: SignedDuration) -> String {
    let seconds = usize::try_from(duration.as_secs().unsigned_abs()).unwrap_or_default();
    let (key, n) = match seconds {
        0..60 => ("span-seconds", seconds),
        60..3_600 => ("span-minutes", seconds / 60),
        3_600..86_400 => ("span-hours", seconds / 3_600),
        _ => ("span-days", seconds / 86_400),
    };
    language.text(key, &[("n", number(n))])
}

/// Text of a server, an agent or a session: hidden characters are drawn, and a long text is cut.
pub(crate) fn foreign(text: &str, most: usize) -> String {
    let drawn = draw(text);
    if drawn.chars().count() <= most {
        return drawn.into_owned();
    }
    drawn.chars().take(most).chain(['…']).collect()
}

/// A word of a command line, quoted for a shell. Names come from strangers too, and people paste
/// commands.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    let drawn = draw(text);
    if !drawn.is_empty() && drawn.chars().all(is_plain) {
        return drawn.into_owned();
    }
    format!("'{}'", drawn.replace('\'', "'\\''"))
}

/// The same, where it could be taken for an option.
pub(crate) fn operand(text: &str) -> String {
    let word = shell_word(text);
    if text.starts_with('-') { format!("-- {word}") } else { word }
}

/// JSON with line breaks and indentation between its tokens; the tokens stay as they are.
pub(crate) fn laid_out(json: &str) -> String {
    let mut shown = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    let mut chars = json.chars().filter(|c| *c != '\r').peekable();
    while let Some(c) = chars.next() {
        if in_string {
            shown.push(c);
            (in_string, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        while chars.peek().is_some_and(char::is_ascii_whitespace) {
            chars.next();
        }
        match c {
            '"' => {
                in_string = true;
                shown.push(c);
            }
            '{' | '[' => {
                shown.push(c);
                if chars.peek().is_some_and(|next| matches!(next, '}' | ']')) {
                    shown.extend(chars.next());
                    continue;
                }
                depth += 1;
                new_line(&mut shown, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut shown, depth);
                shown.push(c);
            }
            ',' => {
                shown.push(c);
                new_line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => shown.push(c),
        }
    }
    shown
}

fn new_line(shown: &mut String, depth: usize) {
    shown.push('\n');
    shown.extend(std::iter::repeat_n("  ", depth.min(32)));
}

/// The first characters of a hash.
pub(crate) fn short_hash(hash: &str) -> String {
    hash.chars().take(12).collect()
}

/// Digits in groups of three.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push('\u{a0}');
        }
        shown.push(digit);
    }
    shown
}

/// A piece of a text, and whether it is marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) is_marked: bool,
}

/// Marks every word that begins like one of `stems`.
pub(crate) fn marked(text: &str, stems: &[String]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut push = |text: &str, is_marked: bool| match pieces.last_mut() {
        Some(last) if last.is_marked == is_marked => last.text.push_str(text),
        _ => pieces.push(Piece { text: text.to_owned(), is_marked }),
    };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = first.is_alphabetic();
        let end = rest.find(|c: char| c.is_alphabetic() != is_word).unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let lower = word.to_lowercase();
        let is_marked = is_word && stems.iter().any(|stem| lower.starts_with(stem.as_str()));
        push(word, is_marked);
        rest = after;
    }
    pieces
}

/// The parts of a text, marked if they are in backticks.
pub(crate) fn coded(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut push = |text: &str, is_marked| {
        if !text.is_empty() {
            pieces.push(Piece { text: text.to_owned(), is_marked });
        }
    };
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('`') {
        let Some((code, after)) = from.split_once('`') else { break };
        push(before, false);
        push(code, true);
        rest = after;
    }
    push(rest, false);
    pieces
}

/// The words that signals name in backticks, without the ending that inflection changes.
pub(crate) fn stems(signals: &[String]) -> Vec<String> {
    let words = signals.iter().filter_map(|signal| signal.split('`').nth(1));
    let words = words.map(str::to_lowercase);
    let stem = |word: String| {
        let cut = match word.chars().last() {
            Some('e' | 'y' | 'ь') => 1,
            Some('т' | 'и') if word.chars().count() > 4 => 2,
            _ => 0,
        };
        let keep = word.chars().count() - cut;
        word.chars().take(keep.max(2)).collect::<String>()
    };
    words.map(stem).filter(|stem| stem.chars().count() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_cut_out_of_a_text() {
        let shown = |text: &str| {
            let mark = |it: Piece| if it.is_marked { format!("[{}]", it.text) } else { it.text };
            coded(text).into_iter().map(mark).collect::<String>()
        };
        assert_eq!(shown("`a` of b takes `c`"), "[a] of b takes [c]");
        assert_eq!(shown("one ` alone"), "one ` alone");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn words_of_a_command_line_are_quoted() {
        let cases = [
            ("read_file", "read_file"),
            ("a b", "'a b'"),
            ("", "''"),
            ("x;id", "'x;id'"),
            ("$(id)", "'$(id)'"),
            ("it's", "'it'\\''s'"),
        ];
        for (text, expected) in cases {
            assert_eq!(shell_word(text), expected, "{text}");
        }
        assert_eq!((operand("a b"), operand("--help")), ("'a b'".into(), "-- --help".into()));
    }

    #[test]
    fn words_that_signals_name_are_marked() {
        let stems = stems(&["`delete` is a verb of class destructive".to_owned()]);
        let pieces = marked("Permanently deletes files. Deleted: gone, undeletable.", &stems);
        let shown: Vec<&str> =
            pieces.iter().filter(|it| it.is_marked).map(|it| it.text.as_str()).collect();
        assert_eq!(shown, ["deletes", "Deleted"]);
        let whole: String = pieces.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(whole, "Permanently deletes files. Deleted: gone, undeletable.");
    }

    #[test]
    fn foreign_text_is_drawn_and_cut() {
        assert_eq!(foreign("a\u{202e}b", 100), "a\\u{202E}b");
        assert_eq!(foreign("abcdef", 3), "abc…");
    }

    #[test]
    fn json_is_laid_out_and_its_tokens_stay() {
        let cases = [
            ("{}", "{}"),
            (
                r#"{"a":10000000000000000001, "b" : [1.0,{"c":[]}]}"#,
                "{\n  \"a\": 10000000000000000001,\n  \"b\": [\n    1.0,\n    {\n      \"c\": []\n    }\n  ]\n}",
            ),
            (r#"{"a":"x, {y}: \\\" z"}"#, "{\n  \"a\": \"x, {y}: \\\\\\\" z\"\n}"),
            ("null", "null"),
        ];
        for (json, expected) in cases {
            assert_eq!(laid_out(json), expected);
        }
        let raw = r#"{"a":{"b":[1,"two three",{}]},"c":-1.5e9}"#;
        let squeezed = laid_out(raw).replace('\n', "").replace("  ", "").replace(": ", ":");
        assert_eq!(squeezed, raw);
    }

    #[test]
    fn numbers_are_grouped() {
        let shown = [7, 1_234, 1_000_000].map(grouped);
        assert_eq!(shown, ["7", "1\u{a0}234", "1\u{a0}000\u{a0}000"]);
    }

    #[test]
    fn durations_have_their_largest_unit() {
        let of = |seconds| duration(Language::English, SignedDuration::from_secs(seconds));
        assert_eq!([of(5), of(120), of(7_300), of(172_800)], ["5 s", "2 min", "2 h", "2 days"]);
    }
}
