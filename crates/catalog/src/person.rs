//! Recognises a text that asks that a person decides first.

/// Phrases in lower case. A text that contains one asks for a person.
const PHRASES: &[&str] = &[
    "on your own initiative",
    "on its own initiative",
    "on their own initiative",
    "own initiative",
    "without being asked",
    "unless the user asks",
    "unless asked",
    "unless the user explicitly",
    "unless explicitly",
    "only when the user",
    "only if the user",
    "only on explicit request",
    "only at the user's request",
    "only when explicitly",
    "only if explicitly",
    "only call this if the user",
    "ask the user first",
    "ask the user before",
    "ask for confirmation",
    "ask user for confirmation",
    "asking the user",
    "confirm with the user",
    "requires user confirmation",
    "requires confirmation",
    "requires human approval",
    "requires approval",
    "requires user approval",
    "requires explicit approval",
    "human approval",
    "a person must",
    "a human must",
    "user must confirm",
    "user must approve",
    "user must ask",
    "explicit user consent",
    "explicit consent",
    "user's explicit permission",
    "explicit permission",
    "explicitly requested by the user",
    "explicitly asked",
    "explicitly asks",
    "never call this without",
    "without the user's",
    "with the user's consent",
    "with user consent",
    "without user consent",
    "requires user consent",
    "confirmation from the user",
    "approval from the user",
    "permission from the user",
    "approval of the user",
    "get user approval",
    "get user confirmation",
    "user's approval",
    "user's confirmation",
    "approved by a human",
    "approved by a person",
    "approved by the user",
    "confirmed by the user",
    "human confirmation",
    "ask before calling",
    "ask before using",
    "do not use without",
    "do not call without",
    "собственной инициативе",
    "своей инициативе",
    "только по явн",
    "только по просьбе",
    "только по запросу пользователя",
    "только по требованию",
    "если пользователь явно",
    "если пользователь сам",
    "когда пользователь явно",
    "спроси пользователя",
    "спросите пользователя",
    "подтверждения пользователя",
    "подтверждение пользователя",
    "согласия пользователя",
    "разрешения пользователя",
    "с разрешения человека",
    "без явной просьбы",
    "без явного запроса",
    "без подтверждения",
    "после подтверждения",
    "только с подтверждением",
    "только с согласия",
    "только с разрешения",
    "не вызывайте самостоятельно",
    "не вызывай самостоятельно",
    "не вызывать самостоятельно",
];

/// Whether a text in lower case asks for a person.
pub(crate) fn asks_for_person(text: &str) -> bool {
    // Nearly every phrase holds one of these; most texts hold none.
    const MARKS: [&str; 11] = [
        "without",
        "ask before",
        "initiative",
        "asked",
        "unless",
        "only",
        "confirm",
        "approval",
        "user",
        "human",
        "explicit",
    ];
    let may =
        MARKS.iter().any(|mark| text.contains(mark)) || !text.is_ascii() || text.contains("person");
    may && PHRASES.iter().any(|phrase| text.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_ask_for_a_person() {
        for text in [
            "closes the session. do not call on your own initiative.",
            "only when the user explicitly asks for it",
            "не вызывайте по собственной инициативе",
            "ask the user before you call it",
            "this requires human approval",
            "deletes the order. do not call without permission.",
            "never call this without a ticket",
            "must be approved by a person",
            "ask before calling it",
            "закрывает сеанс. не вызывать без подтверждения.",
        ] {
            assert!(asks_for_person(text), "{text}");
        }
        for text in [
            "returns the user's profile",
            "only the first page is returned unless limit is set",
            "approves a request",
            "показывает пользователя",
            "",
        ] {
            assert!(!asks_for_person(text), "{text}");
        }
    }
}
