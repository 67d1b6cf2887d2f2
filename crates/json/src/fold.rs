//! Look-alikes: names that a lenient parser takes for other names.
//!
//! Some JSON libraries match keys without regard to case (Go's takes even `paramſ` for `params`),
//! and some servers trim or fold the names of tools. With such a name, a server could act on
//! something that the policy did not see.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The name that `text` imitates: not the same text, but equal after folding.
pub fn imitates<'p>(text: &str, names: &[&'p str]) -> Option<&'p str> {
    if is_plain(text) {
        return names.iter().copied().find(|name| text != *name && text.eq_ignore_ascii_case(name));
    }
    let folded = fold(text);
    names.iter().copied().find(|name| text != *name && folded == fold(name))
}

/// Whether `text` is not `name`, but equal to it after folding.
pub fn is_variant(text: &str, name: &str) -> bool {
    if is_plain(text) && is_plain(name) {
        return text != name && text.eq_ignore_ascii_case(name);
    }
    text != name && fold(text) == fold(name)
}

/// What a lenient parser may take `text` for: without case, compatibility forms (fullwidth,
/// mathematical, circled letters, ligatures), control and invisible characters, and white space at
/// the ends. Folding twice gives the same as folding once.
pub fn fold(text: &str) -> Cow<'_, str> {
    if is_plain(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    let mut folded = fold_once(text);
    // Nearly always the second round finds nothing to do.
    for _ in 0..4 {
        let again = fold_once(&folded);
        if again == folded {
            break;
        }
        folded = again;
    }
    Cow::Owned(folded)
}

/// The text without compatibility forms and invisible characters, its case as it came.
pub fn compatible(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let form: String = text.nfkc().filter(|c| !is_invisible(*c)).collect();
    Cow::Owned(form.trim().to_owned())
}

/// Lower case first (`ẞ` is `ß` then), upper case next, because some letters (`ſ`, `ı`) meet ASCII
/// only that way and `ß` is `SS` there, and lower case again.
fn fold_once(text: &str) -> String {
    let cased = text
        .nfkc()
        .filter(|c| !is_invisible(*c))
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        // What `İ` leaves beside its `i`.
        .filter(|c| *c != '\u{307}');
    let folded: String = cased.nfkc().collect();
    match folded.trim() {
        trimmed if trimmed.len() == folded.len() => folded,
        trimmed => trimmed.to_owned(),
    }
}

/// Whether only the case of ASCII letters is left to fold.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !text.starts_with(' ')
        && !text.ends_with(' ')
}

/// Control characters, Unicode's default ignorable characters, which a comparison may skip, and
/// others that show nothing.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::{fold, imitates, is_variant};

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
            ("id ", "id"),
            ("\tid\n", "id"),
            ("id\0", "id"),
            ("\u{7f}id", "id"),
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

    #[test]
    fn folding_is_one_for_all_spellings() {
        for (text, other) in [
            ("delete_account", "delete_account "),
            ("delete_account", "\u{a0}Delete_Account\u{2003}"),
            ("delete_account", "ｄｅｌｅｔｅ＿ａｃｃｏｕｎｔ"),
            ("delete_account", "delete\u{200b}_acc\u{ad}ount\r\n"),
            ("straße", "STRASSE"),
            ("straße", "STRAẞE"),
            ("όσος", "ΌΣΟΣ"),
            ("удалить", "Удалить"),
            ("cafe\u{301}", "CAFÉ"),
            ("title", "TİTLE"),
            ("title", "tıtle"),
            ("kelvin", "\u{212a}elvin"),
            ("ǆ", "ǅ"),
        ] {
            assert_eq!(fold(text), fold(other), "{text:?} {other:?}");
            assert!(is_variant(text, other) && is_variant(other, text), "{text:?} {other:?}");
            assert_eq!(fold(&fold(other)), fold(other), "{other:?}");
        }
        assert!(!is_variant("a", "a") && !is_variant("a b", "ab") && !is_variant("a_b", "a-b"));
    }
}
