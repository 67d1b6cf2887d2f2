//! Look-alikes: keys that a lenient reader takes for a protocol key.
//!
//! Some JSON libraries match keys without regard to case (Go's takes even `paramſ` for `params`),
//! so such a key could show an upstream something that the policy did not see.

use unicode_normalization::UnicodeNormalization;

/// The name that `text` imitates: not the same text, but equal after folding case, compatibility
/// forms (fullwidth, mathematical, circled letters, ligatures) and invisible characters.
pub fn imitates<'p>(text: &str, names: &[&'p str]) -> Option<&'p str> {
    let ascii = text.is_ascii();
    names.iter().copied().find(|name| {
        if ascii {
            text != *name && text.eq_ignore_ascii_case(name)
        } else {
            fold(text).eq(name.chars().map(|c| c.to_ascii_lowercase()))
        }
    })
}

/// Upper case first and lower case then, because some letters (ſ, ı) meet ASCII only that way.
fn fold(text: &str) -> impl Iterator<Item = char> {
    text.nfkc()
        .filter(|c| !invisible(*c))
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        // What `İ` leaves beside its `i`.
        .filter(|c| *c != '\u{307}')
}

/// Unicode's default ignorable characters, which a comparison may skip.
fn invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::imitates;

    const NAMES: [&str; 4] = ["params", "id", "task", "requestState"];

    #[test]
    fn look_alikes_are_found() {
        for (text, name) in [
            ("Params", "params"),
            ("PARAMS", "params"),
            ("paramſ", "params"),
            ("ｐａｒａｍｓ", "params"),
            ("ＰARAMS", "params"),
            ("𝐩𝒶𝓻𝕒𝚖𝗌", "params"),
            ("ⓟarams", "params"),
            ("par\u{ad}ams", "params"),
            ("params\u{200b}", "params"),
            ("\u{feff}params", "params"),
            ("ID", "id"),
            ("ıd", "id"),
            ("İD", "id"),
            ("ⅰⅾ", "id"),
            ("tasK", "task"),
            ("tas\u{212a}", "task"),
            ("requeststate", "requestState"),
            ("requeﬆState", "requestState"),
        ] {
            assert_eq!(imitates(text, &NAMES), Some(name), "{text}");
        }
    }

    #[test]
    fn other_keys_are_left_alone() {
        for text in ["params", "id", "", "param", "paramss", "ид", "имя", "naïve", "i d", "i_d"]
        {
            assert_eq!(imitates(text, &NAMES), None, "{text}");
        }
    }
}
