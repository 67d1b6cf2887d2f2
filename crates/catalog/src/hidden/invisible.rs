//! Characters that show nothing or reorder others, and the emoji in which some of them are normal.

use unicode_properties::UnicodeEmoji as _;

use super::HiddenKind;

/// Hidden characters, whatever word they are in.
pub(super) fn find(text: &str) -> Vec<(usize, char, HiddenKind)> {
    let mut found = Vec::new();
    let mut before = [None, None];
    let mut flag_until = 0;
    for (at, c) in text.char_indices() {
        if at >= flag_until
            && let Some(kind) = kind(c)
        {
            let rest = text.get(at..).unwrap_or_default();
            if is_flag(rest, before[1]) {
                flag_until = at + FLAG_BYTES;
            } else if !is_in_emoji(c, before, rest) {
                found.push((at, c, kind));
            }
        }
        before = [before[1], Some(c)];
    }
    found
}

/// The kind of a character that is hidden outside emoji.
fn kind(c: char) -> Option<HiddenKind> {
    if matches!(c, ' '..='~' | '\n' | '\r' | '\t' | '\u{a0}'..='\u{ac}' | '\u{ae}'..='\u{34e}') {
        return None;
    }
    // Cyrillic, which most other texts here consist of.
    if matches!(c, '\u{400}'..='\u{52f}') {
        return None;
    }
    Some(match c {
        '\u{1b}' | '\u{9b}' => HiddenKind::Escape,
        c if c.is_control() => HiddenKind::Control,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            HiddenKind::Bidi
        }
        '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{180e}' => HiddenKind::ZeroWidth,
        '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}'
        | '\u{180b}'..='\u{180d}'
        | '\u{180f}' => HiddenKind::VariationSelector,
        '\u{e0000}'..='\u{e007f}' => HiddenKind::Tag,
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{2061}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}'
        | '\u{110bd}'
        | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{16fe4}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d159}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0080}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}' => HiddenKind::Invisible,
        '\u{fdd0}'..='\u{fdef}' => HiddenKind::Noncharacter,
        c if u32::from(c) & 0xfffe == 0xfffe => HiddenKind::Noncharacter,
        _ => return None,
    })
}

/// Whether a selector follows an emoji, or a joiner joins two.
fn is_in_emoji(c: char, before: [Option<char>; 2], rest: &str) -> bool {
    let [two, one] = before;
    let next = rest.chars().nth(1);
    match c {
        '\u{fe0e}' | '\u{fe0f}' => one.is_some_and(|base| match base {
            // A digit is the base of a keycap only.
            '0'..='9' | '#' | '*' => next == Some('\u{20e3}'),
            base => base.is_emoji_char(),
        }),
        '\u{200d}' => {
            let joined = match one {
                Some('\u{fe0f}') => two.is_some_and(is_picture),
                Some(one) => is_picture(one),
                None => false,
            };
            joined && next.is_some_and(is_picture)
        }
        _ => false,
    }
}

fn is_picture(c: char) -> bool {
    !c.is_ascii() && c.is_emoji_char()
}

/// The bytes of the tags of a flag.
const FLAG_BYTES: usize = 6 * 4;

/// The three flags that are made of tags: England, Scotland, Wales.
fn is_flag(rest: &str, before: Option<char>) -> bool {
    const FLAGS: [&str; 3] = [
        "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
    ];
    before == Some('\u{1f3f4}') && FLAGS.iter().any(|flag| rest.starts_with(flag))
}
