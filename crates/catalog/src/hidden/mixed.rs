//! Words that mix scripts with letters that look alike.

use unicode_script::{Script, UnicodeScript as _};
use unicode_security::confusable_detection;

use super::HiddenKind;

/// Latin letters that look like Cyrillic ones.
const LIKE_CYRILLIC: &str = "ABCEHIJKMOPSTXYaceijopsxy";

/// What two texts have in common if people take them for the same.
pub(crate) fn skeleton(text: &str) -> String {
    confusable_detection::skeleton(text).collect()
}

/// Confusable letters of a text. In an identifier compatibility forms are confusable too.
pub(super) fn find(text: &str, identifier: bool) -> Vec<(usize, char, HiddenKind)> {
    let mut found = Vec::new();
    if text.is_ascii() {
        return found;
    }
    let mut word: Vec<(usize, char)> = Vec::new();
    let mut before_word = None;
    let mut last = None;
    for (at, c) in text.char_indices() {
        if !is_letter(c) || starts_word(&word, c) {
            judge(&word, [before_word, Some(c)], identifier, &mut found);
            word.clear();
        }
        if is_letter(c) {
            if word.is_empty() {
                before_word = last;
            }
            word.push((at, c));
        }
        last = Some(c);
    }
    judge(&word, [before_word, None], identifier, &mut found);
    found
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic() || c.script() == Script::Inherited
}

/// A capital of another script starts a word.
fn starts_word(word: &[(usize, char)], c: char) -> bool {
    c.is_uppercase()
        && word.last().is_some_and(|(_, last)| {
            let (one, two) = (script(*last), script(c));
            one.is_some() && two.is_some() && one != two
        })
}

fn script(c: char) -> Option<Script> {
    match c.script() {
        Script::Common | Script::Inherited => None,
        script => Some(script),
    }
}

fn judge(
    word: &[(usize, char)],
    around: [Option<char>; 2],
    identifier: bool,
    found: &mut Vec<(usize, char, HiddenKind)>,
) {
    if word.iter().all(|(_, c)| c.is_ascii()) {
        return;
    }
    // Compatibility forms beside plain letters, or anywhere in an identifier.
    let has_ascii = word.iter().any(|(_, c)| c.is_ascii());
    let forms = word.iter().filter(|(_, c)| is_compatibility_form(*c));
    found.extend(
        forms.filter(|_| identifier || has_ascii).map(|(at, c)| (*at, *c, HiddenKind::Confusable)),
    );
    if let Some((at, c)) = confusable(word).filter(|_| !is_normal(word, around)) {
        found.push((at, c, HiddenKind::Confusable));
    }
}

/// A letter of a mixed word that looks like one of the other script; one of the rarer script first.
fn confusable(word: &[(usize, char)]) -> Option<(usize, char)> {
    let is_latin = |c: char| script(c) == Some(Script::Latin);
    let latin = word.iter().filter(|(_, c)| is_latin(*c)).count();
    let other = word.iter().filter(|(_, c)| script(*c).is_some_and(|s| s != Script::Latin)).count();
    if latin == 0 || other == 0 {
        // Latin alone: letters such as `ɡ` imitate ASCII.
        let imitates = |c: char| !c.is_ascii() && c != 'ı' && is_like_ascii(c);
        return word.iter().copied().find(|(_, c)| other == 0 && is_latin(*c) && imitates(*c));
    }
    let strange = || word.iter().copied().find(|(_, c)| !is_latin(*c) && is_like_ascii(*c));
    let cyrillic = word.iter().any(|(_, c)| script(*c) == Some(Script::Cyrillic));
    let plain = || {
        let like = |c: char| cyrillic && LIKE_CYRILLIC.contains(c);
        word.iter().copied().find(|(_, c)| is_latin(*c) && like(*c))
    };
    if other <= latin { strange().or_else(plain) } else { plain().or_else(strange) }
}

fn is_like_ascii(c: char) -> bool {
    let mut buffer = [0; 4];
    let mut skeleton = confusable_detection::skeleton(c.encode_utf8(&mut buffer));
    skeleton.next().is_some_and(|first| first.is_ascii_alphabetic()) && skeleton.next().is_none()
}

/// Fullwidth, mathematical, circled and Roman letters, and ligatures.
fn is_compatibility_form(c: char) -> bool {
    matches!(c,
        '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}'
        | '\u{24b6}'..='\u{24e9}' | '\u{2160}'..='\u{217f}' | '\u{fb00}'..='\u{fb06}' | '\u{17f}'
        | '\u{212a}' | '\u{2102}'..='\u{2138}' | '\u{1f130}'..='\u{1f189}')
}

/// What is normal where Russian and Latin meet: an abbreviation with a Russian ending (`URLы`), and
/// ranges of letters (`a-zа-я`).
fn is_normal(word: &[(usize, char)], around: [Option<char>; 2]) -> bool {
    if word.len() == 2 && around == [Some('-'), Some('-')] {
        return true;
    }
    let capitals = word.iter().take_while(|(_, c)| c.is_ascii_uppercase()).count();
    let ending = word.get(capitals..).unwrap_or_default();
    capitals >= 2 && ending.iter().all(|(_, c)| matches!(c, 'а'..='я' | 'ё'))
}
