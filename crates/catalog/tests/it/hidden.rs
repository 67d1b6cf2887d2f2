//! Hidden text: nothing hostile passes, nothing Russian is stopped.

use std::fmt::Write as _;

use toolgate_catalog::{HiddenKind, draw, hidden_text};

/// A definition with `text` in one of its fields.
type Field = fn(&str) -> String;

/// Fields that hold any text.
const PROSE: [Field; 6] = [
    |text| format!(r#"{{"name":"a","title":{text}}}"#),
    |text| format!(r#"{{"name":"a","description":{text}}}"#),
    |text| {
        format!(r#"{{"name":"a","inputSchema":{{"properties":{{"p":{{"description":{text}}}}}}}}}"#)
    },
    |text| format!(r#"{{"name":"a","annotations":{{"title":{text}}}}}"#),
    |text| {
        format!(r#"{{"name":"a","outputSchema":{{"properties":{{"p":{{"default":[{text}]}}}}}}}}"#)
    },
    |text| format!(r#"{{"name":"a","_meta":{{"x":{{"y":[1,{text}]}}}}}}"#),
];

/// Fields that hold names.
const NAMES: [Field; 3] = [
    |text| format!(r#"{{"name":{text}}}"#),
    |text| {
        format!(r#"{{"name":"a","inputSchema":{{"properties":{{{text}:{{"type":"string"}}}}}}}}"#)
    },
    |text| format!(r#"{{"name":"a","inputSchema":{{"properties":{{"p":{{"enum":[{text}]}}}}}}}}"#),
];

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// The same string with every character beyond ASCII escaped.
fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for unit in text.encode_utf16() {
        write!(out, "\\u{unit:04x}").unwrap();
    }
    out + "\""
}

#[test]
fn russian_texts_are_normal() {
    let texts: Vec<&str> = include_str!("../data/russian.txt").lines().collect();
    assert!(texts.len() >= 200, "{}", texts.len());
    for text in texts {
        for field in PROSE.iter().chain(&NAMES) {
            for raw in [field(&quoted(text)), field(&escaped(text))] {
                assert_eq!(hidden_text(&raw), [], "{text}");
            }
        }
        assert_eq!(draw(text), text);
    }
}

#[test]
fn other_texts_are_normal() {
    for text in [
        "Reads a file.\n\tUse `path`.\r\n",
        "naïve café Straße coöperate Łódź Ångström İstanbul kapalı",
        "日本語のJSONファイルを読む 한국어 עברית العربية ไทย",
        "5 µs, 10 kΩ, Δx, π ≈ 3.14, 20 °C, x²",
        "emoji: ☺️ ☎︎ 👍🏽 👩🏽‍🚀 🏳️‍🌈 🏴‍☠️ ✔️ ©️ #️⃣ *️⃣",
        "a\u{a0}b\u{202f}c\u{2009}d\u{3000}e",
    ] {
        assert_eq!(hidden_text(&PROSE[1](&quoted(text))), [], "{text}");
    }
    let pattern = r#"{"name":"a","inputSchema":{"properties":{"p":{"pattern":"^[a-zа-я]+[Aа]$"}},
        "patternProperties":{"^[cс]$":{}}}}"#;
    assert_eq!(hidden_text(pattern), []);
}

/// Characters that are hidden wherever they are.
fn hidden_characters() -> Vec<char> {
    let ranges = [
        (0x01, 0x08),
        (0x0b, 0x0c),
        (0x0e, 0x1f),
        (0x7f, 0x9f),
        (0xad, 0xad),
        (0x34f, 0x34f),
        (0x61c, 0x61c),
        (0x115f, 0x1160),
        (0x17b4, 0x17b5),
        (0x180b, 0x180f),
        (0x200b, 0x200f),
        (0x2028, 0x202e),
        (0x2060, 0x206f),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xfdd0, 0xfdd3),
        (0xfe00, 0xfe0f),
        (0xfeff, 0xfeff),
        (0xffa0, 0xffa0),
        (0xfff9, 0xfffc),
        (0xffff, 0xffff),
        (0x1bca0, 0x1bca3),
        (0x1d173, 0x1d17a),
        (0x1fffe, 0x1ffff),
        (0xe0001, 0xe0001),
        (0xe0020, 0xe007f),
        (0xe0100, 0xe0110),
        (0xe01ef, 0xe01ef),
    ];
    ranges.into_iter().flat_map(|(from, to)| from..=to).filter_map(char::from_u32).collect()
}

#[test]
fn hidden_characters_are_found_in_every_field() {
    let mut cases = 0;
    for c in hidden_characters() {
        for text in
            [format!("read{c}it"), format!("{c}read"), format!("Читает{c}"), format!("a {c} b")]
        {
            for field in PROSE.iter().chain(&NAMES) {
                for raw in [field(&quoted(&text)), field(&escaped(&text))] {
                    let found = hidden_text(&raw);
                    assert!(!found.is_empty(), "U+{:04X} in {raw}", u32::from(c));
                    let shown = format!("\\u{{{:X}}}", u32::from(c));
                    assert!(found[0].shown.contains(&shown), "{}", found[0].shown);
                    cases += 1;
                }
            }
            assert!(!draw(&text).contains(c), "U+{:04X}", u32::from(c));
        }
    }
    println!("{cases} cases with hidden characters, all found");
    assert!(cases >= 300);
}

#[test]
fn confusables_inside_a_word_are_found() {
    const PAIRS: [(char, &str); 14] = [
        ('a', "аαɑａ𝐚"),
        ('c', "сⅽϲ"),
        ('d', "ԁⅾ"),
        ('e', "еｅ𝑒"),
        ('g', "ɡ"),
        ('i', "іⅰ"),
        ('j', "ј"),
        ('o', "оοօ"),
        ('p', "рρ"),
        ('s', "ѕſ"),
        ('u', "υս"),
        ('v', "ѵν"),
        ('x', "х"),
        ('y', "у"),
    ];
    let mut cases = 0;
    for word in
        ["delete_user", "sendPayload", "get_policy", "copy-data", "export", "JSONvalue", "access2"]
    {
        for (at, letter) in word.char_indices() {
            let lower = letter.to_ascii_lowercase();
            let Some((_, others)) = PAIRS.iter().find(|(plain, _)| *plain == lower) else {
                continue;
            };
            // A capital of another script starts a word of its own.
            if letter.is_ascii_uppercase() {
                continue;
            }
            for other in others.chars() {
                let mut text = word.to_owned();
                text.replace_range(at..=at, &other.to_string());
                for field in NAMES {
                    let found = hidden_text(&field(&quoted(&text)));
                    assert!(
                        found.iter().any(|one| one.kind == HiddenKind::Confusable),
                        "{text}: U+{:04X}",
                        u32::from(other)
                    );
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} names with confusables, all found");
    assert!(cases >= 200);
}

#[test]
fn hostile_texts_are_found() {
    for (text, kind) in [
        ("pаssword is needed", HiddenKind::Confusable),
        ("Then call dеlete_file", HiddenKind::Confusable),
        ("Oстатки товаров", HiddenKind::Confusable),
        ("Cумма", HiddenKind::Confusable),
        ("ѕystem prompt", HiddenKind::Confusable),
        ("HTTPсlient", HiddenKind::Confusable),
        ("getAPIѕ", HiddenKind::Confusable),
        ("ΑBC аbc", HiddenKind::Confusable),
        ("\u{1b}[2J\u{1b}[H", HiddenKind::Escape),
        ("\u{1b}]8;;http://a\u{7}", HiddenKind::Escape),
        ("\u{9b}31m", HiddenKind::Escape),
        ("safe\u{8}\u{8}\u{8}\u{8}evil", HiddenKind::Control),
        ("abc\u{0}def", HiddenKind::Control),
        ("user\u{202e}nimda", HiddenKind::Bidi),
        ("\u{2066}x\u{2069}", HiddenKind::Bidi),
        ("ig\u{200b}nore", HiddenKind::ZeroWidth),
        ("a\u{200d}b", HiddenKind::ZeroWidth),
        ("👍\u{200d}", HiddenKind::ZeroWidth),
        ("👍\u{200d}a", HiddenKind::ZeroWidth),
        ("1\u{200d}2", HiddenKind::ZeroWidth),
        ("a\u{fe0f}", HiddenKind::VariationSelector),
        ("1\u{fe0f}2", HiddenKind::VariationSelector),
        ("☺\u{fe0f}\u{fe0f}", HiddenKind::VariationSelector),
        ("☺\u{fe01}", HiddenKind::VariationSelector),
        ("☺\u{e0100}", HiddenKind::VariationSelector),
        ("\u{e0041}\u{e0042}", HiddenKind::Tag),
        ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0068}\u{e007f}", HiddenKind::Tag),
        ("x\u{2061}y", HiddenKind::Invisible),
        ("x\u{2064}y", HiddenKind::Invisible),
        ("x\u{ad}y", HiddenKind::Invisible),
        ("\u{3164}", HiddenKind::Invisible),
        ("\u{2800}\u{2800}", HiddenKind::Invisible),
        ("line\u{2028}next", HiddenKind::Invisible),
    ] {
        let found = hidden_text(&PROSE[1](&quoted(text)));
        assert_eq!(found.first().map(|one| one.kind), Some(kind), "{text:?}");
        assert_eq!(found[0].field, "description");
    }
    assert_eq!(draw("dеl\u{202e}"), "d\\u{435}l\\u{202E}");
    assert_eq!(hidden_text(&NAMES[0](&quoted(&"\u{200b}".repeat(1000)))).len(), 32);
}
